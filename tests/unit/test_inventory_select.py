"""What the command line asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapline.orchestrator.inventory.address import Address, parse_address
from gapline.orchestrator.inventory.fleet import Fleet, parse
from gapline.orchestrator.inventory.host import ContainerEntry, Containers, Host, Reach
from gapline.orchestrator.inventory.select import select
from gapline.orchestrator.model.errors import PlanError

FLEET = parse(
    b"""\
version: 1
defaults: {user: audit}
hosts:
  pve1: {address: 192.0.2.11, containers: [129, {name: web, ssh: {address: 192.0.2.31}}]}
  pve2:
  dark: {containers: none}
  here: {reach: local}
groups:
  rack-a: [pve2, pve1]
  all: [here, rack-a]
""",
    Path("fleet.yaml"),
)


def names(fleet: Fleet | None, *targets: str) -> list[str]:
    """The hosts that are selected."""
    return [host.name for host in select(fleet, targets)]


def one(fleet: Fleet | None, *targets: str) -> Host:
    """The only host that is selected."""
    (host,) = select(fleet, targets)
    return host


def entries(*containers: str) -> tuple[ContainerEntry, ...]:
    """Containers by name."""
    return tuple(ContainerEntry(name=name) for name in containers)


def test_nothing_means_the_whole_fleet() -> None:
    """In the order of the file; without a fleet there is nothing to audit."""
    assert names(FLEET) == ["pve1", "pve2", "dark", "here"]
    with pytest.raises(PlanError, match="nothing to audit"):
        select(None, ())


def test_hosts_and_groups_come_once_and_in_the_order_they_were_asked_for() -> None:
    """Duplicates are merged, by name, by address and by group."""
    assert names(FLEET, "dark", "all", "pve1") == ["dark", "pve1", "pve2", "here"]
    assert names(FLEET, "192.0.2.11", "pve1", "audit@pve1") == ["pve1"]


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("gpu7", Host(name="gpu7", address="gpu7")),
        ("root@gpu7", Host(name="gpu7", address="gpu7", user="root")),
        ("root@gpu7:2222", Host(name="gpu7:2222", address="gpu7", user="root", port=2222)),
        ("2001:db8::1", Host(name="2001:db8::1", address="2001:db8::1")),
        ("[fe80::1%eth0]:22", Host(name="[fe80::1%eth0]:22", address="fe80::1%eth0", port=22)),
        ("local", Host(name="local", address="localhost", reach=Reach.LOCAL)),
    ],
)
def test_hosts_that_no_fleet_names(target: str, host: Host) -> None:
    """What is not said is left to ~/.ssh/config, with and without a fleet."""
    assert one(None, target) == host
    assert one(FLEET, target) == host


def test_a_login_changes_a_fleet_host_and_nothing_else() -> None:
    """`root@pve1` is pve1 with everything the fleet says about it, as root."""
    host = one(FLEET, "root@pve1:2200")
    assert (host.name, host.user, host.port, host.address) == ("pve1", "root", 2200, "192.0.2.11")
    assert host.containers == FLEET.hosts["pve1"].containers


def test_a_container_alone() -> None:
    """Its host is read but not judged; what the fleet says about the container holds."""
    host = one(FLEET, "pve1/web", "pve1/140")
    assert not host.host_too
    assert isinstance(host.containers, tuple)
    assert [entry.name for entry in host.containers] == ["web", "140"]
    assert host.containers[0].ssh is not None
    assert one(None, "root@pve9/129/".rstrip("/")) == Host(
        name="pve9", address="pve9", user="root", containers=entries("129"), host_too=False
    )
    assert one(None, "local/web").reach is Reach.LOCAL


def test_a_container_beside_its_host() -> None:
    """The host keeps what it would be audited for alone, and the container is added."""
    automatic = one(FLEET, "pve2/7", "pve2")
    assert (automatic.host_too, automatic.containers, automatic.declared) == (True, Containers.AUTO, entries("7"))
    listed = one(FLEET, "pve1", "pve1/129", "pve1/140")
    assert isinstance(listed.containers, tuple)
    assert [entry.name for entry in listed.containers] == ["129", "web", "140"]
    assert one(FLEET, "dark", "dark/3").containers == entries("3")


@pytest.mark.parametrize(
    ("targets", "message", "hint"),
    [
        (["pve3"], "pve3 is not in fleet.yaml", "Did you mean pve"),
        (["pve3/129"], "pve3 is not in fleet.yaml", "Did you mean pve"),
        (["rack-b"], "rack-b is not in fleet.yaml", "Did you mean rack-a?"),
        (["rack-a/129"], "rack-a/129: rack-a is a group", "Name the host"),
        (["root@here"], "root@here: here is this machine", "Ask for here"),
        (["root@pve1", "pve1"], "pve1 is asked for as root@192.0.2.11 and as audit@192.0.2.11", "once"),
        (["-oProxyCommand=touch x"], "'-oProxyCommand=touch x' is not a target", "A target is"),
        (["-Jx"], "'-Jx' is not a target", "A target is"),
        (["root@-oProxyCommand=x"], "would be taken for an option", "A target is"),
        (["-l@host"], "'-l@host' is not a target", "A target is"),
        (["a\nb"], "'a\\nb' is not a target", "A target is"),
        (["a\x1b[31m"], "is not a target", "A target is"),
        ([""], "'' is not a target", "A target is"),
        (["$(id)@a"], "'$(id)' is not a user name", "A target is"),
        (["a;b"], "'a;b' is not a host name", "A target is"),
        (["a:0"], "'0' is not a port", "A target is"),
        (["a:1:2"], "in brackets", "A target is"),
        (["pve1/"], "'' is not a container's name", "A target is"),
        (["pve1/-x"], "'-x' is not a container's name", "A target is"),
        (["pve1/1/2"], "'1/2' is not a container's name", "A target is"),
    ],
)
def test_what_is_refused(targets: Sequence[str], message: str, hint: str) -> None:
    """Misspelled names of the fleet, options in disguise and anything that no host is called."""
    with pytest.raises(PlanError) as caught:
        select(FLEET, targets)
    assert message in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("a", Address("a")),
        ("u@a:1", Address("a", "u", 1)),
        ("::1", Address("::1")),
        ("u@[::1]", Address("::1", "u")),
        ("u@dom.example@a", Address("a", "u@dom.example")),
        ("DOM\\u@a", Address("a", "DOM\\u")),
    ],
)
def test_addresses_are_taken_apart(text: str, address: Address) -> None:
    """Users may carry a domain, IPv6 addresses their brackets."""
    assert parse_address(text) == address


@given(st.text(max_size=30) | st.text("a1:@[]/.-%", max_size=12))
def test_any_text_is_a_target_or_a_plan_error(target: str) -> None:
    """Nothing else is raised, and what is accepted can be no option and hides nothing."""
    hosts, message = hosts_or_message(target)
    assert message.isprintable()
    for host in hosts:
        for part in (host.name, host.address, host.user or "a"):
            assert part.isprintable()
            assert not part.startswith("-")


def hosts_or_message(target: str) -> tuple[tuple[Host, ...], str]:
    """What a target selects, or why it does not."""
    try:
        return select(FLEET, [target]), ""
    except PlanError as error:
        return (), str(error)


@given(st.text("abc1:@[].-%", max_size=12))
def test_an_address_written_out_is_read_back(text: str) -> None:
    """`str()` of an address is the address again, as a jump chain needs it."""
    try:
        address = parse_address(text)
    except ValueError:
        return
    assert parse_address(str(address)) == address
