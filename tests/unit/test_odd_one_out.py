"""Hosts with one label and GPUs of one host, compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapline.orchestrator.cli.answer import answer
from gapline.orchestrator.merger import merge
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Finding, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import OutcomeEntry, Run, TargetEntry
from gapline.orchestrator.model.trait import Trait
from gapline.orchestrator.odd_one_out import AGENT, GPU, HOST, odd_ones
from gapline.orchestrator.remerge import State, changes, remerge
from tests.unit.invented import entry, finding, found, run, target, unknown

LABEL = ("inference",)
VALUES = st.sampled_from(["a", "b", "c"])


def told(
    host: str, *values: str, name: str = "kernel release", among: str = "", agent: str = "host.level"
) -> OutcomeEntry:
    """What an agent saw of a host: its own value, or with several that of each of its GPUs."""
    subjects = [""] if len(values) == 1 else [f"0000:{number:02x}:00.0" for number in range(len(values))]
    traits = tuple(
        Trait(
            subject=subject,
            name=name,
            value=value,
            among=among,
            evidence=Evidence(target=host, source="/proc/gauge", line=1, text=f"{subject} {value}"),
        )
        for subject, value in zip(subjects, values, strict=True)
    )
    return entry(target=host, agent=agent).model_copy(update={"traits": traits})


def labelled(host: str, labels: tuple[str, ...] = LABEL) -> TargetEntry:
    """A host with labels."""
    return target(host).model_copy(update={"labels": labels})


def fleet(values: Mapping[str, str], labels: tuple[str, ...] = LABEL) -> dict[str, tuple[Finding, ...]]:
    """What is odd among hosts, given the value of each."""
    return odd_ones([labelled(host, labels) for host in values], [told(host, one) for host, one in values.items()])


def test_the_minority_is_named_with_both_lines() -> None:
    """One of three: what it has, what the others have, who they are, and a line of each."""
    ((host, (odd,)),) = fleet({"a": "6.8", "b": "6.14", "c": "6.14"}).items()
    assert (host, odd.code, odd.subject, odd.severity) == ("a", HOST, "kernel release", Severity.INFO)
    assert odd.title == "Kernel release is 6.8 here, but 2 of 3 hosts labelled inference have 6.14"
    assert (odd.observed, odd.expected) == ("6.8 on a", "6.14, as on b, c, unless a is meant to differ")
    assert [(one.target, one.text) for one in odd.evidence] == [("a", " 6.8"), ("b", " 6.14")]
    assert odd.remedy.verify_agent == "host.level"
    assert odd.settled_by


@pytest.mark.parametrize(
    "values",
    ["a", "ab", "aa", "aaa", "aabb", "abc", "aabc", "aabbcc"],
    ids=["alone", "two differ", "two agree", "unanimous", "two against two", "all differ", "half", "three pairs"],
)
def test_no_majority_no_word(values: str) -> None:
    """Without more than half there is no telling who is odd."""
    assert fleet(dict(zip("123456", values, strict=False))) == {}


def test_a_second_odd_one_does_not_hide_the_first() -> None:
    """Each value but the majority's is named, also where there are three of them."""
    assert sorted(fleet(dict(zip("12345", "aaabc", strict=True)))) == ["4", "5"]


def test_hosts_without_a_common_label_are_not_compared() -> None:
    """Nobody said that they are meant to be alike."""
    values = dict(zip("123", "aab", strict=True))
    assert fleet(values, ()) == {}
    apart = [labelled(host, (host,)) for host in values]
    assert odd_ones(apart, [told(host, value) for host, value in values.items()]) == {}


def test_of_several_labels_the_one_with_most_hosts_is_told() -> None:
    """One finding for a host and trait, however many labels it is odd under."""
    hosts = [labelled(str(number), ("rack", "all")) for number in range(3)] + [labelled("3", ("all",))]
    odd = odd_ones(hosts, [told("0", "x"), *(told(str(number), "y") for number in range(1, 4))])
    assert [one.title for one in odd["0"]] == ["Kernel release is x here, but 3 of 4 hosts labelled all have y"]


def test_only_those_who_are_alike_in_the_rest_are_peers() -> None:
    """The firmware of another board is another firmware."""
    hosts = [labelled(name) for name in "123"]
    board = [
        told(name, value, among=among) for name, value, among in (("1", "x", "A"), ("2", "y", "B"), ("3", "y", "B"))
    ]
    assert odd_ones(hosts, board) == {}


def test_what_was_not_seen_is_not_compared() -> None:
    """A host without an answer is neither odd nor one of the majority."""
    hosts = [labelled(name) for name in "123"]
    assert odd_ones(hosts, [told("1", "x"), told("2", "y"), unknown(target="3")]) == {}


def test_a_gpu_is_compared_with_those_of_its_host() -> None:
    """Needs no label; three of four have the same limit."""
    ((host, (odd,)),) = odd_ones([target("a")], [told("a", "600 W", "600 W", "450 W", "600 W", among="H200")]).items()
    assert (host, odd.code, odd.subject) == ("a", GPU, "0000:02:00.0: kernel release, H200")
    assert odd.title.endswith("is 450 W, but 3 of 4 GPUs of this host (H200) have 600 W")
    assert [one.text for one in odd.evidence] == ["0000:02:00.0 450 W", "0000:00:00.0 600 W"]


def test_gpus_of_a_host_that_all_differ_from_those_of_others() -> None:
    """Nothing is odd within any host, but one host is."""
    hosts = [labelled(name) for name in "123"]
    odd = odd_ones(hosts, [told("1", "600 W", "600 W"), told("2", "450 W", "450 W"), told("3", "600 W", "600 W")])
    assert [(host, [one.code for one in findings]) for host, findings in odd.items()] == [("2", [HOST])]


def test_containers_are_not_compared() -> None:
    """They share their host's values."""
    hosts = [labelled(f"{name}/7") for name in "123"]
    assert odd_ones(hosts, [told(f"{name}/7", value) for name, value in zip("123", "aab", strict=True)]) == {}


peers = st.dictionaries(st.sampled_from([f"h{number}" for number in range(9)]), VALUES, min_size=1)


@given(peers.flatmap(lambda values: st.tuples(st.just(values), st.permutations(sorted(values)))))
def test_order_does_not_matter(values_and_order: tuple[dict[str, str], Sequence[str]]) -> None:
    """Whichever host answers first, the same is said."""
    values, order = values_and_order
    assert fleet({host: values[host] for host in order}) == fleet(values)


@given(peers)
def test_exactly_the_minority_is_named(values: dict[str, str]) -> None:
    """All those without the value of more than half, and nobody where there is no such value."""
    usual, count = Counter(values.values()).most_common(1)[0]
    expected = {host for host, value in values.items() if value != usual} if 2 * count > len(values) else set()
    assert set(fleet(values)) == expected


@given(st.lists(VALUES, min_size=2, max_size=8))
def test_gpus_are_compared_as_hosts_are(values: list[str]) -> None:
    """The same rule within a host, whatever the order of its GPUs."""
    said = odd_ones([target("a")], [told("a", *values)]).get("a", ())
    usual, count = Counter(values).most_common(1)[0]
    assert len(said) == (len(values) - count if 2 * count > len(values) else 0)
    assert all(usual in one.expected for one in said)


def compared(values: Mapping[str, str], *more: OutcomeEntry) -> Run:
    """A run of these hosts."""
    outcomes = (*more, *(told(host, value) for host, value in values.items()))
    return run(*outcomes, targets=tuple(labelled(host) for host in "123"))


def odd_in(one: Run) -> list[str]:
    """The hosts that the run calls odd."""
    return [outcome.target for outcome in one.outcomes if outcome.agent == AGENT.id]


def test_the_run_holds_one_answer_for_each_odd_host() -> None:
    """It is found, counted, and made when the last answer was there; a merge of a merge says nothing twice."""
    before = compared({"1": "x", "2": "y", "3": "y"})
    assert odd_in(before) == ["1"]
    (odd,) = (outcome for outcome in before.outcomes if outcome.agent == AGENT.id)
    assert (odd.status, odd.layer, odd.times.judged) == (Status.FOUND, 2, 0.6)
    assert before.summary.findings["info"] == 1
    assert merge(before.run, before.targets, before.outcomes) == before
    assert Run.model_validate_json(before.model_dump_json()) == before


@pytest.mark.parametrize(
    ("fresh", "state", "odd"),
    [
        ([told("1", "y")], {"1": State.FIXED}, []),
        ([told("1", "x")], {"1": State.STILL}, ["1"]),
        ([told("3", "x")], {"1": State.FIXED, "2": State.NEW}, ["2"]),
        ([unknown(target="1")], {"1": State.UNKNOWN}, ["1"]),
        ([entry(target="1", agent="host.other")], {}, ["1"]),
    ],
    ids=["repaired", "still", "the others followed", "not seen", "another agent"],
)
def test_a_rerun_compares_again(fresh: Sequence[OutcomeEntry], state: dict[str, State], odd: list[str]) -> None:
    """A single host again is compared with what is known of the others."""
    old = compared({"1": "x", "2": "y", "3": "y"})
    new = run(*fresh, targets=(labelled(fresh[0].target),))
    merged = remerge(old, new)
    told_of = {one.target: one.state for one in changes(old, new, merged).changes if one.code == HOST}
    assert (told_of, odd_in(merged)) == (state, odd)


def test_the_terminal_tells_odd_ones_behind_worse_findings() -> None:
    """They are for information and would be cut off; the count of what is left out leaves them out."""
    worse = [finding(f"c{number}", subject=str(number)) for number in range(10)]
    lines = [line.plain for line in answer(compared({"1": "x", "2": "y", "3": "y"}, found(*worse, agent="host.more")))]
    assert "… and 2 more in the report" in lines
    assert lines[lines.index("\nodd one out") + 1].endswith(f"[{HOST}]")
