"""Logging in: which keys are tried, who is asked for what, and what the error says when nothing fits."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.errors import AuthenticationFailed
from gapline.orchestrator.transport.ssh.dialer import Dialer
from tests.ssh.conftest import MakeDialer
from tests.ssh.output import run
from tests.ssh.server import Asking, ssh_server
from tests.ssh.sshd import MakeSshd, Sshd, keygen, public

pytestmark = pytest.mark.ssh
SECRET = "correct horse battery staple"  # noqa: S105 - the test's own


class Person:
    """Someone at the terminal, with one answer per question and a memory of the questions."""

    def __init__(self, *answers: str | None) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.echoed: list[bool] = []

    async def ask(self, question: str, *, echo: bool) -> str | None:
        """Answer after a moment, as people do."""
        self.asked.append(question)
        self.echoed.append(echo)
        await asyncio.sleep(0.05)
        return self._answers.pop(0) if self._answers else None


async def accepted(dialer: Dialer, host: Host) -> None:
    """It connects."""
    route = await dialer.connect(host)
    assert (await run(route, "echo in")).out == b"in\n"
    await route.close()


async def refusal(dialer: Dialer, host: Host) -> AuthenticationFailed:
    """It does not, and says what to do without saying any secret."""
    with pytest.raises(AuthenticationFailed) as caught:
        await dialer.connect(host)
    assert caught.value.hint
    assert SECRET not in f"{caught.value}{caught.value.hint}{caught.value.evidence}"
    return caught.value


async def test_wrong_key(sshd: Sshd, dialer: Dialer, tmp_path: Path) -> None:
    """The error names the key files that were tried, and what the server would take. It is not tried again."""
    error = await refusal(dialer, sshd.host(identity=(keygen(tmp_path / "wrong"),)))
    assert f"tried: {tmp_path / 'wrong'}" in str(error)
    assert "it accepts publickey" in str(error)
    assert sshd.log.count("Connection from") == 2  # one of them is the fixture that waited for the server


async def test_no_key_at_all(sshd: Sshd, dialer: Dialer) -> None:
    """Nothing to offer is an authentication failure like any other."""
    assert "no key at all" in str(await refusal(dialer, sshd.host(identity=())))


async def test_unreadable_and_damaged_keys(sshd: Sshd, dialer: Dialer, tmp_path: Path) -> None:
    """The reason stands beside each file; a good key among them still works."""
    damaged, missing = tmp_path / "damaged", tmp_path / "missing"
    damaged.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n")
    error = await refusal(dialer, sshd.host(identity=(damaged, missing)))
    assert f"{damaged} (not a private key that can be read)" in str(error)
    assert f"{missing} (no such file or directory)" in str(error)
    await accepted(dialer, sshd.host(identity=(damaged, missing, sshd.identity)))


@pytest.mark.parametrize("name", ["id_ed25519", "id_rsa"])
async def test_default_identities(make_sshd: MakeSshd, dialer: Dialer, home: Path, name: str) -> None:
    """~/.ssh/id_* are tried when nothing is named."""
    key = keygen(home / ".ssh" / name, kind=name.removeprefix("id_"))
    await accepted(dialer, make_sshd(authorized=public(key)).host(identity=()))


async def test_too_many_keys(make_sshd: MakeSshd, dialer: Dialer, tmp_path: Path) -> None:
    """MaxAuthTries ends the login before the right key: the hint says to name it."""
    server = make_sshd("MaxAuthTries 2")
    wrong = tuple(keygen(tmp_path / f"wrong{number}") for number in range(3))
    error = await refusal(dialer, server.host(identity=(*wrong, server.identity)))
    assert "identity:" in error.hint


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    """A key with a passphrase."""
    return keygen(tmp_path / "encrypted", passphrase=SECRET)


async def test_encrypted_key_and_nobody_to_ask(make_sshd: MakeSshd, dialer: Dialer, encrypted: Path) -> None:
    """The error says that the key is encrypted and what to do about it."""
    error = await refusal(dialer, make_sshd(authorized=public(encrypted)).host(identity=(encrypted,)))
    assert "encrypted, and nobody to ask" in str(error)
    assert "ssh-add" in error.hint


@pytest.mark.parametrize("public_half", [True, False])
async def test_passphrase_is_asked_once_for_many_hosts(
    make_sshd: MakeSshd, make_dialer: MakeDialer, encrypted: Path, public_half: bool
) -> None:
    """Eight logins at once, one question; with and without the .pub file beside the key."""
    server = make_sshd(authorized=public(encrypted))
    if not public_half:
        Path(f"{encrypted}.pub").unlink()
    person = Person(SECRET)
    dialer = make_dialer(person)
    await asyncio.gather(*(accepted(dialer, server.host(f"pve{n}", identity=(encrypted,))) for n in range(8)))
    assert person.asked == [f"Passphrase for {encrypted}:"]
    assert person.echoed == [False]


async def test_old_pem_key_without_public_half(make_sshd: MakeSshd, make_dialer: MakeDialer, tmp_path: Path) -> None:
    """The old format hides the public half too, so it is opened before it can be offered."""
    key = keygen(tmp_path / "pem", kind="rsa", passphrase=SECRET, options=("-m", "PEM"))
    server = make_sshd(authorized=public(key))
    Path(f"{key}.pub").unlink()
    await accepted(make_dialer(Person(SECRET)), server.host(identity=(key,)))


async def test_passphrase_is_not_asked_for_a_key_that_the_server_does_not_take(
    sshd: Sshd, make_dialer: MakeDialer, encrypted: Path
) -> None:
    """A wrong key costs no question."""
    person = Person(SECRET)
    await refusal(make_dialer(person), sshd.host(identity=(encrypted,)))
    assert person.asked == []


async def test_typing_takes_its_time(make_sshd: MakeSshd, make_dialer: MakeDialer, encrypted: Path) -> None:
    """The connect time-out stands still while a person types."""

    class Slow(Person):
        async def ask(self, question: str, *, echo: bool) -> str | None:
            await asyncio.sleep(1.2)
            return await super().ask(question, echo=echo)

    server = make_sshd(authorized=public(encrypted))
    await accepted(make_dialer(Slow(SECRET)), server.host(identity=(encrypted,), connect_timeout=1.0))


async def test_wrong_passphrases_then_the_right_one(
    make_sshd: MakeSshd, make_dialer: MakeDialer, encrypted: Path
) -> None:
    """Three tries, as ssh gives."""
    person = Person("wrong", "also wrong", SECRET)
    await accepted(make_dialer(person), make_sshd(authorized=public(encrypted)).host(identity=(encrypted,)))
    assert len(person.asked) == 3


async def test_declining_is_not_asked_again(make_sshd: MakeSshd, make_dialer: MakeDialer, encrypted: Path) -> None:
    """A person who presses Ctrl-D once is not asked for every further host."""
    server, person = make_sshd(authorized=public(encrypted)), Person(None)
    dialer = make_dialer(person)
    for name in ("pve1", "pve2"):
        await refusal(dialer, server.host(name, identity=(encrypted,)))
    assert len(person.asked) == 1


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A real ssh-agent of our own."""
    path = tmp_path / "agent"
    started = subprocess.run(["ssh-agent", "-a", str(path)], check=True, capture_output=True, text=True)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    yield path
    os.kill(int(started.stdout.split("SSH_AGENT_PID=")[1].split(";")[0]), signal.SIGTERM)


def add(key: Path) -> None:
    """Give a key to the agent."""
    subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)


async def test_agent(sshd: Sshd, dialer: Dialer, agent: Path) -> None:
    """Its keys are used when no other is named."""
    error = await refusal(dialer, sshd.host(identity=()))
    assert f"keys of the agent at {agent}" in str(error)
    add(sshd.identity)
    await accepted(dialer, sshd.host(identity=()))


async def test_agent_may_offer_only_the_named_identity(
    make_sshd: MakeSshd, dialer: Dialer, agent: Path, tmp_path: Path
) -> None:
    """An inventory's `identity:` is not lost among many keys of the agent, and may be a public key."""
    assert agent.exists()
    server = make_sshd("MaxAuthTries 2")
    for number in range(3):
        add(keygen(tmp_path / f"other{number}"))
    add(server.identity)
    await accepted(dialer, server.host(identity=(Path(f"{server.identity}.pub"),)))


async def test_agent_that_is_gone(sshd: Sshd, dialer: Dialer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stale SSH_AUTH_SOCK is no error while a key file works."""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "gone"))
    await accepted(dialer, sshd.host())
    await refusal(dialer, sshd.host(identity=()))


@pytest.mark.parametrize("passphrase", ["", SECRET])
async def test_user_certificate(make_sshd: MakeSshd, make_dialer: MakeDialer, tmp_path: Path, passphrase: str) -> None:
    """A certificate beside its key logs in where the key alone is unknown, also when the key is encrypted."""
    authority, key = keygen(tmp_path / "authority"), keygen(tmp_path / "user", passphrase=passphrase)
    server = make_sshd(f"TrustedUserCAKeys {authority}.pub")
    host = server.host(identity=(key,))
    await refusal(make_dialer(Person(SECRET)), host)
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "user", "-n", server.user, f"{key}.pub"]
    subprocess.run(sign, check=True, capture_output=True)
    await accepted(make_dialer(Person(SECRET)), host)


async def test_password(make_dialer: MakeDialer, tmp_path: Path) -> None:
    """Asked per host, tried again when mistyped, never where nobody sits."""
    handler = Asking(password=SECRET)
    async with ssh_server(tmp_path, lambda: handler) as server:
        error = await refusal(make_dialer(), server.host())
        assert handler.attempts == []
        assert "password" in str(error)
        person = Person("mistyped", SECRET)
        route = await make_dialer(person).connect(server.host())
        await route.close()
        assert person.asked == [f"Password for auditor@127.0.0.1:{server.port}:"] * 2
        assert person.echoed == [False, False]
        assert handler.attempts == ["mistyped", SECRET]


async def test_password_is_asked_three_times_at_most(make_dialer: MakeDialer, tmp_path: Path) -> None:
    """Then it is an authentication failure."""
    async with ssh_server(tmp_path, lambda: Asking(password=SECRET)) as server:
        person = Person(*["wrong"] * 10)
        await refusal(make_dialer(person), server.host())
        assert len(person.asked) == 3


async def test_one_time_code(make_dialer: MakeDialer, tmp_path: Path) -> None:
    """The server's question is shown with the login, without its control characters, and echoed as it asks."""
    async with ssh_server(tmp_path, lambda: Asking(code="123456")) as server:
        person = Person("123456")
        route = await make_dialer(person).connect(server.host())
        await route.close()
        assert person.asked == [f"auditor@127.0.0.1:{server.port}:  [2JCode:"]
        assert person.echoed == [True]


async def test_questions_are_asked_one_at_a_time(make_dialer: MakeDialer, tmp_path: Path) -> None:
    """Four hosts that want a password do not talk over each other."""
    open_now = most = 0

    class Busy(Person):
        async def ask(self, question: str, *, echo: bool) -> str | None:
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            await super().ask(question, echo=echo)
            open_now -= 1
            return SECRET

    async with ssh_server(tmp_path, lambda: Asking(password=SECRET)) as server:
        dialer = make_dialer(Busy())
        routes = await asyncio.gather(*(dialer.connect(server.host(f"pve{number}")) for number in range(4)))
        for route in routes:
            await route.close()
    assert most == 1


async def test_nothing_secret_is_logged(
    make_sshd: MakeSshd, make_dialer: MakeDialer, encrypted: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Neither passphrase nor password nor key material reaches the log or the terminal."""
    structlog.reset_defaults()  # which print everything, whatever another test has set
    host = make_sshd(authorized=public(encrypted)).host(identity=(encrypted,))
    await accepted(make_dialer(Person(SECRET)), host)
    async with ssh_server(tmp_path, lambda: Asking(password=SECRET)) as server:
        await refusal(make_dialer(Person(SECRET + "x", SECRET + "y", SECRET + "z")), server.host())
    said = "".join(capfd.readouterr())
    assert "ssh.connect" in said
    assert SECRET not in said
    assert "PRIVATE KEY" not in said
