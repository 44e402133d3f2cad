"""A host as the inventory describes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Reach(StrEnum):
    """By which route a target is read."""

    SSH = "ssh"
    LOCAL = "local"
    REPLAY = "replay"


class Become(StrEnum):
    """How root is had on a host."""

    NONE = "none"  # as the user who logs in
    SUDO = "sudo"  # the whole lane as `sudo -n sh -s`
    SUDO_READS = "sudo_reads"  # single reads as `sudo -n …`, for a sudoers file that lists exactly them


class Containers(StrEnum):
    """Which of a host's containers are audited, unless they are listed."""

    AUTO = "auto"  # the GPU containers
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEntry:
    """A container that the inventory or the command line names. Naming it declares it a GPU container."""

    name: str  # VMID on Proxmox VE, the LXC name elsewhere
    ssh: Host | None = None  # set when it is to be entered by SSH instead of through its host


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host: how to reach it and what to look at on it. `None` leaves a setting to ~/.ssh/config."""

    name: str  # the target id
    address: str
    reach: Reach = Reach.SSH
    user: str | None = None
    port: int | None = None
    identity: tuple[Path, ...] = ()
    known_hosts: Path | None = None
    jump: str | None = None  # "user@host:port[,…]" as for ssh -J; "none": directly, whatever ~/.ssh/config says
    become: Become = Become.NONE
    connect_timeout: float | None = None  # seconds for one login
    containers: Containers | tuple[ContainerEntry, ...] = Containers.AUTO
    declared: tuple[ContainerEntry, ...] = ()  # beside AUTO: asked for by name on the command line as well
    host_too: bool = True  # False: only its containers were asked for; the host is read, but not judged
    labels: tuple[str, ...] = ()
    workload: str | None = None
    snapshot: Path | None = None  # for the replay route
    recorded_skew: float | None = None  # for the replay route: seconds by which its clock was off then
    place: str = ""  # "fleet.yaml:12", for exports that cite it
