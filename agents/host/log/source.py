"""The kernel's log, filtered on the target to the lines that somebody here can judge."""

from __future__ import annotations

from gapline.orchestrator.model.source import KIB, Script

# One awk reads all and prints what matters. A message that floods is counted from its 41st line on, so that it hides
# no other; two lines are the same message when their text without numbers is, and for Xid and AER also device and code.
# The ring buffer is asked first. Where it does not begin with the boot, the journal is; where neither does, the last
# line says so, and that is no clean log. Serial numbers are left out. Comparisons are turned so that none looks like a
# redirection.
KERNEL_LOG = Script(
    name="kernel_log",
    root=True,
    timeout=20,
    limit=512 * KIB,
    text=r"""
kernel_messages() {
  awk -v from="$1" '
function bus(l) {
  return match(l, /[0-9a-f]+:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f]\.[0-7]/) ? substr(l, RSTART, RLENGTH) : ""
}
function matters(k) {
  if (k ~ /NVRM:|nvidia: probe of|nvidia [0-9a-f:.]*: |firmware load for nvidia|D3cold|SXid/) return 1
  if (k ~ /AMD-Vi: .*IO_PAGE_FAULT|DMAR: \[DMA|_OSC: (platform (does not support|retains)|OS now)/) return 1
  if (k ~ /Hardware Error\]|EDAC .* (CE|UE) |oom-kill:|ut of memory: Kill/) return 1
  return k ~ /blocked for more than|soft lockup|hard LOCKUP|detected (expedited )?stall/
}
function message(l, k) {
  if (l ~ /Board Serial Number/) return ""
  k = l
  sub(/^(\[[ 0-9.TC]*\])+ */, "", k)
  if (k ~ /Xid \(/) { sub(/, .*/, "", k); return k }
  if (k ~ /PCIe Bus Error: severity=/) { sub(/, type=.*/, "", k); return k }
  if (k ~ /pci .*\[10de:[0-9a-f]*\] type .* class 0x03/) { gpu[bus(k)] = 1; return k }
  if (k ~ /BAR [0-9].*(assign|no space)|available PCIe bandwidth/) return (k !~ /VF BAR/ && bus(k) in gpu) ? k : ""
  if (!matters(k)) return ""
  gsub(/[0-9]+/, "#", k)
  return substr(k, 1, 70)
}
{
  if (from == "journal" && match($0, /\] [^ ]+ kernel: /)) $0 = substr($0, 1, RSTART) " " substr($0, RSTART + RLENGTH)
  if (NR == 1) first = $0
  if (NR <= 20 && /Linux version /) whole = 1
  m = message($0)
  if (m == "") next
  n[m]++; last[m] = $0
  if (n[m] <= 40) print "line|" substr($0, 1, 600)
}
END {
  for (m in n) if (40 < n[m]) print "more|" (n[m] - 40) "|" substr(last[m], 1, 600)
  begin = match(first, /^\[ *[0-9.]+\]/) ? substr(first, 2, RLENGTH - 2) : ""
  print "end|" from "|" (whole ? "whole" : "part") "|" NR "|" begin
}'
}
kernel_ring=$(dmesg 2>/dev/null | kernel_messages dmesg)
kernel_journal=
case $kernel_ring in
*'|whole|'*) ;;
*) kernel_journal=$(journalctl -k -b 0 -q --no-pager -o short-monotonic 2>/dev/null | kernel_messages journal) ;;
esac
case "$kernel_ring$kernel_journal" in
*'end|journal|whole|'*) printf '%s\n' "$kernel_journal" ;;
*'end|dmesg|part|0|'*) dmesg >/dev/null && echo 'the kernel log is empty' >&2; false ;;
*) printf '%s\n' "$kernel_ring" ;;
esac
""",
)
