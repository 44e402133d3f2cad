#!/bin/sh
# Turns fresh mount, network, PID, cgroup and host-name namespaces into a Proxmox-like host. Runs as PID 1's child.
# Usage: namespace.sh LAB HOSTNAME   (LAB: an empty directory of the real host; becomes private tmpfs here)
set -eu
lab=$1 hostname=$2

ip link set lo up
hostname "$hostname"
# The driver that plays nvidia-uvm (stand_in.py): its first device has minor 1 and can be opened.
ip tuntap add dev lower mode tap
ip link add link lower name driver type macvtap
mount -t tmpfs -o mode=755 lab "$lab"
mkdir -p "$lab/etc" "$lab/etc.work" "$lab/dev" "$lab/dev.work" "$lab/pts"

# cgroup v1 hierarchies may be mounted in layers: take off until nothing is left, then one pure cgroup2.
while grep -q ' /sys/fs/cgroup' /proc/self/mounts; do
    grep -o ' /sys/fs/cgroup[^ ]*' /proc/self/mounts | sort -r | while read -r mount; do umount -l "$mount"; done
done
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/init.scope
echo 1 > /sys/fs/cgroup/init.scope/cgroup.procs
echo 0 > /sys/fs/cgroup/init.scope/cgroup.procs

mount -t overlay -o "lowerdir=/etc,upperdir=$lab/etc,workdir=$lab/etc.work" overlay /etc
mount --bind /dev/pts "$lab/pts"
mount -t overlay -o "lowerdir=/dev,upperdir=$lab/dev,workdir=$lab/dev.work" overlay /dev
mkdir -p /dev/pts /dev/shm
mount --move "$lab/pts" /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/sshd
mkdir -p /var/lib/lxc /var/log/lxc
mount -t tmpfs -o mode=755 lxc /var/lib/lxc
mount -t tmpfs -o mode=755 log /var/log/lxc

# A home of the lab's own: the real one's start-up files are nobody's business here.
mount -t tmpfs -o mode=700 home "$(getent passwd root | cut -d: -f6)"

# sshd refuses key logins to an account whose password field says "locked".
sed -i 's/^root:[^:]*:/root:*:/' /etc/shadow
echo 'root:100000:65536' > /etc/subuid
echo 'root:100000:65536' > /etc/subgid
