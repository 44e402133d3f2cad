"""The runbook: the right order, exactly one reboot, and a script that runs nothing unasked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapline.orchestrator.model.finding import Effect, Risk, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import OutcomeEntry, ReportedFinding, Run, TargetKind
from gapline.orchestrator.model.written_fact import WrittenFact
from gapline.reports.runbook.markdown import markdown
from gapline.reports.runbook.plan import runbook
from gapline.reports.runbook.script import script
from gapline.reports.runbook.step import Part
from tests.html.runs import finding, outcome, remedy, run, target


def found(where: str, code: str, risk: Risk, severity: Severity = Severity.MEDIUM, **fields: Any) -> ReportedFinding:
    """A finding whose remedy has that risk; the remedy's words are those of the code."""
    of_remedy = {"now": f"now {code}", "risk": risk, "verify_agent": f"agent.{code}", **fields.pop("remedy", {})}
    effect = {"effect": Effect.BREAKS} if severity.rank < Severity.MEDIUM.rank else {}
    return finding(
        where, code, fields.pop("subject", code), severity=severity, remedy=remedy(**of_remedy), **effect, **fields
    )


def of(where: str, agent: str, *findings: ReportedFinding, **fields: Any) -> OutcomeEntry:
    """An outcome that found these."""
    return outcome(where, agent, Status.FOUND if findings else Status.PASSED, findings=findings, **fields)


def whole(*outcomes: OutcomeEntry) -> Run:
    """Two hosts, one of them with two containers."""
    targets = (
        target("pve1", TargetKind.PROXMOX_HOST),
        target("pve1/129", TargetKind.LXC_CONTAINER),
        target("pve1/130", TargetKind.LXC_CONTAINER),
        target("gpu-2.lab", TargetKind.LINUX_HOST),
    )
    return run(targets, outcomes)


BUSY = whole(
    of("pve1", "host.a", found("pve1", "live.low", Risk.R1, Severity.LOW), found("pve1", "boot.one", Risk.R3)),
    of("pve1", "host.b", found("pve1", "boot.two", Risk.R3), found("pve1", "live.high", Risk.R1, Severity.HIGH)),
    of("pve1", "host.c", found("pve1", "trade.one", Risk.R4), found("pve1", "hint.one", Risk.R0, Severity.INFO)),
    of("pve1", "host.kernel", fact=WrittenFact(b'{"boot":{"loader":"systemd-boot","managed_esps":true}}')),
    of("pve1", "host.next_boot"),
    of(
        "pve1/129",
        "container.a",
        *(found("pve1/129", "ct.same", Risk.R2, subject=f"n{number}") for number in range(12)),
    ),
    of("pve1/129", "container.b", found("pve1/129", "ct.other", Risk.R2, remedy={"commands": ("true 'a  b'",)})),
    of("pve1/130", "container.a", found("pve1/130", "ct.waived", Risk.R2, waived=True)),
    of("gpu-2.lab", "host.a", found("gpu-2.lab", "boot.three", Risk.R3)),
)


def test_parts_in_their_order() -> None:
    """Live before restarts before the reboot; the worst first; equal remedies are one step; info is none."""
    one, two = runbook(BUSY).hosts
    codes = {part: [step.findings[0].code for step in one.of(part)] for part in Part}
    assert codes == {
        Part.LIVE: ["live.high", "live.low"],
        Part.RESTART: ["ct.other", "ct.same"],
        Part.REBOOT: ["boot.one", "boot.two"],
        Part.TRADE: ["trade.one"],
    }
    assert [len(step.findings) for step in one.of(Part.RESTART)] == [1, 12]
    assert one.restarted == ("pve1/129",)
    assert [step.findings[0].code for step in two.steps] == ["boot.three"]
    assert runbook(BUSY).left_out == 1


def test_one_reboot_with_a_way_back() -> None:
    """However many steps want one. The next boot is looked at before, by the boot loader that was seen."""
    text = "".join(markdown(runbook(BUSY, "pve1")))
    assert text.count("systemctl reboot") == 1
    assert text.count("pct reboot 129") == 1
    before, after = text.split("systemctl reboot")
    assert before.index("kernel add") < before.index("gapline rerun host.next_boot --target pve1")
    assert "systemd-boot's menu" in before
    assert "gapline rerun agent.boot.one agent.boot.two --target pve1" in after
    linux = "".join(markdown(runbook(BUSY, "gpu-2.lab")))
    assert 'apt-mark hold "linux-image-$(uname -r)"' in linux
    assert "which loader it is was not seen" in linux
    assert "pct" not in linux


def test_a_container_by_itself() -> None:
    """Only its own steps, and no reboot of its host."""
    text = "".join(markdown(runbook(BUSY, "pve1/129")))
    assert "ct.other" in text
    assert "systemctl reboot" not in text
    assert "live.high" not in text


def test_nothing_to_do() -> None:
    """A clean run says so, in both forms."""
    clean = runbook(whole(of("pve1", "host.a")))
    assert "There is nothing to do" in "".join(markdown(clean))
    assert run_script("".join(script(clean)), "pve1").returncode == 2


def run_script(text: str, *arguments: str, answers: str = "") -> subprocess.CompletedProcess[str]:
    """The script in the system's shell."""
    return subprocess.run(
        ["sh", "-c", text, "runbook.sh", *arguments], input=answers, capture_output=True, text=True, check=False
    )


def checked(text: str) -> None:
    """Both readers accept it."""
    assert subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=True).stderr == ""
    if shutil.which("shellcheck"):
        said = subprocess.run(["shellcheck", "-s", "sh", "-"], input=text, capture_output=True, text=True, check=False)
        assert said.stdout == ""


def test_script_passes_its_readers() -> None:
    """`sh -n` and, where it is installed, shellcheck."""
    checked("".join(script(runbook(BUSY))))


def test_script_asks_before_everything(tmp_path: Path) -> None:
    """A y runs that step alone; no answer, and the end of input, run nothing."""
    proof = tmp_path / "proof"
    steps = [
        found("gpu-2.lab", f"live.{name}", Risk.R1, remedy={"commands": (f"echo {name} >>{proof}",)}) for name in "ab"
    ]
    text = "".join(script(runbook(whole(of("gpu-2.lab", "host.a", *steps)))))
    assert run_script(text, "gpu-2.lab").returncode == 0
    assert run_script(text, "gpu-2.lab", answers="n\nno\n").returncode == 0
    assert run_script(text, "other", answers="y\ny\n").returncode == 2
    assert not proof.exists()
    assert run_script(text, "gpu-2.lab", answers="n\ny\n").returncode == 0
    assert proof.read_text() == "b\n"


HOSTILE = st.text(alphabet=st.sampled_from("a '\"`$()\\\n;&|#*_[]<>\u202e\x1b\0{}%!-"), max_size=30)


@settings(deadline=None, max_examples=40)  # starts shells each time
@given(title=HOSTILE, subject=HOSTILE, now=HOSTILE)
def test_text_from_targets_stays_text(title: str, subject: str, now: str) -> None:
    """Whatever a target said is printed in one line, and neither executed nor markup."""
    one = found("pve1", "x.y", Risk.R1, subject=subject, title=f"{title}$(kill $$)", remedy={"now": f"{now}`kill $$`"})
    book = runbook(whole(of("pve1", "host.a", one)))
    text = "".join(script(book))
    checked(text)
    done = run_script(text, "pve1")
    assert done.returncode == 0
    assert "$(kill $$)" in done.stdout
    assert "".join(markdown(book)).count("\n## ") == 1


@pytest.mark.parametrize("form", ["markdown", "sh"])
def test_both_forms_name_what_is_synthetic(form: str) -> None:
    """Nobody shall carry out the worked example."""
    invented = BUSY.model_copy(update={"run": BUSY.run.model_copy(update={"synthetic": True})})
    write = markdown if form == "markdown" else script
    assert "synthetic data" in "".join(write(runbook(invented)))
