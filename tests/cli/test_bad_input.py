"""What is asked for wrongly: one clear error with place and hint, exit 2, nothing written, nobody contacted."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gapline.orchestrator.cli.app import main
from gapline.reports import json
from tests.cli.command_line import CommandLine
from tests.unit.invented import entry, run, target


@dataclass
class Listener:
    """A port that notices whoever connects."""

    port: int
    socket: socket.socket = field(repr=False)

    def was_contacted(self) -> bool:
        """Whether anybody did."""
        self.socket.settimeout(0)
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def listener() -> Iterator[Listener]:
    """One."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Listener(server.getsockname()[1], server)


@pytest.fixture
def place(gapline: CommandLine, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A directory with a right fleet file, wrong ones, wrong playbooks and a finished run."""
    here = gapline.here
    host = f"  pve1: {{address: 127.0.0.1, port: {listener.port}"
    texts = {
        "fleet.yaml": f"version: 1\nhosts:\n{host}}}\n",
        "two-faults.yaml": f"version: 1\nhosts:\n{host}, colour: red}}\n  pve2: {{port: many}}\n",
        "no-yaml.yaml": "version: 1\nhosts: [\n",
        "no-key.yaml": f"version: 1\nhosts:\n{host}, identity: missing.key}}\n",
        "key-is-folder.yaml": f"version: 1\nhosts:\n{host}, identity: run}}\n",
        "wrong-agent.playbook.yaml": "version: 1\nname: mine\nextends: full\nagents:\n  host.pci: {level: quick}\n",
        "wrong-limit.playbook.yaml": "version: 1\nname: mine\nextends: full\nagents:\n"
        "  host.pcie: {limits: {speed: {value: 3, origin: me}}}\n",
        "run/run.json": json.text(run(entry())),
        "damaged/run.json": "{",
        "newer/manifest.json": '{"schema": "gapline/snapshot/9", "version": "9"}',
        "file": "",
    }
    for name, text in texts.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text)
    monkeypatch.chdir(here)
    for name, value in gapline.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return gapline


def ends(monkeypatch: pytest.MonkeyPatch, words: Sequence[str]) -> int:
    """The exit code of the command, run in this process."""
    monkeypatch.setattr("sys.argv", ["gapline", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


CASES = [
    ("audit -i missing.yaml", ["missing.yaml"]),
    ("audit -i two-faults.yaml", ["two-faults.yaml:3:", "colour", "two-faults.yaml:4:16", "port"]),
    ("audit -i no-yaml.yaml", ["no-yaml.yaml:"]),
    ("audit -i no-key.yaml", ["no-key.yaml:3:", "missing.key", "cannot be read"]),
    ("audit -i key-is-folder.yaml", ["key-is-folder.yaml:3:", "cannot be read"]),
    ("audit pve11", ["pve11 is not in fleet.yaml", "pve1"]),
    ("audit -oProxyCommand=x@y", []),
    ("audit pve1/../129", ["not a container's name"]),
    ("audit pve1 root@pve1", ["asked for as"]),
    ("audit --playbook fast", ["fast"]),
    ("audit --playbook missing.playbook.yaml", ["missing.playbook.yaml"]),
    ("audit --playbook wrong-agent.playbook.yaml", ["wrong-agent.playbook.yaml:5:", "host.pci", "host.pcie"]),
    ("audit --playbook wrong-limit.playbook.yaml", ["wrong-limit.playbook.yaml:5:", "speed"]),
    ("audit --agent host.pci", ["host.pci", "host.pcie"]),
    ("audit --agent gpu.*", ["gpu.*"]),
    ("audit --fail-on terrible", ["terrible"]),
    ("audit --out run", ["run", "a run lies there already"]),
    ("audit --out file", ["file", "cannot be made"]),
    ("audit --out file/below", ["cannot be made"]),
    ("audit --out /proc/gapline", ["/proc/gapline", "cannot be made"]),
    ("audt", ["audt", "audit"]),
    ("audit --colour", ["--colour"]),
    ("plan --sudoers not/a/user", ["not/a/user"]),
    ("plan nosuchgroup/129 -i missing.yaml", ["missing.yaml"]),
    ("doctor -i two-faults.yaml", ["two-faults.yaml:3:"]),
    ("discover pve11", ["pve11"]),
    ("trust pve1 pve1 --fingerprint SHA256:x -i missing.yaml", ["missing.yaml"]),
    ("trust local", ["no SSH host"]),
    ("rerun host.pcie", ["no run yet"]),
    ("rerun host.pcie --run run", ["request.json"]),
    ("rerun host.pcie --run damaged", ["damaged/run.json"]),
    ("rerun host.pcie --run nowhere", ["nowhere/run.json"]),
    ("rerun", ["AGENT"]),
    ("replay nowhere", ["nowhere"]),
    ("replay newer", ["manifest.json", "Gapline 9"]),
    ("replay run", ["is no snapshot"]),
    ("report nowhere", ["nowhere/run.json"]),
    ("report damaged --format json", ["damaged/run.json"]),
    ("report run -o file/x", ["file/x", "cannot be written"]),
    ("report run --format pdf", ["pdf"]),
    ("agents host.pci", ["host.pci", "host.pcie"]),
    ("explain level.low", ["level.low"]),
]


@pytest.mark.parametrize(("command", "said"), CASES, ids=[command for command, _ in CASES])
def test_one_clear_error(
    place: CommandLine,
    listener: Listener,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    said: list[str],
) -> None:
    """Exit 2, said once on standard error with what is wrong and what to do; no file changed, no connection made."""
    before = place.files()
    assert ends(monkeypatch, command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    for words in said:
        assert words in err, err
    assert err.lower().count("error: ") == 1, err
    assert "hint: " in err or "--help" in err or "Did you mean" in err, err
    assert place.files() == before
    assert not listener.was_contacted()


def test_target_that_the_run_does_not_have(
    place: CommandLine, listener: Listener, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`rerun` knows its run's targets, and which agents look at them."""
    request = '{"targets": ["pve1"], "fleet": "fleet.yaml", "playbook": "full", "agents": [], "fail_on": null, "allow_init": false}'  # noqa: E501
    (place.here / "run" / "request.json").write_text(request)
    before = place.files()
    assert ends(monkeypatch, ["rerun", "host.pcie", "--run", "run", "--target", "pve2"]) == 2
    assert "the run has no target pve2" in capsys.readouterr().err
    whole = run(entry(), entry(target="pve1/7", agent="container.rlimits"))
    whole = whole.model_copy(update={"targets": (*whole.targets, target("pve1/7"))})
    (place.here / "run" / "run.json").write_text(json.text(whole))
    assert ends(monkeypatch, ["rerun", "host.pcie", "--run", "run", "--target", "pve1/7"]) == 2
    assert "looks at hosts, not at pve1/7" in capsys.readouterr().err
    assert place.files().keys() == before.keys()
    assert not listener.was_contacted()


def test_plan_contacts_nobody(
    place: CommandLine, listener: Listener, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every read is printed, and the host does not notice."""
    before = place.files()
    for words in (["plan"], ["plan", "--json"], ["plan", "--sudoers", "audit"]):
        assert ends(monkeypatch, words) == 0
        assert capsys.readouterr().out
    assert not listener.was_contacted()
    assert place.files() == before


@pytest.mark.usefixtures("place")
def test_plan_looks_no_name_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by DNS does a host notice."""

    def asked(*_: object) -> None:
        pytest.fail("a name was resolved")

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    assert ends(monkeypatch, ["plan", "root@unheard-of.invalid", "-i", str(Path("fleet.yaml"))]) == 0
