r"""The shell functions that every collecting script starts from, in POSIX `sh`.

They run in dash, bash and busybox ash, as any user, with nothing but the shell, `head`, `grep`, `stat` and `sleep`.
Names begin with an underscore so that no command of a target can be shadowed. Nothing in here writes to a file:
no here-documents (bash keeps big ones in a temporary file) and no redirection but to /dev/null and descriptors.

Variables: N nonce of the frames, T tag of this lane with a trailing dot, U last time seen, P and Q markers that wait
to be written, K set when a command is given up, n number of the current item, r its exit status or a word:
`a` abandoned, `d` not root, `n` no regular file, `w` withheld.

Everything started here carries GTAG=<T><n>. in its environment, so that it can be found again by `_sweep`,
whatever its session or process group, and within containers too. The tag is not the nonce: environments can be
read on the target.
"""

from __future__ import annotations

TAG_VARIABLE = "GTAG"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
KILL_AFTER = 1
"""Seconds from TERM to KILL, and again from KILL to abandoning a process that not even that can end."""

# A variable that came with the environment would be handed on to every child: the nonce must not be.
SETUP = f"""\
unset N T U P Q K S CT INIT CONFIG CGROUP CDPATH GREP_OPTIONS POSIXLY_CORRECT ENV BASH_ENV
PATH={PATH} LC_ALL=C; export PATH LC_ALL; umask 077
K= U=0; trap 'K=1' USR1
"""

# End of standard input means: stop. The watcher alone holds it, so nothing else can keep it open. It is started
# before the tag is exported and therefore does not find its own grep. It sweeps again after a second because a child
# that was forked, but had not executed its command yet, did not carry the tag.
WATCH = """\
exec 7<&0 </dev/null
( trap '' HUP PIPE; while read -r q; do :; done; kill -9 $$
for q in 0 1; do _sweep KILL "$T"; sleep $q; _sweep KILL "$T"; done ) <&7 7<&- >/dev/null 2>&1 & W=$!
exec 7<&-
export GTAG="$T"
"""

# Inside a container standard input ends with the script; the host's watcher finds everything by the tag.
INHERIT = """\
exec </dev/null
T=$GTAG
"""

CLOSE = 'kill "$W"\n'
FINISH = """\
_flush
printf '\\n@%s z\\n' "$N"; printf '\\n@%s z\\n' "$N" >&2
exit 0
"""

# The end marker of an item waits (P for standard output, Q for standard error) and goes out with the begin marker of
# the next: each write may become a packet of its own. Nothing that can take time comes in between.
FRAME = """\
_time() { { read -r u q </proc/uptime; } 2>/dev/null || u=$U; }
_flush() { [ -z "$P" ] || printf %s "$P"; [ -z "$Q" ] || printf %s "$Q" >&2; P= Q=; }
_begin() { printf '%s\\n@%s b %s\\n' "$P" "$N" "$n"; printf '%s\\n@%s b %s\\n' "$Q" "$N" "$n" >&2; P= Q=; }
_end() { _time; P="
@$N e $n $r $U $u
" Q="
@$N e $n
" U=$u; }
_word() { _flush; printf '\\n@%s b %s\\n\\n@%s e %s %s %s %s q\\n' "$N" "$1" "$N" "$1" "$2" "$U" "$U"; }
"""

SWEEP = """\
_sweep() { for e in $(grep -lzsF "GTAG=$2" /proc/[0-9]*/environ); do e=${e#/proc/}; kill -"$1" "${e%/*}"; done; }
"""

# Foreground work that only the kernel can hold up. Regular files only: to open a pipe or a
# device may wait for ever.
FILE = """\
_do() { n=$1; shift; _begin; "$@"; r=$?; _end; }
_file() {
n=$1; _begin
if [ -f "$3" ] || [ ! -e "$3" ]; then head -c "$2" -- "$3"; r=$?; else r=n; fi
_end; }
"""

# A file that holds one line of text, without a process (0.03 ms against 0.8 ms). Whatever is not exactly one
# complete line, and every error, goes the long way.
LINE = """\
_line() {
_flush
if { IFS= read -r l && ! IFS= read -r q && [ -z "$q" ]; } 2>/dev/null <"$3"; then
printf '\\n@%s b %s\\n%s\\n\\n@%s e %s 0 %s %s q\\n' "$N" "$1" "$l" "$N" "$1" "$U" "$U"
else _file "$@"; fi; }
"""

GREP = """\
_grep() {
n=$1; shift; c=$#
for x do if [ -f "$x" ] || [ ! -e "$x" ]; then set -- "$@" "$x"; fi; done
shift "$c"; _do "$n" grep -aH '' -- "$@"; }
"""

# The command runs in the background and is waited for; `wait` ends when the watchdog signals, so that a process
# stuck in the kernel does not hold up the lane. No `timeout`: old busybox has another syntax, newer ones kill no
# grandchildren, small containers have none. The watchdog's own processes carry the lane's tag but not the item's,
# and those that only carry output (tag h) may finish unless all else fails. Once the time is up it finishes its work
# even if the command itself has gone, since what that started may not have. It signals until it is heard: bash 5.2
# loses a signal that comes together with the end of another child. What begins with an underscore is a function of
# ours and ends when its children do.
RUN = f"""\
_run() {{
n=$1 t=$2 K=; shift 2; _begin; GTAG=$T$n.
"$@" & p=$!
( trap 'kill -9 $!; exit' TERM; GTAG=${{T}}w.
case $1 in _*) f=:;; *) f=kill;; esac
sleep "$t" & wait $! || exit
trap '' TERM
$f "$p"; _sweep TERM "$T$n." & sleep {KILL_AFTER} & wait $! || exit
$f -9 "$p"; _sweep KILL "$T$n." & q=$!
kill -0 "$p" || {{ wait "$q"; exit; }}
sleep {KILL_AFTER} & wait $! || exit
kill -0 "$p" || exit
_sweep KILL "${{T}}h.$n." & trap 'kill -9 $!; exit' TERM
while kill -USR1 $$; do sleep 1 & wait $!; done ) >/dev/null 2>&1 & d=$!
wait "$p"; r=$?
[ -z "$K" ] || r=a
kill "$d" 2>/dev/null; wait "$d"
_end; }}
"""

# Output beyond the limit is cut on the target; the exit status travels through descriptor 3.
CUT = """\
_cut() ( c=$1; shift; exec 4>&1
r=$( { { "$@" 3>&- 4>&-; echo $? >&3; } | GTAG=${T}h.$n. head -c "$c" >&4 3>&- 4>&-; } 3>&1 ); exit "$r" )
"""

# Both streams come through a `cat` of ours: what runs inside must not hold, and could reopen and read, the lane's
# own pipes. `--clear-env` keeps the host's environment out of the container.
ENTER = """\
_enter() ( exec 4>&1; g=$GTAG
GTAG=${T}h.$n.
r=$( { { { printf '%s' "$S" | GTAG=$g lxc-attach -n "$1" --clear-env -v "GTAG=$g" -- /bin/sh -s 3>&- 4>&- 6>&-
echo $? >&3; } 2>&6 6>&- | cat >&4 3>&- 4>&- 6>&-; } 6>&1 | cat >&2 3>&- 4>&-; } 3>&1 ); exit "$r" )
"""

ROOT = """\
_root() { [ "$E" = 0 ] && return 0; _word "$1" d; return 1; }
E=; while read -r k q e x; do [ "$k" != Uid: ] || { E=$e; break; }; done </proc/self/status
"""

GPU = """\
_gpu() { [ -e /proc/driver/nvidia ] && [ -e /dev/nvidiactl ] && return 0; _word "$1" w; return 1; }
"""
