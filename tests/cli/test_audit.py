"""`gapline audit` from the command line, over a real OpenSSH, into run, report and answer."""

from __future__ import annotations

import json
import os
import pty
import select
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tests.cli.command_line import CommandLine, answers
from tests.ssh.sshd import MakeSshd, Sshd, free_port

pytestmark = pytest.mark.ssh
SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
GARBAGE = "ForceCommand head -c 300000 /dev/urandom; echo; head -c 300000 /dev/urandom >&2"


def validate(document: object, schema: str) -> None:
    """Against the published schema."""
    jsonschema.validate(document, json.loads((SCHEMAS / schema).read_text()))


def test_from_the_command_line_into_run_and_report(gapline: CommandLine, sshd: Sshd) -> None:
    """Everything that an audit promises, on one healthy server: files, counts, answer, progress and log."""
    gapline.fleet(sshd.host())
    done = gapline("audit", "--out", "out")
    out = gapline.here / "out"
    validate(json.loads((out / "run.json").read_text()), "run-1.json")
    validate(json.loads((out / "snapshot-1" / "manifest.json").read_text()), "snapshot-1.json")
    run = gapline.run()
    assert done.code == run.summary.exit_code
    assert done.code in {0, 1, 3}
    (target,) = run.targets
    assert (target.id, target.route, target.problem) == ("pve1", "ssh", None)
    assert target.connections == 1
    assert 1 <= target.sessions <= 3
    assert target.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert abs(target.clock_skew_seconds or 0.0) < 60
    assert {one.agent.partition(".")[0] for one in run.outcomes} == {"host"}
    assert all(one.times.judged is not None and one.times.planned <= one.times.judged for one in run.outcomes)
    assert "</html>" in (out / "report.html").read_text()
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} <= {0o600, 0o700}
    assert str(out / "report.html") in done.out
    assert done.err.startswith("pve1: ")
    assert "\x1b" not in done.out + done.err
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    judged = {(line["target"], line["agent"]) for line in log if line["event"] == "agent.judged"}
    assert judged == {(one.target, one.agent) for one in run.outcomes}
    assert [line["event"] for line in log if line["event"].startswith("host.")] == ["host.started", "host.finished"]


def test_json_is_the_run_and_nothing_else(gapline: CommandLine, sshd: Sshd) -> None:
    """`--json` prints what run.json holds; without --out it lies in the state directory and is the last run."""
    fleet = gapline.fleet(sshd.host(), name="elsewhere.yaml")
    done = gapline("audit", "-i", fleet, "--agent", "host.numa_balancing", "--json", "--fail-on", "none")
    validate(done.json, "run-1.json")
    (folder,) = (gapline.state / "runs").iterdir()
    assert json.loads((folder / "run.json").read_text()) == done.json
    assert (done.json["run"]["fail_on"], done.json["summary"]["exit_code"]) == ("none", done.code)
    assert gapline("report", "--format", "json").json == done.json


def test_every_form_of_a_target(gapline: CommandLine, sshd: Sshd) -> None:
    """An alias of ~/.ssh/config, a name of the fleet through a group, user@host:port, and this machine; one run."""
    (gapline.home / ".ssh" / "config").write_text(
        f"Host box\n HostName {sshd.address}\n Port {sshd.port}\n IdentityFile {sshd.identity}\n"
        f" UserKnownHostsFile {sshd.known_hosts}\n VerifyHostKeyDNS yes\n"
        f"Host {sshd.address}\n IdentityFile {sshd.identity}\n UserKnownHostsFile {sshd.known_hosts}\n"
    )
    gapline.fleet(sshd.host("pve1"), extra="groups: {rack: [pve1]}\n")
    login = f"root@{sshd.address}:{sshd.port}"
    plan = gapline("plan", "rack", "box", "local", "--json").json
    assert [host["name"] for host in plan["hosts"]] == ["pve1", "box", "local"]
    done = gapline("audit", "box", "local", "--agent", "host.numa_balancing", "--json", "--fail-on", "none")
    told = {target["id"]: (target["route"], target["problem"]) for target in done.json["targets"]}
    assert told == {"box": ("ssh", None), "local": ("local", None)}
    assert "warning: " in done.err
    assert "VerifyHostKeyDNS" in done.err
    (one,) = gapline("doctor", login, "-i", gapline.fleet(sshd.host("other")), "--json").json["targets"]
    assert one["id"] in {"other", f"{sshd.address}:{sshd.port}"}
    assert one["kind"] == "linux_host"


def test_two_faulty_hosts_do_not_disturb_the_third(gapline: CommandLine, make_sshd: MakeSshd) -> None:
    """One refuses connections, one answers everything with garbage: the third is judged as if it were alone."""
    good, hostile = make_sshd(), make_sshd(GARBAGE)
    refusing = replace(good.host("refusing"), port=free_port())
    gapline.fleet(good.host("good"), refusing, hostile.host("hostile"))
    # Both at the level that samples nothing: what a window of some seconds shows is true of that window only.
    same = ("--playbook", "quick", "--fail-on", "none")
    alone = gapline("audit", "good", "--out", "alone", *same)
    done = gapline("audit", "--out", "out", *same)
    run = gapline.run()
    assert answers(run, ["good"]) == answers(gapline.run("alone"))
    assert done.code == 3
    assert alone.code in {0, 3}
    by_id = {target.id: target for target in run.targets}
    assert list(by_id) == ["good", "refusing", "hostile"]
    assert by_id["good"].problem is None
    assert by_id["refusing"].problem is not None
    assert by_id["refusing"].kind == "unreached"
    assert {one.status.value for one in run.outcomes if one.target != "good"} == {"unknown"}
    assert not {one.problem.kind.value for one in run.outcomes if one.problem} & {"defect"}
    assert "\x1b" not in done.out + done.err
    assert "refusing" in done.out
    assert "</html>" in (gapline.here / "out" / "report.html").read_text()


def _on_a_terminal(gapline: CommandLine, *words: str | Path, **environment: str) -> tuple[int, str]:
    """Run with a terminal for all three streams; exit code and all that appeared on it."""
    ours, theirs = pty.openpty()
    gapline.more |= environment
    process = gapline.start(*words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    seen = bytearray()
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # the other side has closed it
                break
    os.close(ours)
    return process.wait(), seen.decode(errors="replace")


@pytest.mark.parametrize("no_color", ["", "1"])
def test_on_a_terminal(gapline: CommandLine, sshd: Sshd, no_color: str) -> None:
    """Progress is shown while it runs and gone at the end; the answer stays; NO_COLOR takes the colours away."""
    gapline.fleet(sshd.host())
    environment = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"} | ({"NO_COLOR": "1"} if no_color else {})
    code, seen = _on_a_terminal(gapline, "audit", "--out", "out", "--agent", "host.numa_balancing", **environment)
    assert code == gapline.run().summary.exit_code
    assert "of 1 hosts done" in seen
    assert "report.html" in seen.rpartition("hosts done")[2]
    coloured = [code for code in ("\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[1;31m") if code in seen]
    assert not (coloured and no_color)


def test_a_reader_that_goes_away_is_neither_clean_nor_found(gapline: CommandLine) -> None:
    """As shells report SIGPIPE, without a word."""
    command = gapline.start("agents", "--json")
    assert command.stdout is not None
    command.stdout.close()
    assert command.wait() == 141
    assert command.stderr is not None
    with command.stderr as errors:
        assert errors.read() == b""


def test_audit_is_told_where_the_state_cannot_be_written(gapline: CommandLine, sshd: Sshd) -> None:
    """With --out a warning is all."""
    gapline.fleet(sshd.host())
    gapline.state.write_text("a file")
    done = gapline("audit", "--out", "out", "--agent", "host.numa_balancing", "--fail-on", "none")
    assert done.code == gapline.run().summary.exit_code
    assert "warning: not noted as the last run" in done.err


def test_passphrase_is_asked_for_and_kept_nowhere(gapline: CommandLine, make_sshd: MakeSshd, tmp_path: Path) -> None:
    """On a terminal, without echo; it appears neither there nor in any file."""
    key = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "pa55-phrase-x", "-C", "", "-f", key], check=True)
    server = make_sshd(authorized=Path(f"{key}.pub").read_text())
    gapline.fleet(server.host(identity=(key,)))
    ours, theirs = pty.openpty()
    words = ("audit", "--out", "out", "--agent", "host.numa_balancing", "--fail-on", "none")
    process = gapline.start(*words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    seen = b""
    while b"Passphrase for" not in seen:
        seen += os.read(ours, 4096)
    os.write(ours, b"pa55-phrase-x\n")
    while process.poll() is None:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:
                break
    os.close(ours)
    assert process.wait() == gapline.run().summary.exit_code
    assert gapline.run().targets[0].problem is None
    assert b"pa55" not in seen
    assert not [path for path in gapline.root.rglob("*") if path.is_file() and b"pa55" in path.read_bytes()]
