"""The filter of AppArmor's denials on a kernel's log: this container's lines only, and of them what is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gapline.agents.container.denial_reading import DENIALS, Denials, denials
from gapline.orchestrator.model.capture import Capture

AWKS = ["mawk", "gawk", "busybox awk", "original-awk"]
FIRST = "[    0.000000] Linux version 6.8.12-9-pve"
LOG = """\
[   31.1] audit: apparmor="DENIED" operation="mount" class="mount" info="failed flags match" error=-13 \
profile="lxc-129_</var/lib/lxc>" name="/run/credentials/a.service/" pid=331 comm="(sd-mkdcreds)" flags="rw, remount"
[   31.2] audit: apparmor="DENIED" operation="mount" class="mount" info="failed flags match" error=-13 \
profile="lxc-129_</var/lib/lxc>" name="/run/credentials/a.service/" pid=332 comm="(sd-mkdcreds)" flags="rw, remount"
[   34.0] audit: apparmor="DENIED" operation="open" class="file" namespace="root//lxc-129_<-var-lib-lxc>" \
profile="/usr/bin/engine" name="/dev/nvidia-uvm" pid=339 comm="a|b" requested_mask="wr" fsuid=4711
[   35.0] audit: apparmor="DENIED" operation="open" class="file" profile="lxc-1290_</var/lib/lxc>" name="/dev/nvidia0"
[   35.1] audit: apparmor="DENIED" operation="open" class="file" profile="lxc-x-lxc-129_<v>" name="/dev/nvidia0"
[   36.0] audit: apparmor="ALLOWED" operation="open" class="file" profile="lxc-129_</var/lib/lxc>" name="/dev/nvidia0"
"""


@pytest.fixture(params=AWKS)
def awk(request: pytest.FixtureRequest) -> str:
    """An awk that a host may have."""
    words: str = request.param
    if shutil.which(words.partition(" ")[0]) is None:
        pytest.skip(f"{words} is not installed")
    return words


def read(awk: str, log: Path) -> Denials:
    """The fact for container 129."""
    text = DENIALS.text.replace("[ ! -d /sys/module/apparmor ]", "false").replace("dmesg 2>/dev/null", f"cat {log}")
    text = text.replace("awk -v", f"{awk} -v").replace("journalctl -k", "false").replace("/var/log/audit", f"{log}.d")
    done = subprocess.run(["sh", "-c", text], capture_output=True, check=False, env={**os.environ, "CT": "129"})
    assert (done.returncode, done.stderr) == (0, b"")
    return denials(Capture("here", DENIALS.key, DENIALS.name, done.stdout))


def test_own_lines(awk: str, tmp_path: Path) -> None:
    """Counted, with program and path; neither another container's nor what was allowed."""
    log = tmp_path / "log"
    log.write_text(f"{FIRST}\n{LOG}")
    fact = read(awk, log)
    assert fact.whole
    assert [(one.times, one.operation, one.name, one.program) for one in fact.denials] == [
        (2, "mount", "/run/credentials/a.service/", "(sd-mkdcreds)"),
        (1, "open", "/dev/nvidia-uvm", "a?b"),
    ]


def test_beginning_is_lost(awk: str, tmp_path: Path) -> None:
    """Without the first line of the boot the log is not whole, and the journal gave nothing either."""
    log = tmp_path / "log"
    log.write_text(LOG)
    fact = read(awk, log)
    assert not fact.whole
