"""A walk in shell over every NVIDIA GPU and every port above it, for scripts to hang their readings into.

A script that ends with `WALK` defines ``gpu BUS_ID PATH`` and ``device BUS_ID PATH`` first. Each port is visited once,
before what is below it. The path to the root is the chain of directories that sysfs nests the GPU in.
"""

from __future__ import annotations

WALK = """\
seen=
for d in /sys/bus/pci/devices/*; do
  class=; vendor=
  [ -r "$d/class" ] && read -r class <"$d/class"
  [ -r "$d/vendor" ] && read -r vendor <"$d/vendor"
  case $vendor$class in 0x10de0x0300*|0x10de0x0302*) ;; *) continue ;; esac
  [ -e "$d/physfn" ] && continue
  whole=$(readlink -f "$d")
  gpu "${d##*/}" "$whole"
  rest=${whole#/} p=
  while [ -n "$rest" ]; do
    one=${rest%%/*} p=$p/$one
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
    case $one in *:??:??.?) ;; *) continue ;; esac
    case "$seen " in *" $one "*) continue ;; esac
    seen="$seen $one"
    device "$one" "$p"
  done
done
:
"""
