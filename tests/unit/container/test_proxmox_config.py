"""The parsers of the two configuration forms."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gapline.agents.container.lxc_config import parse_lxc
from gapline.agents.container.proxmox_config import ProxmoxConfig, flag, parse_proxmox, properties
from gapline.orchestrator.model.capture import Line

WHOLE = """\
# a note, not a switched-off setting: lxc.cgroup2.devices.allow: c 1:1 rwm
arch: amd64
dev0: /dev/nvidia-uvm-tools,mode=0666
features: nesting=1
memory: 471040
unprivileged: 0
lxc.cgroup2.devices.allow: c 195:* rwm
lxc.cgroup2.devices.allow = c 511:* rwm
LXC.unknown: x
lxc.nosuchthing: 1

[PVE:Pending]
memory: 524288
delete: swap
[before_Upgrade]
lxc.cgroup2.devices.allow: c 510:* rwm
"""


def lines(text: str) -> list[Line]:
    """As a capture gives them."""
    return [Line("t", "f", number, line) for number, line in enumerate(text.split("\n"), start=1)]


def parsed(text: str) -> ProxmoxConfig:
    """The sorted lines."""
    return parse_proxmox(lines(text))


def test_sections() -> None:
    """In force is what stands before the first section."""
    config = parsed(WHOLE)
    assert [(s.key, s.line) for s in config.keys][:2] == [("arch", 2), ("dev0", 3)]
    assert [s.value for s in config.raw] == ["c 195:* rwm", "c 511:* rwm"]
    assert [(s.key, s.value) for s in config.pending] == [("memory", "524288"), ("delete", "swap")]
    assert config.snapshots == ("before_Upgrade",)
    assert [line.number for line in config.ignored] == [9, 10]


def test_notes_and_states_are_no_settings() -> None:
    """`description:` is a note, `snapstate:` a mark; neither is ignored with a warning."""
    config = parsed("description: x\nsnapstate: delete\nmemory: 1\n")
    assert [s.key for s in config.keys] == ["memory"]
    assert config.ignored == ()


def test_raw_values_keep_their_words() -> None:
    """Only the blanks at the ends go; an empty value is a value."""
    config = parsed("lxc.mount.entry:  /a  b none bind \r\nlxc.cap.drop:\n")
    assert [s.value for s in config.raw] == ["/a  b none bind", ""]


def test_properties() -> None:
    """The first part may stand without its key."""
    assert properties("/dev/x,mode=0666,uid=5", "path") == {"path": "/dev/x", "mode": "0666", "uid": "5"}
    assert properties("path=/dev/x,deny-write=1", "path") == {"path": "/dev/x", "deny-write": "1"}
    assert flag("1")
    assert flag("Yes")
    assert not flag("0")


def test_plain_lxc() -> None:
    """Blanks do not count, quotes go, a comment begins a line."""
    config = parse_lxc(lines("# c\n lxc.uts.name = 'w1' \nlxc.cap.drop =\nlxc.x=#y\nnonsense\n"))
    assert [(s.key, s.value) for s in config.settings] == [
        ("lxc.uts.name", "w1"),
        ("lxc.cap.drop", ""),
        ("lxc.x", "#y"),
    ]
    assert [line.number for line in config.ignored] == [5]


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=40), max_size=12))
def test_every_line_has_one_place(texts: list[str]) -> None:
    """Whatever the lines hold, each is in force, pending, ignored or passed over, and never twice."""
    config = parse_proxmox(Line("t", "f", number, text) for number, text in enumerate(texts, start=1))
    numbers = [
        *(s.line for s in (*config.keys, *config.raw, *config.pending)),
        *(line.number for line in config.ignored),
    ]
    assert len(numbers) == len(set(numbers))
    assert len(parse_lxc(lines("\n".join(texts))).settings) <= len(texts)
