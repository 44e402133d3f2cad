# shellcheck shell=bash
# Sourced by the other scripts: one Python environment with hash-checked packages, made once, left alone until the
# locks or pyproject.toml change. Runs on bash 3.2 (macOS) too.
#
#   GAPLINE_VENV  where the environment lies; else the active one (VIRTUAL_ENV); else .venv

set -euo pipefail

export PIP_DISABLE_PIP_VERSION_CHECK=1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${GAPLINE_VENV:-${VIRTUAL_ENV:-$root/.venv}}
python=$venv/bin/python

# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"

say() { printf '%s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# prepare LOCK...: an environment that holds these locks of requirements/, and Gapline itself, editable.
prepare() {
    local stamp=$venv/.gapline-$* wanted
    stamp=${stamp// /+}
    wanted=$(cd "$root" && pwd && cksum pyproject.toml "${@/#/requirements/}")
    if [ -x "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    say "Setting up $venv (once; again when pyproject.toml or requirements/ change) ..."
    "$python" -c '' 2>/dev/null || make_venv
    install_locked "$@"
    printf '%s\n' "$wanted" >"$stamp"
}

make_venv() {
    if command -v uv >/dev/null; then
        uv venv --quiet --clear --python '>=3.11' "$venv"
        return
    fi
    local base
    base=$(find_python) || die "Gapline needs Python 3.11 or newer, and none is on PATH. Install it, or uv, which brings one."
    if ! "$base" -c 'import ensurepip' 2>/dev/null; then
        # Debian and Ubuntu split it off.
        local package
        package=$("$base" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')
        may_install || die "$base cannot make environments: $package is missing. As root: apt-get install $package"
        install_packages "$package"
    fi
    "$base" -m venv --clear "$venv"
}

find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

# Without build isolation: the build backend comes from the lock like everything else.
install_locked() {
    local name arguments=() installer=("$python" -m pip)
    for name in "$@"; do arguments+=(--requirement "$root/requirements/$name"); done
    if command -v uv >/dev/null; then
        installer=(uv pip)
        export VIRTUAL_ENV=$venv
    elif ! "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m ensurepip >/dev/null  # the environment was made by uv
    fi
    "${installer[@]}" install --quiet --require-hashes "${arguments[@]}"
    "${installer[@]}" install --quiet --no-deps --no-build-isolation --editable "$root"
}
