"""The script that reads CUDA processes and what started them, on the host that runs them.

Engines rename their workers, which overwrites the command line, so each process is read together with its ancestors.
"""

from __future__ import annotations

from gapline.agents.engine.names import ENVIRONMENT, FLAGS, HARMLESS, VALUED
from gapline.agents.gpu_users import CONTAINER_FDS, GPU_USERS
from gapline.orchestrator.model.source import Script


def _either(names: list[str]) -> str:
    """A shell pattern; engines take an underscore for a hyphen within an option."""
    return "|".join(name[:2] + name[2:].replace("-", "[-_]") for name in names)


# Values are printed here, on the target, only when they are of a harmless form. numa_maps makes the kernel walk the
# pages of the process, so it is read of at most 8 processes, each below 16 GiB.
_SHOW = f"""
tell() {{
  case $3 in *://*|*[!{HARMLESS}]*) set -- "$1" "$2" '?' ;; esac
  if [ ${{#3}} -gt 200 ]; then set -- "$1" "$2" '?'; fi
  printf '%s|%s|%s\\n' "$1" "$2" "$3"
}}
options() {{
  want=
  while IFS= read -r a; do
    if [ -n "$want" ]; then
      w=$want; want=
      case $a in -*[!0-9.]*) ;; *) tell option "$w" "$a"; continue ;; esac
    fi
    case ${{a%%=*}} in
      {_either(FLAGS)}) printf 'option|%s|\\n' "${{a%%=*}}" ;;
      {_either(VALUED)}) case $a in *=*) tell option "${{a%%=*}}" "${{a#*=}}" ;; *) want=$a ;; esac ;;
    esac
  done
}}
environment() {{
  while IFS= read -r a; do
    case ${{a%%=*}} in {"|".join(ENVIRONMENT)}) tell environment "${{a%%=*}}" "${{a#*=}}" ;; esac
  done
}}
"""

_PROCESS = r"""
show() {
  [ -r "/proc/$2/status" ] || return 0
  case $shown in *" $2 "*) return 0 ;; esac
  shown="$shown$2 "; pp=0; rss=0
  printf '%s|%s\n' "$1" "$2"
  while read -r k v u; do
    case $k in
      Name:|NSpid:|Threads:|VmRSS:|VmSwap:|Cpus_allowed_list:|Mems_allowed_list:)
        printf 'status|%s %s%s\n' "$k" "$v" "${u:+ $u}" ;;
    esac
    case $k in PPid:) pp=$v ;; VmRSS:) rss=$v ;; esac
  done <"/proc/$2/status"
  printf 'parent|%s\n' "$pp"
  while IFS= read -r l; do case $l in 0::*|1:name=*) printf 'cgroup|%s\n' "${l##*:}" ;; esac; done <"/proc/$2/cgroup"
  tr '\n\000' ' \n' 2>/dev/null <"/proc/$2/cmdline" | options
  tr '\n\000' ' \n' 2>/dev/null <"/proc/$2/environ" | environment
  if [ "$1" = cuda ] && [ "$walked" -lt 8 ] && [ "$rss" -gt 0 ] && [ "$rss" -lt 16777216 ]; then
    walked=$((walked + 1))
    awk '!/ file=/ { k = 4
      for (i = NF; i; i--) if ($i ~ /^kernelpagesize_kB=/) { k = substr($i, 19); break }
      for (i = 3; i <= NF; i++) if ($i ~ /^N[0-9]+=[0-9]+$/) { split(substr($i, 2), a, "="); n[a[1]] += a[2] * k }
    } END { for (i in n) printf "numa|%d|%d\n", i, n[i] }' "/proc/$2/numa_maps" 2>/dev/null
  fi
  return 0
}
chain() {
  show cuda "$1"
  up=$pp; steps=0
  while [ "$up" -gt 1 ] && [ "$up" != "${INIT:-}" ] && [ "$steps" -lt 4 ]; do
    case $(belongs "$up") in '') break ;; esac
    show above "$up"
    up=$pp; steps=$((steps + 1))
  done
}
gpus() {
  for g in /proc/driver/nvidia/gpus/*/information; do
    [ -r "$g" ] || continue
    b=${g%/*}; b=${b##*/}; minor=; node=
    while read -r k v w; do case "$k $v" in 'Device Minor:') minor=$w ;; esac; done <"$g"
    if IFS= read -r node <"/sys/bus/pci/devices/$b/numa_node"; then :; fi
    printf 'gpu|%s|%s|%s\n' "$minor" "$b" "$node"
  done 2>/dev/null
}
shown=' '; walked=0; pp=0
f=$(gpu_users "$@")
if [ -n "$f" ]; then printf '%s\n' "$f"; fi
for p in $(cuda_pids "$f"); do
  case $(belongs "$p") in '') ;; *) chain "$p" ;; esac
done
gpus
echo end
"""

ENGINE = Script(
    name="engine",
    root=True,
    timeout=30,
    text=GPU_USERS
    + _SHOW
    + """
belongs() {
  while IFS= read -r l; do
    case $l in *"$CGROUP"/*|*"$CGROUP") echo y; break ;; esac
  done <"/proc/$1/cgroup"
}
"""
    + CONTAINER_FDS
    + _PROCESS,
)
"""The CUDA processes of a container."""

HOST_ENGINE = Script(
    name="host-engine",
    root=True,
    timeout=30,
    text=GPU_USERS
    + _SHOW
    + """
belongs() {
  r=y
  while IFS= read -r l; do case $l in */lxc/*|*/lxc.payload*) r= ;; esac; done <"/proc/$1/cgroup"
  echo "$r"
}
set -- /proc/[0-9]*/fd
"""
    + _PROCESS,
)
"""The CUDA processes that no LXC container holds: systemd services and Docker containers of the host."""
