"""`[user@]host[:port]` as people write it, taken apart and checked.

Names end up in ssh_config expansions (`ProxyCommand … %h`), in messages and in file names, so the characters that
OpenSSH refuses since 9.6 (CVE-2023-51385), leading dashes and everything invisible are refused here as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address

HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}", re.ASCII)
USER_NAME = re.compile(r"[^\W\d-][\w.+\\@-]{0,63}\$?|\d[\w.+-]{0,63}")
_WHOLE = re.compile(r"(?:(?P<user>.*)@)?(?:\[(?P<v6>[^\]]*)\]|(?P<host>[^:\[\]]*))(?::(?P<port>[^:]*))?")
_ZONE = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect. `None` leaves a part to ~/.ssh/config."""

    host: str  # a name, an IPv4 or a bare IPv6 address
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        """As `ssh -J` takes it: an IPv6 address stands in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{user}{host}{port}"


def parse_address(text: str) -> Address:
    """Take `[user@]host[:port]` apart; an IPv6 address with a port stands in brackets.

    Raises:
        ValueError: it is not one; the message says which part and why.
    """
    user, _, rest = text.rpartition("@")
    if is_ipv6(rest):
        return Address(rest, _user(user) if "@" in text else None)
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueError("expected [user@]host[:port], an IPv6 address with a port in brackets")
    user, v6, host, port = match.group("user", "v6", "host", "port")
    if v6 is not None and not is_ipv6(v6):
        raise ValueError(f"{v6!r} is not an IPv6 address")
    if v6 is None and not HOST_NAME.fullmatch(host):
        raise ValueError(_why_not_host(host))
    return Address(host if v6 is None else v6, None if user is None else _user(user), _port(port))


def is_ipv6(text: str) -> bool:
    """Whether it is an IPv6 address, with or without a zone (`fe80::1%eth0`)."""
    bare, percent, zone = text.partition("%")
    if percent and not _ZONE.fullmatch(zone):
        return False
    try:
        IPv6Address(bare)
    except ValueError:
        return False
    return True


def _user(text: str) -> str:
    if not USER_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a user name")
    return text


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= len(str(HIGHEST_PORT)) and 1 <= int(text) <= HIGHEST_PORT:
        return int(text)
    raise ValueError(f"{text!r} is not a port")


def _why_not_host(host: str) -> str:
    if not host:
        return "the host name is missing"
    if host.startswith("-"):
        return f"{host!r} would be taken for an option"
    if not host.isascii():
        return f"{host!r} is not a host name; write an international name in its xn-- form"
    return f"{host!r} is not a host name"
