# shellcheck shell=bash
# Sourced by the other scripts: Debian packages, installed without starting or enabling what they bring.

# True when this run may change the system: as root, and asked for (--install) or on a CI machine.
may_install() {
    [ "$(id -u)" = 0 ] && { [ "${install:-}" = yes ] || [ "${CI:-}" = true ]; } && command -v apt-get >/dev/null
}

# install_packages NAME...: those that are missing. Services of newly installed packages are masked: a test machine
# must not find itself with an SSH server or a bridge that nobody asked for, neither now nor after a reboot.
install_packages() {
    local name missing=()
    for name in "$@"; do
        dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "Installing ${missing[*]} (no service is started) ..."
    (
        trap allow_services EXIT
        forbid_services
        for name in "${missing[@]}"; do mask_services "$name"; done
        export DEBIAN_FRONTEND=noninteractive
        quietly apt-get update
        quietly apt-get install --yes --no-install-recommends -o Dpkg::Options::=--force-confold "${missing[@]}"
    )
}

# The output of a command that fails, nothing of one that does not.
quietly() {
    local output
    output=$("$@" 2>&1) || die "$output"
}

mask_services() {
    local unit
    case $1 in
        openssh-server) set -- ssh.service ssh.socket ;;
        lxc) set -- lxc.service lxc-net.service lxc-monitord.service ;;
        *) return 0 ;;
    esac
    mkdir -p /etc/systemd/system
    for unit in "$@"; do
        [ -e "/etc/systemd/system/$unit" ] || ln -s /dev/null "/etc/systemd/system/$unit"
    done
    say "  masked: $* (systemctl unmask gives them back)"
}

# invoke-rc.d, which every package's installation calls to start a service, asks this program first; 101 means no.
policy=/usr/sbin/policy-rc.d

forbid_services() {
    [ ! -e "$policy" ] || mv "$policy" "$policy.gapline"
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
}

allow_services() {
    rm -f "$policy"
    [ ! -e "$policy.gapline" ] || mv "$policy.gapline" "$policy"
}
