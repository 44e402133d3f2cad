"""What a capture makes of its bytes."""

from __future__ import annotations

from gapline.orchestrator.model.capture import Capture


def test_lines_of_files_by_their_paths() -> None:
    """Colons in paths and in texts: an open end of a pattern takes no colon, everything else does."""
    pattern = "/sys/*/link /etc/modprobe.d/* /proc/x"
    out = b"/sys/0000:01:00.0/link:a:b\n/sys/0000:01:00.0/link:c\n/etc/modprobe.d/n.conf:options x:y /z:1\n"
    out += b"/proc/x:/sys/k\n"
    files = Capture("h", f"glob:{pattern}", pattern, out).files()
    assert {path: [(line.number, line.text) for line in lines] for path, lines in files.items()} == {
        "/sys/0000:01:00.0/link": [(1, "a:b"), (2, "c")],
        "/etc/modprobe.d/n.conf": [(1, "options x:y /z:1")],
        "/proc/x": [(1, "/sys/k")],
    }
