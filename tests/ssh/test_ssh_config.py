"""~/.ssh/config: honoured as ssh does, parsed once for all hosts, and honest about what is left out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from asyncssh.config import SSHClientConfig

from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.transport.ssh.dialer import Dialer
from gapline.orchestrator.transport.ssh.hop import LOGIN_SECONDS, Endpoint, resolve
from gapline.orchestrator.transport.ssh.ssh_config import UserConfig
from tests.ssh.conftest import MakeDialer
from tests.ssh.output import run
from tests.ssh.sshd import Sshd

pytestmark = pytest.mark.ssh


@pytest.fixture
def config(home: Path) -> Path:
    """The user's file, still empty."""
    path = home / ".ssh" / "config"
    path.write_text("")
    return path


async def test_a_host_known_only_to_the_users_file(sshd: Sshd, make_dialer: MakeDialer, config: Path) -> None:
    """Address, port, user, key and known_hosts may all come from there."""
    config.write_text(
        f"Host rack-7\n HostName {sshd.address}\n Port {sshd.port}\n User {sshd.user}\n"
        f" IdentityFile {sshd.identity}\n UserKnownHostsFile {sshd.known_hosts}\n"
    )
    route = await make_dialer().connect(Host(name="rack-7", address="rack-7"))
    assert (await run(route, "echo in")).out == b"in\n"
    await route.close()


FILE = """\
Port 2200
Include lab.d/*.conf
Host alpha
  User anna
  IdentityFile ~/.ssh/%h_key
Host *.lab !secret.lab
  ProxyJump gate.lab
Host beta gamma
  HostName 192.0.2.9
  HostKeyAlias twins
Match host 192.0.2.9 user anna
  ServerAliveInterval 7
Host alpha
  User too-late
  Port 1
Host *
  User everybody
  ConnectTimeout 4
  IdentityFile ~/.ssh/shared
"""
INCLUDED = """\
Host delta
  User dora
  Include deeper.conf
Host *.lab
  Compression yes
"""


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma", "delta", "gpu.lab", "secret.lab", "unnamed"])
@pytest.mark.parametrize("user", [None, "anna"])
def test_the_short_text_means_what_the_whole_file_means(config: Path, name: str, user: str | None) -> None:
    """The parser says the same about our excerpt as about the file; OpenSSH agrees on what both know."""
    config.write_text(FILE)
    (config.parent / "lab.d").mkdir()
    (config.parent / "lab.d/first.conf").write_text(INCLUDED)
    (config.parent / "deeper.conf").write_text("Port 4444\nHost nobody\n Port 5555\n")
    ours = UserConfig((config,)).resolve(name, user, None)
    flags = (False, False, False)  # reload, canonical, final
    whole = SSHClientConfig.load(None, [config], *flags, "local", user or (), name, ())
    for option in [
        "User",
        "Port",
        "Hostname",
        "HostKeyAlias",
        "ProxyJump",
        "IdentityFile",
        "ConnectTimeout",
        "Compression",
    ]:
        assert ours.get(option) == whole.get(option), option
    theirs = openssh(config, name, user)
    assert theirs["port"] == str(ours.get("Port"))
    assert theirs["user"] == (user or ours.get("User"))
    assert theirs["hostname"] == ours.get("Hostname", name)


def openssh(config: Path, name: str, user: str | None) -> dict[str, str]:
    """What `ssh -G` makes of it. It looks for relative includes in the real home, so they are written out."""
    text = config.read_text().replace("Include lab.d", f"Include {config.parent}/lab.d")
    first = config.parent / "lab.d/first.conf"
    first.write_text(INCLUDED.replace("deeper.conf", f"{config.parent}/deeper.conf"))
    absolute = config.with_name("absolute")
    absolute.write_text(text)
    command = ["ssh", "-G", "-F", str(absolute), *(["-l", user] if user else []), name]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in said.splitlines() if " " in line)


def test_a_thousand_hosts_are_parsed_a_few_lines_each(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each host costs its own lines and the general ones, however long the file is; and nothing the second time."""
    config.write_text("".join(f"Host h{n}\n HostName 192.0.2.{n % 250}\n User u{n}\n" for n in range(1000)) + FILE)
    parsed: list[int] = []
    parse = SSHClientConfig.parse

    def counted(self: SSHClientConfig, path: Path) -> None:
        parsed.append(len(path.read_text().splitlines()))
        parse(self, path)

    monkeypatch.setattr(SSHClientConfig, "parse", counted)
    files = UserConfig((config,))
    assert [files.resolve(f"h{n}", None, None).get("User") for n in range(1000)] == [f"u{n}" for n in range(1000)]
    assert len(parsed) == 1000
    assert max(parsed) < 25
    files.resolve("h7", None, None)
    assert len(parsed) == 1000


def test_the_inventory_wins(config: Path) -> None:
    """What the inventory sets is not looked up; what it leaves open is."""
    config.write_text(
        "Host alpha\n User anna\n Port 2200\n IdentityFile ~/k\n UserKnownHostsFile ~/kh\n ProxyJump gate\n"
    )
    files = UserConfig((config,))
    hop = resolve(Endpoint(name="alpha"), files)
    assert (hop.user, hop.port, hop.via and hop.via.name) == ("anna", 2200, "gate")
    assert hop.identities == (Path("~/k").expanduser(),)
    assert hop.known_hosts[0] == Path("~/kh").expanduser()
    own = Endpoint(name="alpha", user="otto", port=22, identity=(Path("/k"),), known_hosts=Path("/kh"), jump="none")
    hop = resolve(own, files)
    assert (hop.user, hop.port, hop.via) == ("otto", 22, None)
    assert (hop.identities, hop.known_hosts) == ((Path("/k"),), (Path("/kh"),))


def test_match_final_sees_the_resolved_name(config: Path) -> None:
    """A second pass of the parser, as in OpenSSH."""
    config.write_text("Host alpha\n HostName alpha.example.org\nMatch final host *.example.org\n User anna\n")
    assert UserConfig((config,)).resolve("alpha", None, None).get("User") == "anna"


async def test_what_is_not_honoured_is_said(dialer: Dialer, make_dialer: MakeDialer, config: Path) -> None:
    """With the place, the line and the reason; only for the hosts it concerns, and not where it changes nothing."""
    assert dialer.warnings(Host(name="pve1", address="alpha")) == ()
    config.write_text(
        "Host alpha\n StrictHostKeyChecking accept-new\n ControlMaster auto\n ControlPath=~/.ssh/cm-%r@%h:%p\n"
        "Host beta\n KnownHostsCommand /usr/bin/keys %H\n"
        "Host *.lab\n AddKeysToAgent yes\n"
        "Host *\n StrictHostKeyChecking ask\n ForwardAgent no\n SendEnv LANG LC_*\n"
    )
    warnings = make_dialer().warnings(Host(name="pve1", address="alpha"))
    assert [line.split(":")[1] for line in warnings] == ["2", "3", "4", "8"]
    assert warnings[0].startswith("~/.ssh/config:2: `StrictHostKeyChecking accept-new` is not honoured: host keys")
    assert "ControlMaster auto" in warnings[1]
    assert "(under `Host *.lab`)" in warnings[3]
    assert "KnownHostsCommand" in " ".join(make_dialer().warnings(Host(name="pve2", address="beta")))


@pytest.mark.parametrize(
    "line", ["Port many", "Compression perhaps", "Match nonsense x", 'User "unclosed', "Include 'x"]
)
async def test_a_broken_file_is_one_error_with_its_place(make_dialer: MakeDialer, config: Path, line: str) -> None:
    """Path and line are those of the user's file, not of our excerpt."""
    config.write_text("Host zeta\n User z\n" * 20 + f"Host alpha\n  {line}\n Port 22\n")
    with pytest.raises(ConfigError) as caught:
        make_dialer().warnings(Host(name="pve1", address="alpha"))
    assert str(caught.value).startswith(f"{config}:42: ")
    assert caught.value.hint


async def test_a_file_that_cannot_be_read_as_text(make_dialer: MakeDialer, config: Path) -> None:
    """Bytes outside UTF-8 in a comment or a block of another host do no harm."""
    config.write_bytes(b"# caf\xe9\nHost zeta\n User \xff\nHost alpha\n User anna\n")
    assert make_dialer().warnings(Host(name="pve1", address="alpha")) == ()


@pytest.mark.parametrize("jump", ["", "a b@", "host:port", "user@", "[::1"])
def test_a_jump_that_cannot_be_understood(jump: str) -> None:
    """One error, before any connection."""
    if not jump:
        assert resolve(Endpoint(name="alpha", jump=jump), UserConfig(())).via is None
        return
    with pytest.raises(ConfigError):
        resolve(Endpoint(name="alpha", jump=jump), UserConfig(()))


def test_chains_of_jumps_are_taken_from_the_end() -> None:
    """`a,b` reaches b through a, with IPv6 and ssh:// forms."""
    hop = resolve(Endpoint(name="alpha", jump="ssh://anna@gate:2222, [2001:db8::1]:2200"), UserConfig(()))
    assert hop.via is not None
    assert (hop.via.name, hop.via.port) == ("2001:db8::1", 2200)
    before = resolve(hop.via, UserConfig(())).via
    assert before is not None
    assert (before.name, before.user, before.port, before.jump) == ("gate", "anna", 2222, None)


@pytest.mark.parametrize(("own", "seconds"), [(None, 4.0), (2.5, 2.5)])
def test_time_for_a_login(config: Path, own: float | None, seconds: float) -> None:
    """The inventory's word goes before `ConnectTimeout`, and that before ours."""
    config.write_text("Host alpha\n ConnectTimeout 4\n")
    assert resolve(Endpoint(name="alpha", timeout=own), UserConfig((config,))).timeout == seconds
    assert resolve(Endpoint(name="beta"), UserConfig((config,))).timeout == LOGIN_SECONDS
