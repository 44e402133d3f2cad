"""Agent `container.privilege`: is root inside root outside, and are the id maps in force those that were asked for?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container.configuration_file import CONFIG
from gapline.agents.container.configuration_form import sort_lines
from gapline.agents.container.id_map import IdRange, asked_ranges, id_ranges, joined
from gapline.agents.container.privilege_findings import CODES, map_differs, privileged, root_is_root
from gapline.agents.container.proxmox_config import ProxmoxConfig
from gapline.agents.container.setting import in_file
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, judged
from gapline.orchestrator.model.source import File, Source

__all__ = ["AGENT", "Privilege"]

SOURCES: Mapping[str, Source] = {
    "uid_map": File("/proc/{init}/uid_map", root=True),
    "gid_map": File("/proc/{init}/gid_map", root=True),
    "config": CONFIG,
}


class Privilege(Fact):
    """The id maps of the container's init, and what its configuration asks for.

    `asked_users` and `asked_groups` are empty where the configuration leaves the map to its default.
    """

    users: tuple[IdRange, ...]
    groups: tuple[IdRange, ...]
    asked_users: tuple[IdRange, ...]
    asked_groups: tuple[IdRange, ...]
    claim: Evidence | None  # the line that says `unprivileged`

    @property
    def privileged(self) -> bool:
        """Every user inside is the same user outside, so root is root and capabilities are the host's."""
        return len(self.users) == 1 and self.users[0].is_everything

    @property
    def root_outside(self) -> int | None:
        """The host's user id that root inside is; None where root is not mapped."""
        return next((one.outside for one in self.users if one.inside == 0), None)


def parse(captures: Captures) -> Privilege:
    users, groups = (captures.need(name) for name in ("uid_map", "gid_map"))
    config = captures.need("config")
    if not users.out.strip():
        raise ParseError(users.first().evidence, "three numbers of an id map")
    path = config.shown.split()[-1]
    _, content = sort_lines(path, tuple(in_file(line, path) for line in config.lines()))
    raw = content.raw if isinstance(content, ProxmoxConfig) else content.settings
    claims = [s.at for s in (content.keys if isinstance(content, ProxmoxConfig) else ()) if s.key == "unprivileged"]
    return Privilege(
        users=id_ranges(users.lines()),
        groups=id_ranges(groups.lines()),
        asked_users=asked_ranges(raw, "u"),
        asked_groups=asked_ranges(raw, "g"),
        claim=claims[-1] if claims else None,
    )


def judge(fact: Privilege, _: Limits) -> Outcome:
    return judged(fact, tuple(_findings(fact)))


def _findings(fact: Privilege) -> Iterator[Finding]:
    if fact.privileged:
        yield privileged(fact.users[0].evidence, fact.claim)
        return
    if fact.root_outside == 0:
        yield root_is_root(next(one.evidence for one in fact.users if one.inside == 0))
    for kind, asked, running in (("user", fact.asked_users, fact.users), ("group", fact.asked_groups, fact.groups)):
        if asked and joined(asked) != joined(running):
            yield map_differs(kind, asked, running)


AGENT = Agent(
    id="container.privilege",
    title="Privilege and id maps",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=Privilege,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
