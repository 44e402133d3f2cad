"""Settings of the user's ssh_config that this route does not honour. asyncssh ignores them silently; we say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapline.orchestrator.transport.ssh.identities import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gapline.orchestrator.transport.ssh.ssh_config import Block, ConfigLine

_ALWAYS_STRICT = "host keys are always checked, and only `gapline trust` records one"
_OWN_CONNECTION = "gapline opens its own connection and shares none with ssh"
# Keyword in lower case: why, and the values with which it makes no difference. Missing in asyncssh/config.py (2.24),
# except the last three, which we leave out ourselves.
_IGNORED: dict[str, tuple[str, frozenset[str]]] = {
    "stricthostkeychecking": (_ALWAYS_STRICT, frozenset({"yes", "ask"})),
    "knownhostscommand": ("keys are looked up in known_hosts files only", frozenset({"none"})),
    "verifyhostkeydns": ("SSHFP records are not looked up", frozenset({"no"})),
    "revokedhostkeys": ("use @revoked lines in known_hosts", frozenset({"none"})),
    "controlmaster": (_OWN_CONNECTION, frozenset({"no"})),
    "controlpath": (_OWN_CONNECTION, frozenset({"none"})),
    "controlpersist": (_OWN_CONNECTION, frozenset({"no"})),
    "addkeystoagent": ("keys are not added to the agent; use `ssh-add`", frozenset({"no"})),
    "usekeychain": ("the keychain is not asked; use `ssh-add --apple-use-keychain`", frozenset({"no"})),
    "securitykeyprovider": ("only the built-in one is used", frozenset({"internal"})),
    "pubkeyacceptedalgorithms": ("all algorithms that the server takes are tried", frozenset()),
    "pubkeyacceptedkeytypes": ("all algorithms that the server takes are tried", frozenset()),
    "bindinterface": ("use BindAddress", frozenset({"none"})),
    "proxyusefdpass": ("a ProxyCommand has to carry the data itself", frozenset({"no"})),
    "requiredrsasize": ("the size of RSA keys is not limited further", frozenset()),
    "forwardagent": ("the agent is never lent to an audited machine", frozenset({"no"})),
    "sendenv": ("no environment is sent", frozenset({"lang", "lc_*", "lang lc_*"})),
    "setenv": ("no environment is sent", frozenset()),
}


def ignored_settings(blocks: Sequence[Block]) -> tuple[str, ...]:
    """One line for each of them that can concern a host, with its place."""
    return tuple(
        f"{_place(line)}: `{line.text}` is not honoured{_condition(block)}: {_IGNORED[line.keyword][0]}"
        for block in blocks
        for line in block.lines
        if _matters(line)
    )


def _place(line: ConfigLine) -> str:
    return f"{shown(line.path)}:{line.number}"


def _matters(line: ConfigLine) -> bool:
    reason = _IGNORED.get(line.keyword)
    return reason is not None and " ".join(line.value.lower().split()) not in reason[1]


def _condition(block: Block) -> str:
    """Blocks with patterns are not judged here: the parser does that, but does not tell."""
    return "" if block.only_for is not None or block.head == "Host *" else f" (under `{block.head}`)"
