"""What of nvidia-smi's output leaves the target, with a stand-in for nvidia-smi and the real shell and sed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gapline.agents.host.smi.reading import SOURCES
from gapline.orchestrator.model.source import Script

OUTPUT = """\
Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error
<?xml version="1.0" ?>
<nvidia_smi_log>
\t<gpu id="00000000:01:00.0">
\t\t<serial>1320099887766</serial>
\t\t<supported_clocks>
\t\t\t<supported_mem_clock>
\t\t\t\t<value>405 MHz</value>
\t\t\t\t<supported_graphics_clock>210 MHz</supported_graphics_clock>
\t\t\t</supported_mem_clock>
\t\t</supported_clocks>
\t\t<process_info>
\t\t\t<process_name>/usr/bin/python3 serve.py --api-key sk-planted</process_name>
\t\t</process_info>
\t\t<process_info>
\t\t\t<process_name>python3 -c
token = "hf_planted"
</process_name>
\t\t</process_info>
\t</gpu>
\t<gpu id="00000000:02:00.0">
\t\t<supported_clocks>N/A</supported_clocks>
\t\t<uuid>GPU-1</uuid>
\t</gpu>
</nvidia_smi_log>
"""
LEFT = """\
Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error
<?xml version="1.0" ?>
<nvidia_smi_log>
\t<gpu id="00000000:01:00.0">
\t\t<process_info>
\t\t\t<process_name>/usr/bin/python3</process_name>
\t\t</process_info>
\t\t<process_info>
\t\t\t<process_name>python3</process_name>
\t\t</process_info>
\t</gpu>
\t<gpu id="00000000:02:00.0">
\t\t<uuid>GPU-1</uuid>
\t</gpu>
</nvidia_smi_log>
"""


def asked(folder: Path) -> subprocess.CompletedProcess[str]:
    """The source's script, where only what is in that folder comes before the system's own programs."""
    source = SOURCES["states"]
    assert isinstance(source, Script)
    path = f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return subprocess.run(["sh", "-c", source.text], capture_output=True, text=True, check=False, env={"PATH": path})


def stand_in(folder: Path, status: int) -> None:
    """A program called nvidia-smi that prints `OUTPUT`."""
    (folder / "output").write_text(OUTPUT)
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat {folder}/output\nexit {status}\n")
    program.chmod(0o755)


def test_only_what_is_needed_leaves(tmp_path: Path) -> None:
    """No arguments of processes, no serial number, no supported clocks; every element keeps its end."""
    stand_in(tmp_path, 0)
    assert asked(tmp_path).stdout == LEFT


def test_the_exit_status_is_that_of_nvidia_smi(tmp_path: Path) -> None:
    """15: a GPU is lost. The filter behind it must not hide that."""
    stand_in(tmp_path, 15)
    assert asked(tmp_path).returncode == 15


def test_missing_program_is_said(tmp_path: Path) -> None:
    """One line on standard error that names it."""
    done = asked(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "nvidia-smi is not installed\n")
