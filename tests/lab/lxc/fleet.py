"""The containers of the labs: the incident, its harmless twins, and everything that cannot be entered."""

from __future__ import annotations

from tests.lab.lxc.container import LabContainer, Root
from tests.lab.lxc.stand_in import NVIDIA_MAJOR, STALE_MAJOR

_STALE = (f"c {NVIDIA_MAJOR}:* rwm", f"c {STALE_MAJOR}:* rwm")
_RIGHT = (f"c {NVIDIA_MAJOR}:* rwm", "c {uvm}:* rwm")

WITHOUT_GPU = LabContainer(name="105", nodes=())
STALE = LabContainer(name="129", allowed=_STALE)
STALE_UNPRIVILEGED = LabContainer(name="130", allowed=_STALE, unprivileged=True)
STOPPED = LabContainer(name="131", allowed=_STALE, started=False)
RIGHT = LabContainer(name="132", allowed=_RIGHT)
LOW_MEMLOCK = 32768  # bytes; lower than the default, because raising it needs CAP_SYS_RESOURCE, which CI may not have
RIGHT_BUSYBOX = LabContainer(
    name="133", allowed=_RIGHT, root=Root.BUSYBOX, raw=(("lxc.prlimit.memlock", str(LOW_MEMLOCK)),)
)
STALE_BUSYBOX = LabContainer(name="134", allowed=_STALE, root=Root.BUSYBOX)
FROZEN = LabContainer(name="140", allowed=_RIGHT)
WITHOUT_SHELL = LabContainer(name="141", allowed=_RIGHT, root=Root.NO_SHELL)

PROXMOX_FLEET = (
    WITHOUT_GPU, STALE, STALE_UNPRIVILEGED, STOPPED, RIGHT, RIGHT_BUSYBOX, STALE_BUSYBOX, FROZEN, WITHOUT_SHELL,
)  # fmt: skip

# Without Proxmox nothing clears the base list of an unprivileged container, so a stale rule blocks it too.
PLAIN_STALE = LabContainer(name="infer", allowed=_STALE, unprivileged=True)
PLAIN_RIGHT = LabContainer(name="batch", allowed=_RIGHT)
