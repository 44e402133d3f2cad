"""How the SSH route behaves in a run; everything about one host is in the inventory or in ~/.ssh/config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """The figures come from OpenSSH's own defaults (sshd_config(5)) where one is named."""

    config: tuple[Path, ...] = (Path("~/.ssh/config"), Path("/etc/ssh/ssh_config"))  # the first value found holds
    at_once: int = 50  # connections that are open at the same time, jump hosts not counted
    logins_at_once: int = 8  # per server, jump host or proxy: MaxStartups 10:30:100 sheds from the tenth on
    sessions_at_once: int = 8  # per connection: MaxSessions is 10, and two are left to the people who work there
    attempts: int = 6  # to connect, while the failure is of a kind that passes
    keepalive_interval: float = 10.0  # seconds of silence before the peer is asked for a sign of life
    keepalive_count: int = 3  # unanswered ones after which the connection counts as dropped
