"""Odd one out: what a host does not share with most hosts of its label, or a GPU with most GPUs of its host. Pure.

A majority is more than half, so there are always at least three peers. Where no value has one, nothing is said; every
value but the majority's is named, so that a second odd one never hides the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gapline.orchestrator.model.agent import Code, FleetAgent, Layer
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.run import OutcomeEntry, TargetEntry
from gapline.orchestrator.model.trait import Trait

HOST, GPU = "fleet.odd_host", "fleet.odd_gpu"
AGENT = FleetAgent(
    id="fleet.odd_one_out",
    title="Odd one out",
    layer=Layer.SYSTEM,
    codes=(
        Code(
            code=HOST,
            title="A host differs from most hosts with its label",
            meaning="Hosts that share a label in the fleet file are taken to be meant alike. More than half of those "
            "that could be seen agree on a value, and this host has another one: a lead when one of them is slower or "
            "fails alone. It does not say which of the two is right: the first host that was repaired is odd, too.",
        ),
        Code(
            code=GPU,
            title="A GPU differs from most GPUs of its host",
            meaning="More than half of the GPUs of one model in this host agree on a value, and this GPU has another "
            "one. Work that is split over GPUs waits for the slowest of them, so one that differs is worth a look; "
            "whether it is slower is not said.",
        ),
    ),
)
_NAMED = 3


class _Question(NamedTuple):
    """What is compared: values of one name, told by one agent, of those who are alike in the rest."""

    agent: str
    name: str
    among: str


@dataclass(frozen=True, slots=True)
class _Peers:
    """Those who are compared, by their names; a value has the majority."""

    question: _Question
    traits: Mapping[str, Trait]
    usual: str
    what: str  # "hosts labelled inference"

    @property
    def like_most(self) -> tuple[str, ...]:
        """The names of the majority, in their order."""
        return tuple(sorted(name for name, trait in self.traits.items() if trait.value == self.usual))

    @property
    def odd(self) -> Iterator[tuple[str, Trait]]:
        """Everybody else."""
        return ((name, trait) for name, trait in self.traits.items() if trait.value != self.usual)


def odd_ones(targets: Iterable[TargetEntry], outcomes: Iterable[OutcomeEntry]) -> dict[str, tuple[Finding, ...]]:
    """The findings by host, in the order of the targets; hosts without any are left out."""
    labels = {target.id: target.labels for target in targets if target.parent is None}
    found: dict[str, dict[tuple[str, str], Finding]] = {host: {} for host in labels}
    for question, by_host in _told(labels, outcomes).items():
        for host, one in (*_odd_gpus(question, by_host), *_odd_hosts(question, by_host, labels)):
            found[host].setdefault((one.code, one.subject), one)
    return {host: tuple(by_subject.values()) for host, by_subject in found.items() if by_subject}


def _told(
    hosts: Iterable[str], outcomes: Iterable[OutcomeEntry]
) -> Mapping[_Question, Mapping[str, Mapping[str, Trait]]]:
    """The traits by question, host and subject."""
    known = frozenset(hosts)
    told: dict[_Question, dict[str, dict[str, Trait]]] = {}
    for entry in outcomes:
        for trait in entry.traits if entry.target in known else ():
            question = _Question(entry.agent, trait.name, trait.among)
            told.setdefault(question, {}).setdefault(entry.target, {})[trait.subject] = trait
    return told


def _odd_gpus(question: _Question, by_host: Mapping[str, Mapping[str, Trait]]) -> Iterator[tuple[str, Finding]]:
    for host, by_subject in by_host.items():
        gpus = {subject: trait for subject, trait in by_subject.items() if subject}
        for peers in _peers(question, gpus, "GPUs of this host"):
            yield from ((host, _gpu_finding(gpu, trait, peers)) for gpu, trait in peers.odd)


def _odd_hosts(
    question: _Question, by_host: Mapping[str, Mapping[str, Trait]], labels: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Finding]]:
    """Under the label with the most peers first: it is the one that is told."""
    values = {host: trait for host, by_subject in by_host.items() if (trait := _of_all(by_subject)) is not None}
    labelled: dict[str, dict[str, Trait]] = {}
    for host, trait in values.items():
        for label in labels[host]:
            labelled.setdefault(label, {})[host] = trait
    for label, hosts in sorted(labelled.items(), key=lambda item: (-len(item[1]), item[0])):
        for peers in _peers(question, hosts, f"hosts labelled {label}"):
            yield from ((host, _host_finding(host, trait, peers)) for host, trait in peers.odd)


def _of_all(by_subject: Mapping[str, Trait]) -> Trait | None:
    """A host's own trait, or that of its GPUs if they agree: else they are compared with each other only."""
    alike = len({trait.value for trait in by_subject.values()}) == 1
    return by_subject[min(by_subject)] if alike else None


def _peers(question: _Question, traits: Mapping[str, Trait], what: str) -> Iterator[_Peers]:
    """None where all agree, or where no value has a majority."""
    counts = Counter(trait.value for trait in traits.values())
    for usual, count in counts.most_common(1):
        if len(traits) < 2 * count and count < len(traits):
            yield _Peers(question, traits, usual, what)


def _host_finding(host: str, trait: Trait, peers: _Peers) -> Finding:
    name = trait.name
    return Finding(
        code=HOST,
        subject=_subject(trait),
        severity=Severity.INFO,
        title=f"{name[:1].upper()}{name[1:]} is {trait.value} here, but {_most(peers)}",
        observed=f"{trait.value} on {host}",
        expected=f"{peers.usual}, as on {_listed(peers.like_most)}, unless {host} is meant to differ",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=_both(trait, peers),
        remedy=_remedy(peers, f"Find out who changed {name} on {host}, or left it out, and which value is meant."),
        settled_by="the same decode benchmark on this host and on one of the others",
    )


def _gpu_finding(gpu: str, trait: Trait, peers: _Peers) -> Finding:
    return Finding(
        code=GPU,
        subject=f"{gpu}: {_subject(trait)}",
        severity=Severity.INFO,
        title=f"GPU {gpu}: {trait.name} is {trait.value}, but {_most(peers)}",
        observed=f"{trait.value} at {gpu}",
        expected=f"{peers.usual}, as at {_listed(peers.like_most)}, unless this GPU is meant to differ",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=_both(trait, peers),
        remedy=_remedy(peers, f"Find out why {trait.name} of this GPU differs: setting, slot, riser, exchanged card."),
        settled_by="the same benchmark on this GPU alone and on one of the others",
    )


def _both(trait: Trait, peers: _Peers) -> tuple[Evidence, ...]:
    """The odd line and one of the majority's."""
    return (trait.evidence, peers.traits[peers.like_most[0]].evidence)


def _subject(trait: Trait) -> str:
    return f"{trait.name}, {trait.among}" if trait.among else trait.name


def _most(peers: _Peers) -> str:
    """`7 of 8 GPUs of this host (NVIDIA H200) have 600 W`."""
    among = f" ({peers.question.among})" if peers.question.among else ""
    return f"{len(peers.like_most)} of {len(peers.traits)} {peers.what}{among} have {peers.usual}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _remedy(peers: _Peers, now: str) -> Remedy:
    return Remedy(
        now=now,
        lasting="Set the value that is meant from one place for all of them. Hosts that are meant to differ get "
        "different labels in the fleet file.",
        undo="Nothing to undo: looking changes nothing.",
        cost="None to look. To change a kernel, a driver or firmware takes down what uses it.",
        risk=Risk.R0,
        restarts="nothing",
        verify_agent=peers.question.agent,
    )
