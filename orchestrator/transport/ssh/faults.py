"""What went wrong while connecting, in words that a person can act on."""

from __future__ import annotations

import errno
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncssh

from gapline.orchestrator.model.errors import (
    AuthenticationFailed,
    ConnectionDropped,
    ConnectionRefused,
    ConnectTimedOut,
    NameNotResolved,
    ProtocolFailed,
    TransportError,
)
from gapline.orchestrator.transport.ssh.host_keys import rejected
from gapline.orchestrator.transport.ssh.identities import KeyNotOpened

if TYPE_CHECKING:
    from gapline.orchestrator.transport.ssh.hop import Hop
    from gapline.orchestrator.transport.ssh.login import Login

_ERRNO = re.compile(r"\[Errno (\d+)\]")
_UNROUTED = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN}
_SHED_HINT = (
    "Too many logins at once (`MaxStartups`), a ban after failed ones (fail2ban, `PerSourcePenalties`), or an address "
    "that is not allowed (hosts.deny): see `journalctl -u ssh` on the server."
)


@dataclass(frozen=True, slots=True)
class Fault:
    """The error, and whether the same attempt may well succeed a moment later."""

    error: TransportError
    passing: bool = False


def explain(  # noqa: PLR0911 - one return for each kind of exception is the plainest form
    target: str, hop: Hop, login: Login | None, error: Exception, *, proxy_said: str = ""
) -> Fault:
    """Sort an exception of one login. `login` is None when there was none yet."""
    place = f"{hop.address} port {hop.port}"
    match error:
        case KeyNotOpened():
            return Fault(_not_authenticated(target, hop, login, str(error)))
        case asyncssh.HostKeyNotVerifiable() if login is not None:
            return Fault(rejected(target, login.known, login.offered, error.reason))
        case asyncssh.PermissionDenied():
            return Fault(_not_authenticated(target, hop, login, error.reason))
        case asyncssh.ChannelOpenError():
            return Fault(_beyond_jump(target, place, error))
        case TimeoutError():
            return _late(target, place, login, hop)
        case socket.gaierror():
            hint = "Check the spelling, the inventory's `address`, and `HostName` in ~/.ssh/config."
            return Fault(NameNotResolved(target, f"{hop.address} does not resolve", hint=hint, evidence=str(error)))
        case asyncssh.ConnectionLost() | ConnectionError() if login is not None and login.reached:
            return _lost(target, hop, login, error, proxy_said)
        case OSError():
            return _not_connected(target, place, error)
        case asyncssh.DisconnectError():
            return _disconnected(target, hop, login, error)
        case _:
            hint = "Look at what ~/.ssh/config sets for this host: `ssh -G` prints it."
            message = f"its SSH settings cannot be used: {error}"
            return Fault(TransportError(target, message, hint=hint, evidence=repr(error)))


def _not_authenticated(target: str, hop: Hop, login: Login | None, said: str) -> AuthenticationFailed:
    tried = login.tried if login is not None else "nothing"
    accepts = f"; it accepts {', '.join(login.accepts)}" if login is not None and login.accepts else ""
    locked = login is not None and login.has_locked_key
    copy = f"`ssh-copy-id -i KEY.pub {hop.user}@{hop.address}` adds a key"
    hint = (
        "Put the encrypted key into the agent (`ssh-add`), or run gapline on a terminal and type its passphrase."
        if locked
        else f"{copy}; `user:` and `identity:` in the inventory say who logs in and with which key."
    )
    return AuthenticationFailed(
        target, f"the server does not let {hop.user} in (tried: {tried}{accepts})", hint=hint, evidence=said
    )


def _beyond_jump(target: str, place: str, error: asyncssh.ChannelOpenError) -> TransportError:
    said = error.reason.lower()
    if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
        hint = "`AllowTcpForwarding` and `PermitOpen` in its sshd_config, and `restrict` in authorized_keys, forbid it."
        return ProtocolFailed(target, f"the jump host may not connect to {place}", hint=hint, evidence=error.reason)
    if "resol" in said or "not known" in said:
        hint = "The name has to resolve on the jump host, not here."
        return NameNotResolved(target, f"the jump host cannot resolve {place}", hint=hint, evidence=error.reason)
    if "timed out" in said:
        return ConnectTimedOut(target, f"the jump host got no answer from {place}", evidence=error.reason)
    hint = "The jump host was reached; from there, check the address, the port and the firewall."
    return ConnectionRefused(target, f"the jump host cannot connect to {place}", hint=hint, evidence=error.reason)


def _late(target: str, place: str, login: Login | None, hop: Hop) -> Fault:
    seconds = f"{hop.timeout:g} s"
    if login is None or not login.reached:
        message = f"no answer from {place} within {seconds}"
        hint = "Is it switched on, is the address right, and does a firewall drop the packets?"
    elif not login.greeted:
        message = f"{place} accepts the connection, but has not said within {seconds} that it is an SSH server"
        hint = "Another service may listen there, or the host hangs: try `ssh -v`."
    else:
        message = f"the login at {place} was not finished within {seconds}"
        hint = "Slow name lookups (`UseDNS`), a slow PAM module or a loaded host; `connect_timeout` can be raised."
    return Fault(ConnectTimedOut(target, message, hint=hint), passing=login is None or not login.greeted)


def _lost(target: str, hop: Hop, login: Login, error: Exception, proxy_said: str) -> Fault:
    if hop.proxy and not login.greeted:
        hint = f"Run it by hand: {hop.proxy}"
        return Fault(ConnectionRefused(target, "the ProxyCommand ended at once", hint=hint, evidence=proxy_said))
    if not login.began:
        message = "the server closed the connection before the login"
        return Fault(ProtocolFailed(target, message, hint=_SHED_HINT, evidence=str(error)), passing=True)
    hint = "See `journalctl -u ssh` on the server; `LoginGraceTime` and `MaxAuthTries` end logins too."
    return Fault(ConnectionDropped(target, "the connection ended during the login", hint=hint, evidence=str(error)))


def _not_connected(target: str, place: str, error: OSError) -> Fault:
    numbers = {int(number) for number in _ERRNO.findall(str(error))} | ({error.errno} if error.errno else set())
    if errno.ECONNREFUSED in numbers:
        hint = "Does sshd run there, on this port? A firewall that rejects looks the same."
        return Fault(ConnectionRefused(target, f"{place} refuses the connection", hint=hint, evidence=str(error)))
    if numbers & _UNROUTED:
        hint = "Is the VPN up, and the host in a network that can be reached from here?"
        return Fault(ConnectionRefused(target, f"there is no route to {place}", hint=hint, evidence=str(error)))
    if errno.ETIMEDOUT in numbers:
        hint = "Is it switched on, is the address right, and does a firewall drop the packets?"
        return Fault(ConnectTimedOut(target, f"no answer from {place}", hint=hint, evidence=str(error)), passing=True)
    if numbers & {errno.EMFILE, errno.ENFILE}:
        hint = "Raise the limit on open files (`ulimit -n`), or audit fewer hosts at once."
        return Fault(TransportError(target, "too many open files on this machine", hint=hint, evidence=str(error)))
    return Fault(TransportError(target, f"cannot connect to {place}: {error}", evidence=str(error)), passing=False)


def _disconnected(target: str, hop: Hop, login: Login | None, error: asyncssh.DisconnectError) -> Fault:
    said = error.reason[:200]
    if "oo many authentication failures" in said:
        failed = _not_authenticated(target, hop, login, said)
        failed.hint = "Name the right key with `identity:`: the server gave up before it was offered (`MaxAuthTries`)."
        return Fault(failed)
    hint = "Is it an SSH server, and do its algorithms overlap with ours? Compare with `ssh -v`."
    return Fault(ProtocolFailed(target, f"no SSH connection was agreed on: {said}", hint=hint, evidence=repr(error)))
