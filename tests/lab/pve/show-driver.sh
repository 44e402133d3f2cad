#!/bin/sh
# Shows a GPU and its driver where neither exists: what no program can register with the kernel is bound over its
# answers. Usage: show-driver.sh FOLDER (with proc-driver/, pci/ and modules, as stand_in.py writes them)
# Device nodes, majors and policies are not touched here.
set -eu
cd "$1"
# The kernel lets a user namespace mount proc and sysfs only where an uncovered one is already visible
# (mount_too_revealing() in fs/namespace.c), and the mounts below cover parts of both.
mkdir -p /run/uncovered/proc /run/uncovered/sys
mount -t proc proc /run/uncovered/proc
mount -t sysfs sysfs /run/uncovered/sys

cp -a /sys/bus/pci/devices/. pci/
mount --bind proc-driver /proc/driver
if [ -e /proc/modules ]; then  # not on a kernel without loadable modules
    cat /proc/modules >> modules
    mount --bind modules /proc/modules
fi
mount --bind pci /sys/bus/pci/devices
