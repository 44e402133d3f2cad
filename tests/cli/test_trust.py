"""`gapline trust`: a key is recorded when somebody has compared it, and never replaced."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.ssh.sshd import Sshd, keygen

pytestmark = pytest.mark.ssh


def fingerprint(sshd: Sshd) -> str:
    """As the host prints it at its console."""
    shown = subprocess.run(["ssh-keygen", "-lf", f"{sshd.host_key}.pub"], capture_output=True, text=True, check=True)
    return shown.stdout.split()[1]


def test_by_its_fingerprint(gapline: CommandLine, sshd: Sshd, tmp_path: Path) -> None:
    """A wrong one is refused, the right one recorded once, a changed key never; nobody there means no."""
    known = tmp_path / "known"
    gapline.fleet(sshd.host(known_hosts=known))
    nobody = gapline("trust", "pve1")
    assert (nobody.code, known.exists()) == (2, False)
    assert "--fingerprint" in nobody.err
    wrong = gapline("trust", "pve1", "--fingerprint", "SHA256:" + "A" * 43)
    assert (wrong.code, known.exists()) == (3, False)
    assert fingerprint(sshd) in wrong.err
    right = gapline("trust", "pve1", "--fingerprint", fingerprint(sshd))
    assert (right.code, right.err) == (0, "")
    recorded = known.read_text()
    assert recorded.split()[0] == sshd.listed
    assert "already in" in gapline("trust", "pve1", "--fingerprint", fingerprint(sshd)).out
    assert known.read_text() == recorded
    sshd.stop()
    for file in (sshd.host_key, Path(f"{sshd.host_key}.pub")):
        file.unlink()
    keygen(sshd.host_key)
    sshd.start()
    changed = gapline("trust", "pve1", "--fingerprint", fingerprint(sshd))
    assert changed.code == 3
    assert "hint: " in changed.err
    assert known.read_text() == recorded


@pytest.mark.parametrize(("said", "code"), [(b"y\n", 0), (b"n\n", 1)])
def test_by_a_person(gapline: CommandLine, sshd: Sshd, said: bytes, code: int) -> None:
    """At a terminal the fingerprint is shown and the answer counts; known_hosts is the one that ssh uses."""
    gapline.more["TERM"] = "dumb"
    ours, theirs = pty.openpty()
    login = f"root@{sshd.address}:{sshd.port}"
    process = gapline.start("trust", login, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    seen = b""
    while b"[y/N]" not in seen:
        seen += os.read(ours, 4096)
    assert fingerprint(sshd).encode() in seen
    os.write(ours, said)
    assert process.wait() == code
    os.close(ours)
    assert (gapline.home / ".ssh" / "known_hosts").exists() is (code == 0)
