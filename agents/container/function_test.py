"""A test inside a container of the calls that engines make: NUMA policy, memfd, pidfd, opening GPUs that are in use.

Nothing stays: policies are set to what they are, memory and files are the test's own. A GPU node is opened only while a
process of the container holds it, for opening an idle GPU initialises it. Python makes the calls; without it, numactl
tells about one of them.
"""

from __future__ import annotations

import re

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script, Vantage

# The numbers of the calls: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
_PROGRAM = r"""
import ctypes, errno, glob, mmap, os, platform, stat
libc = ctypes.CDLL(None, use_errno=True)
names = ("mbind", "set_mempolicy", "get_mempolicy", "move_pages", "memfd_create", "pidfd_open", "pidfd_getfd")
table = {"x86_64": (237, 238, 239, 279, 319, 434, 438), "aarch64": (235, 237, 236, 239, 279, 434, 438)}
numbers = dict(zip(names, table.get(platform.machine(), ())))
def told(result):
    return "0" if result != -1 else errno.errorcode.get(ctypes.get_errno(), "E%d" % ctypes.get_errno())
def call(name, *given):
    result = libc.syscall(ctypes.c_long(numbers[name]), *[ctypes.c_long(g) if isinstance(g, int) else g for g in given])
    print("call|%s|%s" % (name, told(result)))
    return result
if numbers:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    page[0] = 1
    held = (ctypes.c_char * mmap.PAGESIZE).from_buffer(page)
    at = ctypes.addressof(held)
    mode = ctypes.c_int(0)
    call("get_mempolicy", ctypes.byref(mode), 0, 0, 0, 0)
    if mode.value == 0:
        call("set_mempolicy", 0, 0, 0)
    call("mbind", at, mmap.PAGESIZE, 0, 0, 0, 0)
    call("move_pages", 0, 1, ctypes.byref(ctypes.c_void_p(at)), 0, ctypes.byref(ctypes.c_int(0)), 0)
    call("memfd_create", ctypes.c_char_p(b"test"), 1)
    own = call("pidfd_open", os.getpid(), 0)
    if own != -1:
        call("pidfd_getfd", own, 1, 0)
print("nodes|%d" % len(glob.glob("/sys/devices/system/node/node[0-9]*")))
used = set()
for link in glob.glob("/proc/[0-9]*/fd/*")[:50000]:
    try:
        used.add(os.readlink(link))
    except OSError:
        pass
for path in sorted(glob.glob("/dev/nvidia[0-9]*")):
    if path not in used or not stat.S_ISCHR(os.lstat(path).st_mode):
        continue
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        print("open|%s|0" % path)
    except OSError as error:
        print("open|%s|%s" % (path, errno.errorcode.get(error.errno, "E%d" % error.errno)))
"""

FUNCTIONS = Script(
    name="functions",
    vantage=Vantage.INSIDE,
    timeout=20,
    text=r"""
LC_ALL=C; export LC_ALL
T='timeout -k 1 10'; $T true 2>/dev/null || T=
if command -v python3 >/dev/null 2>&1; then
  echo 'with|python3'
  $T python3 -I -S -B -c '"""
    + _PROGRAM
    + r"""' 2>/dev/null || echo 'failed|python3'
elif command -v numactl >/dev/null 2>&1; then
  echo 'with|numactl'
  if $T numactl --localalloc true 2>/dev/null; then echo 'call|set_mempolicy|0'; else echo 'failed|numactl'; fi
else
  echo 'with|nothing'
fi
echo end
""",
)

_LINE = re.compile(r"(call|open)\|([a-z_]{1,20}|/dev/nvidia[0-9]{1,4})\|(0|E[A-Z0-9]{1,20})")


class Tried(Fact):
    """A call, or a node that was opened, and how it ended: "0" or the name of the error."""

    name: str
    result: str
    evidence: Evidence


class Functions(Fact):
    """What was tried in a container, and with what."""

    tool: str  # python3, numactl, nothing
    failed: bool  # the tool itself gave up
    calls: tuple[Tried, ...]
    opened: tuple[Tried, ...]  # GPU nodes that were in use
    numa_nodes: int | None

    def call(self, name: str) -> Tried | None:
        """The call of that name, if it was tried."""
        return next((one for one in self.calls if one.name == name), None)


def functions(capture: Capture) -> Functions:
    """Read the script's output.

    Raises:
        ParseError: a line has an unknown form, or the output stops early.
    """
    lines = list(capture.lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else capture.first().evidence, "'end' as the last line")
    tool = re.fullmatch(r"with\|(python3|numactl|nothing)", lines[0].text)
    if tool is None:
        raise ParseError(lines[0].evidence, "'with|TOOL'")
    body = lines[1:-1]
    nodes = [m for line in body if (m := re.fullmatch(r"nodes\|([0-9]{1,4})", line.text))]
    tried = [_tried(line) for line in body if not line.text.startswith(("nodes|", "failed|"))]
    return Functions(
        tool=tool[1],
        failed=any(line.text.startswith("failed|") for line in body),
        calls=tuple(one for one in tried if not one.name.startswith("/")),
        opened=tuple(one for one in tried if one.name.startswith("/")),
        numa_nodes=int(nodes[0][1]) if nodes else None,
    )


def _tried(line: Line) -> Tried:
    match = _LINE.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "'call|NAME|RESULT' or 'open|NODE|RESULT'")
    return Tried(name=match[2], result=match[3], evidence=line.evidence)
