"""The fleet file: what it says, and every fault at its line and column."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapline.orchestrator.inventory.fleet import Fleet, load, parse
from gapline.orchestrator.inventory.host import Become, ContainerEntry, Containers, Host, Reach
from gapline.orchestrator.inventory.settings import CONNECTION, DEFAULTS, HOST
from gapline.orchestrator.model.errors import ConfigError

EXAMPLE = Path(__file__).parents[2] / "docs" / "fleet.example.yaml"
PATH = Path("fleet.yaml")


def fleet(text: str, path: Path = PATH) -> Fleet:
    """A fleet from the part that follows the version."""
    return parse(f"version: 1\n{text}".encode(), path)


def faults_of(text: str, path: Path = PATH) -> list[tuple[str, str]]:
    """All faults with their hints; line 1 is the first line of the text."""
    with pytest.raises(ConfigError) as caught:
        parse(text.encode(), path)
    assert caught.value.exit_code == 2
    return [(str(fault), fault.hint) for fault in caught.value.faults]


def test_the_example_shows_every_setting() -> None:
    """The documented example loads, and its values arrive where they belong."""
    found = load(EXAMPLE)
    assert list(found.hosts) == ["bastion", "pve1", "pve2", "workstation"]
    pve2 = found.hosts["pve2"]
    assert (pve2.address, pve2.user, pve2.become) == ("192.0.2.12", "root", Become.NONE)
    assert pve2.known_hosts == EXAMPLE.parent / "known_hosts.d" / "pve2"
    assert pve2.jump == "audit@192.0.2.1:2222"
    assert pve2.connect_timeout == 8.0
    assert pve2.labels == ("rack-a", "rtx-pro-6000")
    assert pve2.workload == "vllm, tensor parallel 8"
    assert pve2.place == f"{EXAMPLE}:24"
    assert isinstance(pve2.containers, tuple)
    assert pve2.containers[0] == ContainerEntry(name="129")
    inside = pve2.containers[1].ssh
    assert inside is not None
    assert (inside.name, inside.address, inside.user) == ("pve2/inference", "2001:db8::31", "root")
    assert inside.jump == "audit@192.0.2.1:2222,root@192.0.2.12"
    assert [host.name for host in found.members("everything")] == ["pve1", "pve2", "workstation"]


def test_the_example_names_what_the_format_knows() -> None:
    """A setting that is added to the format and not to the example fails here; two need files and are excused."""
    text = EXAMPLE.read_text()
    assert [key for key in {*HOST, *DEFAULTS, *CONNECTION} if f"{key}:" not in text] == ["identity"]


def test_a_bare_name_takes_the_defaults() -> None:
    """A host without settings is addressed by its name."""
    pve1 = fleet("defaults: {user: audit, become: true, labels: [x]}\nhosts:\n  pve1:\n").hosts["pve1"]
    assert pve1 == Host(
        name="pve1", address="pve1", user="audit", become=Become.SUDO, labels=("x",), place="fleet.yaml:4"
    )


def test_this_machine_takes_no_connection_settings() -> None:
    """`reach: local` ignores the defaults that are for connections."""
    me = fleet("defaults: {user: audit, port: 22, become: sudo}\nhosts:\n  local: {reach: local}\n").hosts["local"]
    assert me == Host(name="local", address="localhost", reach=Reach.LOCAL, become=Become.SUDO, place="fleet.yaml:4")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("auto", Containers.AUTO),
        ("none", Containers.NONE),
        ("[]", Containers.NONE),
        ("[129, web]", (ContainerEntry(name="129"), ContainerEntry(name="web"))),
        ("[{name: 129}]", (ContainerEntry(name="129"),)),
    ],
)
def test_containers(written: str, meant: object) -> None:
    """Two words or a list of names, where a VMID is a name."""
    assert fleet(f"hosts:\n  a: {{containers: {written}}}\n").hosts["a"].containers == meant


def test_a_container_with_its_own_ssh_takes_the_fleets_defaults() -> None:
    """It is another machine than its host, so the host's user is not its user."""
    text = "defaults: {port: 2200}\nhosts:\n  a: {user: root, containers: [{name: c, ssh: {address: 192.0.2.9}}]}\n"
    containers = fleet(text).hosts["a"].containers
    assert isinstance(containers, tuple)
    assert containers[0].ssh == Host(name="a/c", address="192.0.2.9", port=2200, place="fleet.yaml:4")


def test_identity_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths start at the fleet file, and ~ is the home directory."""
    home = tmp_path / "home"
    (tmp_path / "keys").mkdir()
    home.mkdir()
    for key in (tmp_path / "keys" / "one", home / "two"):
        key.write_text("key")
    monkeypatch.setenv("HOME", str(home))
    found = fleet("hosts:\n  a: {identity: [keys/one, ~/two]}\n  b: {identity: ~/two}\n", tmp_path / "fleet.yaml")
    assert found.hosts["a"].identity == (tmp_path / "keys" / "one", home / "two")
    assert found.hosts["b"].identity == (home / "two",)


def test_an_unreadable_identity_is_a_fault_at_its_place(tmp_path: Path) -> None:
    """A key that is absent, or a folder, or locked, stops the run before any connection."""
    (tmp_path / "folder").mkdir()
    path = tmp_path / "fleet.yaml"
    found = faults_of("version: 1\nhosts:\n  a: {identity: [absent, folder]}\n", path)
    assert [fault for fault, _ in found] == [
        f"{path}:3:18: {tmp_path}/absent cannot be read: No such file or directory",
        f"{path}:3:26: {tmp_path}/folder cannot be read: Is a directory",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_locked_identity_is_a_fault(tmp_path: Path) -> None:
    """Permissions count, not only existence."""
    (tmp_path / "key").touch(mode=0)
    found = faults_of("version: 1\nhosts:\n  a: {identity: key}\n", tmp_path / "fleet.yaml")
    assert "Permission denied" in found[0][0]


def test_known_hosts_may_be_absent(tmp_path: Path) -> None:
    """`gapline trust` creates the file; a folder in its place is a fault."""
    path = tmp_path / "fleet.yaml"
    assert fleet("hosts:\n  a: {known_hosts: new}\n", path).hosts["a"].known_hosts == tmp_path / "new"
    assert "Is a directory" in faults_of("version: 1\nhosts:\n  a: {known_hosts: .}\n", path)[0][0]


def test_a_file_full_of_faults_reports_all_of_them() -> None:
    """Each at its line and column, in the order of the file, with what was probably meant."""
    text = """\
version: 1
default: {user: audit}
defaults: {become: sudoo, containers: [1]}
hosts:
  pve1: {adress: 192.0.2.11, containers: 129, port: "22", become: yes}
  pve 2:
  local: {port: 99999}
  b: {connect_timeout: 10s, labels: [a b, c], containers: [1, 1, {nam: 2, ssh: {}}]}
  me: {reach: local, port: 1}
  p: {address: "-oProxyCommand=x"}
  p: {address: root@h}
  q: {user: "-l", jump: "a,-J", workload: "two\\nlines", address: root@h, reach: replay}
groups:
  pve1: [b]
  g1: [pve3, "x y"]
  g2: 7
  "": [b]
"""
    assert faults_of(text) == [
        ("fleet.yaml:2:1: unknown key in the fleet file: 'default'", "Did you mean defaults?"),
        ("fleet.yaml:3:20: expected one of none, sudo, sudo_reads, got 'sudoo'", "Did you mean sudo?"),
        ("fleet.yaml:3:39: expected auto, none or a list of containers, got a list", ""),
        ("fleet.yaml:5:10: unknown key in host 'pve1': 'adress'", "Did you mean address?"),
        ("fleet.yaml:5:42: expected auto, none or a list of containers, got '129'", "Write a list: [129]."),
        ("fleet.yaml:5:53: expected a whole number from 1 to 65535, got '22'", "Write it without quotes."),
        (
            "fleet.yaml:5:67: yes is a word to some YAML readers and true to others",
            'Write true, or "yes" for the word.',
        ),
        ("fleet.yaml:6:3: 'pve 2' is no name for a host", "Put its address under `address`."),
        ("fleet.yaml:7:3: the name local stands for this machine", "Add `reach: local`, or rename it."),
        ("fleet.yaml:7:17: expected a whole number from 1 to 65535, got '99999'", ""),
        ("fleet.yaml:8:24: expected seconds, a number above 0 and up to 600, got '10s'", "Write the bare number."),
        ("fleet.yaml:8:38: expected a label without blanks, got 'a b'", ""),
        ("fleet.yaml:8:66: name is missing", ""),
        ("fleet.yaml:8:67: unknown key in a container: 'nam'", "Did you mean name?"),
        ("fleet.yaml:8:80: address is missing", "A container's ssh needs the address it listens on."),
        ("fleet.yaml:9:22: port has no meaning with `reach: local`", ""),
        ("fleet.yaml:10:16: '-oProxyCommand=x' would be taken for an option", ""),
        ("fleet.yaml:11:3: 'p' stands here a second time, first in line 10", ""),
        ("fleet.yaml:12:13: expected a user name, got '-l'", ""),
        (
            "fleet.yaml:12:25: jump: '-J' would be taken for an option",
            "As for `ssh -J`: user@host:port, several with commas.",
        ),
        ("fleet.yaml:12:43: expected one line", ""),
        (
            "fleet.yaml:12:66: expected a host name or IP address, got 'root@h'",
            "User and port have settings of their own.",
        ),
        ("fleet.yaml:12:81: expected one of ssh, local, got 'replay'", ""),
        ("fleet.yaml:14:3: pve1 is a host already, see fleet.yaml:5", "Rename the group."),
        ("fleet.yaml:15:8: unknown host or group 'pve3'", "Did you mean pve1?"),
        (
            "fleet.yaml:15:14: expected a name of letters, digits, dots, dashes and underscores, got 'x y'",
            "",
        ),
        ("fleet.yaml:16:7: unknown host or group '7'", "Known: b, g1, g2, local, me, p, pve 2, pve1, q."),
        ("fleet.yaml:17:3: '' is no name for a group", ""),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("hosts: {a: }\n", "fleet.yaml:1:1: version is missing"),
        ("version: 2\nhost: {}\n", "fleet.yaml:1:1: version 2 of the format is not known"),
        ("version: 1\n", "fleet.yaml:1:1: hosts is missing"),
        ("version: 1\nhosts:\n", "fleet.yaml:2:7: hosts is empty"),
        ("version: 1\nhosts: [a]\n", "fleet.yaml:2:8: expected hosts as a mapping, got a list"),
        ("version: 1\nhosts: {a: 192.0.2.1}\n", "fleet.yaml:2:12: expected host 'a' as a mapping, got '192.0.2.1'"),
        ("version: 1\nhosts: {a: {containers: [7, 7]}}\n", "fleet.yaml:2:29: container 7 is listed twice"),
    ],
)
def test_single_faults(text: str, fault: str) -> None:
    """What is missing or of the wrong shape; an unknown version silences everything after it."""
    assert [message for message, _ in faults_of(text)] == [fault]


def test_a_group_that_contains_itself_is_named_with_the_circle() -> None:
    """Circles of any length are refused."""
    text = "version: 1\nhosts: {a: }\ngroups:\n  g1: [a, g2]\n  g2: [g3]\n  g3: [g2]\n"
    (fault, _), *more = faults_of(text)
    assert fault in {
        "fleet.yaml:5:3: group g2 contains itself: g2 → g3 → g2",
        "fleet.yaml:6:3: group g3 contains itself: g3 → g2 → g3",
    }
    assert not more


def test_jump_chains_are_resolved_through_the_fleet() -> None:
    """Names of the fleet become addresses, and bring their own jump hosts with them."""
    text = """\
defaults: {user: audit, jump: outer}
hosts:
  outer: {address: 192.0.2.1, port: 2222, jump: none}
  inner: {address: "2001:db8::2", port: 2200, user: hop}
  a: {jump: "root@inner,elsewhere:7"}
  b:
  c: {jump: "2001:db8::9"}
"""
    hosts = fleet(text).hosts
    assert hosts["outer"].jump == "none"
    assert hosts["a"].jump == "audit@192.0.2.1:2222,root@[2001:db8::2]:2200,elsewhere:7"
    assert hosts["b"].jump == "audit@192.0.2.1:2222"
    assert hosts["c"].jump == "[2001:db8::9]"


def test_a_host_that_is_its_own_way_is_refused() -> None:
    """A jump host that takes the defaults' jump is the usual mistake."""
    text = "version: 1\ndefaults: {jump: bastion}\nhosts:\n  bastion:\n  a: {jump: b}\n  b: {jump: a}\n"
    assert faults_of(text) == [
        ("fleet.yaml:4:3: bastion is reached through itself: bastion → bastion", "Give one of them `jump: none`."),
        ("fleet.yaml:5:3: a is reached through itself: a → b → a", "Give one of them `jump: none`."),
        ("fleet.yaml:6:3: b is reached through itself: b → a → b", "Give one of them `jump: none`."),
    ]


def test_long_jump_chains_are_refused() -> None:
    """A chain that nobody means is cut before it costs time."""
    lines = "".join(f"  h{n}: {{jump: h{n + 1}}}\n" for n in range(40))
    found = faults_of(f"version: 1\nhosts:\n{lines}  h40:\n")
    assert found[0][0] == "fleet.yaml:3:3: more than 8 jump hosts on the way to h0"


NAMES = st.from_regex(r"\A[a-z0-9_][a-z0-9_.-]{0,12}\Z").filter(lambda text: text != "local")
ADDRESSES = st.ip_addresses().map(str) | NAMES
HOSTS = st.fixed_dictionaries(
    {},
    optional={
        "address": ADDRESSES,
        "user": st.from_regex(r"\A[a-z_][a-z0-9_-]{0,12}\Z"),
        "port": st.integers(1, 65535),
        "become": st.sampled_from(["none", "sudo", "sudo_reads"]),
        "connect_timeout": st.integers(1, 600),
        "containers": st.sampled_from(["auto", "none"]) | st.lists(NAMES, unique=True, min_size=1, max_size=3),
        "labels": st.lists(NAMES, max_size=3),
        "workload": st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=20),
    },
)


@given(st.dictionaries(NAMES, HOSTS, min_size=1, max_size=4))
def test_every_valid_fleet_is_read_as_it_was_meant(hosts: dict[str, dict[str, object]]) -> None:
    """JSON is YAML: what is written comes back, setting by setting, whatever the names look like."""
    found = parse(json.dumps({"version": 1, "hosts": hosts}, ensure_ascii=False).encode(), PATH)
    assert set(found.hosts) == set(hosts)
    for name, wanted in hosts.items():
        host = found.hosts[name]
        assert host.address == wanted.get("address", name)
        assert [host.user, host.port, host.workload] == [wanted.get(key) for key in ("user", "port", "workload")]
        assert host.become == wanted.get("become", "none")
        assert host.connect_timeout == wanted.get("connect_timeout")
        assert list(host.labels) == wanted.get("labels", [])
        containers = host.containers
        shown = containers.value if isinstance(containers, Containers) else [entry.name for entry in containers]
        assert shown == wanted.get("containers", "auto")


NOISE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["auto", "a", "a@b:1", "none", "local", "-x", "~", "\n"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*HOST, "version", "hosts", "groups", "defaults", "name", "ssh", "a", "b"]), inner
        )
    ),
    max_leaves=20,
)


@given(st.fixed_dictionaries({"version": st.just(1), "hosts": NOISE, "groups": NOISE, "defaults": NOISE}))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_shape_gives_a_fleet_or_a_config_error(shape: dict[str, object]) -> None:
    """Nothing else is ever raised, whatever stands where, and every fault has a line."""
    error = error_of(yaml.safe_dump(shape).encode())
    assert error is None or all(fault.line for fault in error.faults if "more faults" not in str(fault))


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"version: 1\nhosts:\n  {text}".encode()))
def test_any_bytes_give_a_fleet_or_a_config_error(data: bytes) -> None:
    """Nothing else is ever raised, and the message starts with the file."""
    error = error_of(data)
    assert error is None or str(error).startswith("fleet.yaml")


def error_of(data: bytes) -> ConfigError | None:
    """What is wrong with a fleet file."""
    try:
        parse(data, PATH)
    except ConfigError as error:
        return error
    return None
