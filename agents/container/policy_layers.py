"""Which device rules apply to a container, in which order: what its file says, and what stands before it.

Sources: LXC's config/templates/common.conf.in and userns.conf.in; Proxmox VE's userns.conf.d/01-pve.conf and the order
in `update_lxc_config` (pve-container, src/PVE/LXC.pm): includes, dev[n] entries, the console, raw lines last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from gapline.agents.container.configuration_fact import CGROUP2_RULE, Configuration, Form
from gapline.agents.container.device_policy import Clear, DevicePolicy, Step, Unread, build_policy
from gapline.agents.container.device_rule import Device, PathRule, Rule, Whole, parse_rule
from gapline.agents.container.proxmox_config import flag
from gapline.agents.container.setting import Setting

_COMMON = (
    *("c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 5:0 rwm", "c 5:1 rwm", "c 5:2 rwm"),
    *("c 1:8 rwm", "c 1:9 rwm", "c 136:* rwm", "c 10:229 rwm"),
)
_SHIPPED = re.compile(
    r"/usr/(?:local/)?share/lxc/config/(?:[a-z0-9-]+\.)?(common|userns|nesting|oci\.common)\.conf(?:\.d/?)?"
)

BASE_DEVICE = Device("c", 1, 3)
"""/dev/null: without it hardly a program runs, so that a list which denies it is not meant."""


def policy_of(configuration: Configuration, find: Callable[[str], Device | None]) -> DevicePolicy:
    """The policy that LXC builds when the container starts. `find` gives the numbers of a node on the host."""
    return build_policy(policy_steps(configuration), find)


def policy_steps(configuration: Configuration) -> Iterator[Step]:
    """All rules in the order in which LXC takes them."""
    if configuration.form is Form.PROXMOX:
        unprivileged = configuration.unprivileged_now
        yield from _proxmox_base(unprivileged=configuration.unprivileged if unprivileged is None else unprivileged)
        yield from _entries(configuration)
        yield Rule(allow=False, type="c", major=5, minor=1, access="rwm")
    for setting in configuration.raw:
        if setting.key == "lxc.include":
            yield from _included(setting)
        elif rule := _raw_rule(setting):
            yield rule


def _raw_rule(setting: Setting) -> Step | None:
    match = CGROUP2_RULE.fullmatch(setting.key)
    if match is None:
        return None
    allow = match[1] == "allow"
    return parse_rule(setting.value, allow=allow, at=setting.at) if setting.value else Clear(allow)


@cache
def _common() -> tuple[Step, ...]:
    rules = (parse_rule(value, allow=True) for value in _COMMON)
    return (Whole(allow=False), *(rule for rule in rules if rule is not None))


def _proxmox_base(*, unprivileged: bool) -> Iterator[Step]:
    yield from _common()
    if unprivileged:
        yield Clear(allow=False)
        yield Clear(allow=True)
        yield Whole(allow=True)


def _entries(configuration: Configuration) -> Iterator[Step]:
    for setting, parts in configuration.device_entries():
        yield PathRule(parts.get("path", ""), "r" if flag(parts.get("deny-write", "0")) else "rw", setting.at)


def _included(setting: Setting) -> Iterator[Step]:
    match = _SHIPPED.fullmatch(setting.value)
    if match is None:
        yield Unread(setting.at)
    elif setting.value.rstrip("/").endswith(".d"):
        return
    elif match[1] == "common":
        yield from _common()
    elif match[1] == "userns":
        yield Clear(allow=False)
        yield Clear(allow=True)
