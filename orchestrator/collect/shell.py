r"""The shell functions that every collecting script starts from, in POSIX `sh`.

They run in dash, bash and busybox ash, as any user, with nothing but the shell, `head`, `grep`, `stat`, `cat`, `sleep`.
Names begin with an underscore so that no command of a target can be shadowed. Nothing in here writes to a file:
no here-documents (bash keeps big ones in a temporary file) and no redirection but to /dev/null and descriptors.

Variables: N nonce of the frames, T tag of this lane with a trailing dot, U last time seen, P and Q markers that wait
to be written, K set when we were told to go on, k how hard that was tried, n number of the current item, r its exit
status or a word: `a` abandoned, `d` not root, `n` no regular file, `w` withheld.

Everything started here carries GTAG=<T><n>. in its environment, so that it can be found again by `_sweep`,
whatever its session or process group, and within containers too. The tag is not the nonce: environments can be
read on the target.
"""

from __future__ import annotations

PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
KILL_AFTER = 1
"""Seconds from TERM to KILL."""

GIVE_UP_AFTER = 3 * KILL_AFTER
"""Seconds from the end of a command's time until it is left to the kernel, which alone still holds it."""

# A variable that came with the environment would be handed on to every child: the nonce must not be.
SETUP = f"""\
unset N T U P Q K S CT INIT CONFIG CGROUP CDPATH GREP_OPTIONS POSIXLY_CORRECT ENV BASH_ENV
PATH={PATH} LC_ALL=C; export PATH LC_ALL; umask 077
K= U=0; trap 'K=1' USR1
"""

# The watcher alone holds standard input, so nothing else can keep it open. A line there names a signal and the item
# whose processes are to get it, without the lane's own part of the tag; USR1 goes to the shell itself, or to the one of
# that name, and makes it give up what it waits for. Each is done in the background, since a look at the environment of
# a stuck process can hang too. End of input means: stop. The watcher is started before the tag is exported and
# therefore does not find its own grep. It sweeps again after a second because a child that was forked, but had not
# executed its command yet, did not carry the tag; what never executes one is in our process group.
WATCH = """\
exec 7<&0 </dev/null
( trap '' HUP PIPE; while read -r q n; do case $q in
USR1) if [ -n "$n" ]; then _sweep USR1 "$T$n" x & else kill -USR1 $$; fi ;;
*) _sweep "$q" "$T$n" & ;;
esac; done; kill -9 $$
for q in 0 1; do _sweep KILL "$T"; sleep $q; _sweep KILL "$T"; done; kill -9 0 ) <&7 7<&- >/dev/null 2>&1 & W=$!
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
P="$P
@$N z
" Q="$Q
@$N z
"
_flush
exit 0
"""
FINISH_SHARED = """\
P="$P
@$N z
"
_flush
exit 0
"""
"""Of a shell that scripts share: all that it says goes to standard output."""

# The end marker of an item waits (P for standard output, Q for standard error) and goes out with the begin marker of
# the next: each write wakes three processes and becomes a packet. Nothing that can take time comes in between.
FRAME = """\
_time() { { read -r u q </proc/uptime; } 2>/dev/null || u=$U; }
_flush() { [ -z "$P" ] || printf %s "$P"; [ -z "$Q" ] || printf %s "$Q" >&2; P= Q=; }
_begin() { printf '%s\\n@%s b %s\\n' "$P" "$N" "$n"; printf '%s\\n@%s b %s\\n' "$Q" "$N" "$n" >&2; P= Q=; }
_end() { _time; P="
@$N e $n $r $U $u
" Q="
@$N e $n
" U=$u; }
_word() { P="$P
@$N b $1

@$N e $1 $2 $U $U q
"; }
"""

# With a third argument the tag is the whole tag, not its beginning.
SWEEP = """\
_sweep() { for e in $(grep -lzsF$3 "GTAG=$2" /proc/[0-9]*/environ); do e=${e#/proc/}; kill -"$1" "${e%/*}"; done; }
"""

# Foreground work that only the kernel can hold up, and whose output is text: a shell's variable holds no NUL. It waits
# in P as a whole, with what was said on standard error.
DO = """\
_do() {
n=$1; shift
o=$( { e=$("$@" 2>&1 >&3 3>&-); r=$?; [ -z "$e" ] || printf '\\n@%s s %s\\n%s\\n' "$N" "$n" "$e"
printf '\\n@%s e %s %s' "$N" "$n" "$r"; } 3>&1 )
_time; P="$P
@$N b $n
$o $U $u q
" U=$u; [ ${#P} -lt 30000 ] || _flush; }
"""

# Regular files only: to open a pipe or a device may wait for ever.
FILE = """\
_file() {
n=$1; _begin
if [ -f "$3" ] || [ ! -e "$3" ]; then head -c "$2" -- "$3"; r=$?; else r=n; fi
_end; }
"""

GREP = """\
_grep() {
n=$1; shift; c=$#
for x do if [ -f "$x" ] || [ ! -e "$x" ]; then set -- "$@" "$x"; fi; done
shift "$c"; _do "$n" grep -aH '' -- "$@"; }
"""

# The command runs in the background and is waited for; `wait` ends when the watcher passes USR1 on, so that a process
# stuck in the kernel does not hold up the lane. Whoever reads the frames keeps the time and speaks to the watcher, late
# perhaps: USR1 counts only when this very command has had its time. The first sends TERM to the child itself, the
# second KILL, the third gives it up. A function that only carries output ends when what it carries does. What a command
# that has had its time left behind is ended too. bash reaps a child whenever it likes, and then remembers its status;
# the others keep it for `wait`.
RUN = """\
_over() { _time; [ $((${u%%.*} - ${U%%.*})) -ge "$t" ]; }
_run() {
n=$1 t=$2 k=; shift 2; _begin; GTAG=$T$n.
"$@" & p=$!
GTAG=$T
case $1 in _cut|_enter) f=:;; *) f=kill;; esac
while K=; wait "$p"; r=$?; [ -n "$K" ]; do
if ! kill -0 "$p" 2>/dev/null; then wait "$p"; q=$?; [ "$q" = 127 ] || r=$q; break; fi
_over || continue
case $k in "") $f "$p"; k=1;; 1) $f -9 "$p"; k=2;; *) r=a; break;; esac 2>/dev/null
done
if _over; then _sweep KILL "$T$n." >/dev/null 2>&1 & fi
_end; }
"""

# Scripts that share a shell: each runs in a child of it, that of `_do`, and knows none of our variables.
EVAL = """\
_eval() { unset N T U P Q K S W E k n t p q r u e x f
eval "set --
$1"; }
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
r=$( { { { printf '%s' "$S" | GTAG=${g}a. lxc-attach -n "$1" --clear-env -v "GTAG=$g" -- /bin/sh -s 3>&- 4>&- 6>&-
echo $? >&3; } 2>&6 6>&- | cat >&4 3>&- 4>&- 6>&-; } 6>&1 | cat >&2 3>&- 4>&-; } 3>&1 ); exit "$r" )
"""

ROOT = """\
_root() { [ "$E" = 0 ] && return 0; _word "$1" d; return 1; }
E=; while read -r k q e x; do [ "$k" != Uid: ] || { E=$e; break; }; done </proc/self/status
"""

GPU = """\
_gpu() { [ -e /proc/driver/nvidia ] && [ -e /dev/nvidiactl ] && return 0; _word "$1" w; return 1; }
"""
