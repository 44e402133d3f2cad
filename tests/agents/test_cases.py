"""Every agent against every one of its cases."""

from __future__ import annotations

import pytest

from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.outcome import Found, Outcome, Unknown, status
from tests.agents.case import Case, all_cases, outcome, reason
from tests.agents.patch import apply_diff
from tests.agents.subset import differences

CASES = [pytest.param(case, id=f"{case.agent}-{case.name}") for case in all_cases()]


@pytest.mark.parametrize("case", CASES)
def test_outcome(case: Case) -> None:
    """The status, each finding and no other, the reason, the fact."""
    given, wanted = outcome(case), case.expected
    got = {"status": status(given).value, **(_fact(given) if "fact" in wanted else {})}
    problems = list(differences({key: wanted[key] for key in got}, got))
    problems += _finding_differences(wanted.get("findings", []), findings(given))
    if "unseen" in wanted:
        problems += list(differences(wanted["unseen"], _unseen(given), "unseen"))
    if wanted.get("reason", "") not in reason(given):
        problems.append(f"{wanted['reason']!r} is not in the reason: {reason(given)}")
    assert not problems, "\n".join([*problems, f"reason: {reason(given)}"])


@pytest.mark.parametrize("case", CASES)
def test_printed_diffs_are_right(case: Case) -> None:
    """What a remedy prints as a diff applies, ends the finding, and brings no new one."""
    before = findings(outcome(case))
    for finding in before:
        if finding.remedy.diff:
            after = {_name(one) for one in findings(case.judge(apply_diff(case, finding.remedy.diff)))}
            assert _name(finding) not in after
            assert after <= {_name(one) for one in before}


def findings(given: Outcome) -> tuple[Finding, ...]:
    """Those of the outcome."""
    return given.findings if isinstance(given, Found) else ()


def _fact(given: Outcome) -> dict[str, object]:
    return {"fact": given.fact.model_dump(mode="json") if given.fact else None}


def _unseen(given: Outcome) -> list[object]:
    problems = given.unseen if isinstance(given, Found | Unknown) else ()
    return [problem.model_dump(mode="json") for problem in problems]


def _name(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.subject


def _finding_differences(wanted: list[dict[str, object]], got: tuple[Finding, ...]) -> list[str]:
    by_name = {_name(finding): finding.model_dump(mode="json") for finding in got}
    asked = {(str(one["code"]), str(one["subject"])): one for one in wanted}
    assert len(by_name) == len(got), f"two findings share code and subject: {[_name(one) for one in got]}"
    return [
        *(f"unexpected: {name}: {by_name[name]['observed']}" for name in by_name.keys() - asked.keys()),
        *(f"not found: {name}" for name in asked.keys() - by_name.keys()),
        *(
            difference
            for name in by_name.keys() & asked.keys()
            for difference in differences(asked[name], by_name[name], name[0])
        ),
    ]
