"""A device rule that names a major by its number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gapline.agents.container.config_diff import Edit
from gapline.agents.container.configuration_fact import Configuration
from gapline.agents.container.configuration_nodes import DYNAMIC_MAJORS
from gapline.agents.container.device_rule import Rule, parse_rule
from gapline.agents.container.setting import Setting
from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.agents.pair.chain_link import UVM, ChainLink


@dataclass(frozen=True, slots=True)
class LiteralRule:
    """The rule and the line it stands on."""

    rule: Rule
    setting: Setting

    @property
    def major(self) -> int:
        """The number."""
        return self.rule.major or 0

    def serves(self, configuration: Configuration, driver: NvidiaDriver) -> bool:
        """Whether its major is that of a node which the configuration gives to the container."""
        numbers = {node.path: node.major for node in driver.nodes if node.is_character}
        folder = {
            path.rpartition("/")[0]: major for path, major in numbers.items() if path.startswith("/dev/nvidia-caps")
        }
        given = {node.host_path.rstrip("/") for node in configuration.gpu_nodes}
        return any({**numbers, **folder}.get(path) == self.major for path in given)


def literal_rules(configuration: Configuration) -> Iterator[LiteralRule]:
    """The allow rules for character devices with a number, in the order of the file."""
    for setting in configuration.device_rules():
        rule = parse_rule(setting.value, allow=setting.key.endswith("allow"), at=setting.at)
        if isinstance(rule, Rule) and rule.allow and rule.type != "b" and rule.major is not None:
            yield LiteralRule(rule, setting)


def cause_of(link: ChainLink, configuration: Configuration, driver: NvidiaDriver) -> LiteralRule | None:
    """The rule that was meant for nvidia-uvm, when none covers it: a dynamic major that no other given node has."""
    if link.path != UVM or link.allowed:
        return None
    candidates = (rule for rule in literal_rules(configuration) if rule.major in DYNAMIC_MAJORS)
    return next((rule for rule in candidates if not rule.serves(configuration, driver)), None)


def in_place(configuration: Configuration, paths: list[str], cause: LiteralRule | None) -> Edit:
    """Rules by path for some nodes, in place of the rule that was meant for them or after all others."""
    tools = f"{UVM}-tools"
    also = [tools] if UVM in paths and any(node.host_path == tools for node in configuration.gpu_nodes) else []
    rules = tuple(
        configuration.raw_line("lxc.cgroup2.devices.allow", f"{path} rw") for path in dict.fromkeys((*paths, *also))
    )
    if cause is None:
        return Edit(configuration.line_after_rules(), add=rules)
    return Edit(cause.setting.line, remove=True, add=rules)
