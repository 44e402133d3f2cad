"""The model of LXC's device rules: what its source says, and what must hold for every list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapline.agents.container.device_policy import Clear, DevicePolicy, Step, build_policy
from gapline.agents.container.device_rule import Device, PathRule, Rule, Whole, parse_rule

UVM = Device("c", 508, 0)
CONTROL = Device("c", 195, 255)


def find(path: str) -> Device | None:
    """The one node of this host."""
    return UVM if path == "/dev/nvidia-uvm" else None


def step(word: str, value: str) -> Step:
    """A rule as a configuration writes it; an empty value clears."""
    allow = word == "allow"
    parsed = parse_rule(value, allow=allow) if value else Clear(allow)
    assert parsed is not None, value
    return parsed


def policy(*lines: tuple[str, str]) -> DevicePolicy:
    """The policy of some lines."""
    return build_policy([step(word, value) for word, value in lines], find)


@pytest.mark.parametrize(
    ("lines", "uvm"),
    [
        pytest.param([], True, id="no rules, no program"),
        pytest.param([("deny", "a")], True, id="only `deny a`, no program"),
        pytest.param([("allow", "a")], True, id="only `allow a`, no program"),
        pytest.param([("deny", "a"), ("allow", "c 195:* rwm")], False, id="allow-list without it"),
        pytest.param([("allow", "c 195:* rwm")], False, id="a list begins as an allow-list"),
        pytest.param([("deny", "a"), ("allow", "c 508:* rwm")], True, id="allow-list with it"),
        pytest.param([("deny", "a"), ("allow", "c 508:1 rwm")], False, id="other minor"),
        pytest.param([("deny", "a"), ("allow", "b 508:* rwm")], False, id="other type"),
        pytest.param([("deny", "a"), ("allow", "a 508:* rwm")], True, id="both types"),
        pytest.param([("deny", "a"), ("allow", "c *:* m")], False, id="mknod is not opening"),
        pytest.param([("deny", "a"), ("allow", "c 508:* r"), ("allow", "c 508:* w")], False, id="rights do not add up"),
        pytest.param([("deny", "a"), ("allow", "c 508:* rwm"), ("deny", "c 508:0 rwm")], True, id="deny is skipped"),
        pytest.param([("deny", "a"), ("allow", "c 508:* rwm"), ("deny", "c 508:* rwm")], False, id="a twin flips"),
        pytest.param(
            [("deny", "a"), ("allow", "c 508:* rwm"), ("deny", "c 508:* wrm")], True, id="no twin by spelling"
        ),
        pytest.param([("deny", "a"), ("deny", "c 1:3 rwm")], False, id="a skipped rule still makes a program"),
        pytest.param([("allow", "a"), ("allow", "c 195:* rwm")], True, id="allow is skipped in a deny-list"),
        pytest.param([("allow", "a"), ("deny", "c 508:* rwm")], False, id="deny-list with it"),
        pytest.param([("allow", "a"), ("deny", "c 508:* r")], True, id="denying one right denies not both"),
        pytest.param(
            [("allow", "c 508:* rwm"), ("deny", "a"), ("allow", "c 1:3 rwm")], False, id="late `deny a` wipes"
        ),
        pytest.param([("deny", "a *:* rwm"), ("allow", "c 508:* rwm")], True, id="`deny a *:*` is not global"),
        pytest.param([("deny", "a"), ("allow", "c 1:3 rwm"), ("allow", "")], True, id="cleared, no program"),
        pytest.param(
            [("allow", "a"), ("allow", ""), ("allow", "c 195:* rwm")], False, id="a cleared `a` leaves no trace"
        ),
        pytest.param([("deny", "a"), ("allow", "/dev/nvidia-uvm rw")], True, id="by path"),
        pytest.param([("deny", "a"), ("allow", "/dev/nvidia-uvm r")], False, id="by path, one right"),
        pytest.param([("allow", "c 1:3 rwm"), ("allow", "/dev/gone rw")], False, id="a missing path is no rule"),
    ],
)
def test_answers(lines: list[tuple[str, str]], uvm: bool) -> None:
    """May nvidia-uvm be opened for reading and writing?"""
    assert policy(*lines).allows(UVM) is uvm


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        pytest.param([("allow", "a *:* rwm")], True, id="allow-list"),
        pytest.param([("allow", "a *:* mwr")], True, id="any spelling"),
        pytest.param([("allow", "a *:* rw")], False, id="not mknod"),
        pytest.param([("allow", "a"), ("deny", "a *:* rwm")], True, id="deny-list"),
        pytest.param([("allow", "a"), ("allow", "a *:* rwm")], False, id="skipped"),
        pytest.param([("allow", "a *:* rwm"), ("deny", "a")], False, id="wiped"),
        pytest.param([("allow", "a *:* rwm"), ("deny", "a *:* rwm")], False, id="flipped by its twin"),
    ],
)
def test_lists_that_the_kernel_refuses(lines: list[tuple[str, str]], refused: bool) -> None:
    """A rule that decides everything makes the end of the program unreachable."""
    assert (policy(*lines).refused is not None) is refused


@pytest.mark.parametrize(
    "value",
    [
        "c 195",
        "c 195:*",
        "195:* rwm",
        "c  195:* rwm",
        "c 195 rwm",
        "c 195:* x",
        "c 195:* rwx",
        "d 1:3 rwm",
        "c -1:3 rwm",
        "A",
        "a ",
        "c 2147483648:0 rwm",
        "c 195:* rwm",
        "/dev/nvidia0",
        "nvidia0 rw",
        "c 0xc3:* rwm",
        "",
        "c *: rwm",
    ],
)
def test_grammar_refuses(value: str) -> None:
    """LXC takes nothing but its own form; what a list of refused values holds by mistake shows here."""
    assert (parse_rule(value, allow=True) is None) is (value != "c 195:* rwm")


def test_paths_are_for_allow_only() -> None:
    """A denied path is no rule."""
    assert parse_rule("/dev/nvidia-uvm rw", allow=False) is None
    assert isinstance(parse_rule("/dev/nvidia-uvm rw", allow=True), PathRule)


NUMBERS = st.sampled_from(["*", "1", "195", "508"])
RULES = st.builds(
    lambda kind, major, minor, access: f"{kind} {major}:{minor} {access}",
    st.sampled_from("abc"),
    NUMBERS,
    st.sampled_from(["*", "0", "255"]),
    st.sampled_from(["r", "w", "m", "rw", "wr", "rwm", "mwr"]),
)
LINES = st.lists(st.tuples(st.sampled_from(["allow", "deny"]), RULES | st.just("a")), max_size=8)
DEVICES = st.builds(Device, st.sampled_from("bc"), st.sampled_from([1, 195, 508]), st.sampled_from([0, 255]))


@given(LINES, DEVICES)
def test_less_access_is_never_denied_more(lines: list[tuple[str, str]], device: Device) -> None:
    """In an allow-list who may read and write may also read."""
    built = policy(*lines)
    if built.allow_list and built.allows(device, "rw"):
        assert built.allows(device, "r")
        assert built.allows(device, "w")


@given(LINES, LINES, DEVICES)
def test_a_bare_a_forgets(before: list[tuple[str, str]], after: list[tuple[str, str]], device: Device) -> None:
    """What stands before a bare `a` never matters."""
    whole = policy(*before, ("deny", "a"), *after)
    assert whole == policy(("deny", "a"), *after)
    assert whole.allows(device) is policy(("deny", "a"), *after).allows(device)


@given(LINES, DEVICES)
def test_every_rule_is_active_or_skipped(lines: list[tuple[str, str]], device: Device) -> None:
    """And only active ones decide."""
    built = policy(*lines)
    assert sorted(map(str, (*built.active, *built.skipped))) == sorted(map(str, built.rules))
    deciding = built.deciding(device)
    assert deciding is None or deciding in built.active


@given(st.text(max_size=20), st.booleans())
def test_any_value_is_a_rule_or_nothing(value: str, allow: bool) -> None:
    """Never an exception."""
    assert isinstance(parse_rule(value, allow=allow), Whole | Rule | PathRule | None)
