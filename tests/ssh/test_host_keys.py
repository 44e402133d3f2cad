"""Host keys: unknown, changed and revoked are told apart, and nothing is trusted silently."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.errors import HostKeyChanged, HostKeyRevoked, HostKeyUnknown, TransportError
from gapline.orchestrator.transport.ssh.dialer import Dialer
from gapline.orchestrator.transport.ssh.host_keys import trust
from tests.ssh.conftest import MakeDialer
from tests.ssh.output import run
from tests.ssh.sshd import MakeSshd, Sshd, keygen, public

pytestmark = pytest.mark.ssh


async def accepted(dialer: Dialer, host: Host) -> None:
    """It connects."""
    route = await dialer.connect(host)
    assert (await run(route, "echo in")).out == b"in\n"
    await route.close()


async def refusal(dialer: Dialer, host: Host) -> TransportError:
    """It does not, and the error says what to do."""
    with pytest.raises(TransportError) as caught:
        await dialer.connect(host)
    assert caught.value.hint
    return caught.value


def fingerprint(key: Path) -> str:
    """As OpenSSH computes it."""
    command = ["ssh-keygen", "-l", "-f", f"{key}.pub"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1]


async def test_unknown(sshd: Sshd, dialer: Dialer) -> None:
    """The fingerprint that the server offers is in the message, as `ssh-keygen -l` prints it."""
    sshd.known_hosts.write_text("")
    error = await refusal(dialer, sshd.host())
    assert type(error) is HostKeyUnknown
    assert fingerprint(sshd.host_key) in str(error)
    assert "gapline trust pve1" in error.hint
    assert "Accepted" not in sshd.log


async def test_no_known_hosts_file_at_all(sshd: Sshd, dialer: Dialer) -> None:
    """A file that is not there knows nobody."""
    sshd.known_hosts.unlink()
    assert type(await refusal(dialer, sshd.host())) is HostKeyUnknown


async def test_changed(sshd: Sshd, dialer: Dialer, tmp_path: Path) -> None:
    """Another key of the same algorithm."""
    other = keygen(tmp_path / "other")
    sshd.known_hosts.write_text(f"{sshd.listed} {public(other)}\n")
    error = await refusal(dialer, sshd.host())
    assert type(error) is HostKeyChanged
    assert fingerprint(sshd.host_key) in str(error)
    assert f"ssh-keygen -R '{sshd.listed}'" in error.hint


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
async def test_changed_to_another_algorithm(sshd: Sshd, dialer: Dialer, tmp_path: Path, kind: str) -> None:
    """The server has no key of the known algorithm left: still changed, not an obscure reset."""
    other = keygen(tmp_path / "other", kind=kind)
    sshd.known_hosts.write_text(f"{sshd.listed} {public(other)}\n")
    assert type(await refusal(dialer, sshd.host())) is HostKeyChanged


async def test_a_further_key_of_another_algorithm_is_no_change(
    make_sshd: MakeSshd, dialer: Dialer, tmp_path: Path
) -> None:
    """A server with two keys is asked for the one that is known."""
    second = keygen(tmp_path / "second", kind="ecdsa")
    server = make_sshd(f"HostKey {second}")
    server.known_hosts.write_text(f"{server.listed} {public(second)}\n")
    await accepted(dialer, server.host())


@pytest.mark.parametrize("also_known", [False, True])
async def test_revoked(sshd: Sshd, dialer: Dialer, also_known: bool) -> None:
    """A revoked key is refused even where it is also listed as known."""
    key = public(sshd.host_key)
    known = f"{sshd.listed} {key}\n" if also_known else ""
    sshd.known_hosts.write_text(f"{known}@revoked * {key}\n")
    assert type(await refusal(dialer, sshd.host())) is HostKeyRevoked


async def test_hashed_names(sshd: Sshd, dialer: Dialer) -> None:
    """What `HashKnownHosts yes` writes."""
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(sshd.known_hosts)], check=True, capture_output=True)
    assert sshd.known_hosts.read_text().startswith("|1|")
    await accepted(dialer, sshd.host())


async def test_a_hashed_name_with_another_key_is_a_change(sshd: Sshd, dialer: Dialer, tmp_path: Path) -> None:
    """Hashing hides the name, not the change."""
    sshd.known_hosts.write_text(f"{sshd.listed} {public(keygen(tmp_path / 'other'))}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(sshd.known_hosts)], check=True, capture_output=True)
    assert type(await refusal(dialer, sshd.host())) is HostKeyChanged


async def test_name_without_port_is_taken_as_openssh_takes_it(sshd: Sshd, dialer: Dialer, tmp_path: Path) -> None:
    """The right key under the bare name is good for any port; another one there only makes this port unknown."""
    sshd.know(sshd.address)
    await accepted(dialer, sshd.host())
    other = tmp_path / "known_for_port_22"
    other.write_text(f"{sshd.address} {public(keygen(tmp_path / 'other'))}\n")
    assert type(await refusal(dialer, sshd.host(known_hosts=other))) is HostKeyUnknown


async def test_a_key_known_for_the_address_only_is_unknown_for_the_name(
    sshd: Sshd, dialer: Dialer, make_dialer: MakeDialer
) -> None:
    """As in OpenSSH; else a host that took over an address would be trusted under any name."""
    assert type(await refusal(dialer, sshd.host(address="localhost"))) is HostKeyUnknown
    sshd.know(f"[localhost]:{sshd.port}")
    await accepted(make_dialer(), sshd.host(address="localhost"))


async def test_lines_that_nobody_can_read_are_skipped(sshd: Sshd, dialer: Dialer) -> None:
    """One broken line does not lock out the fleet."""
    good = sshd.known_hosts.read_text()
    sshd.known_hosts.write_bytes(
        b"nonsense\n@strange marker line\n|1|broken ssh-ed25519 AAAA\n\xff\xfe\n" + good.encode()
    )
    await accepted(dialer, sshd.host())


async def test_host_key_alias(sshd: Sshd, make_dialer: MakeDialer, home: Path) -> None:
    """The alias is looked up instead of the name, without the port."""
    (home / ".ssh/config").write_text(f"Host {sshd.address}\n HostKeyAlias rack-7\n")
    sshd.know("rack-7")
    await accepted(make_dialer(), sshd.host())


async def test_user_known_hosts_file_none_does_not_switch_the_check_off(
    sshd: Sshd, make_dialer: MakeDialer, home: Path
) -> None:
    """With asyncssh alone every key would then be good."""
    (home / ".ssh/config").write_text("UserKnownHostsFile none\nStrictHostKeyChecking no\n")
    assert type(await refusal(make_dialer(), sshd.host(known_hosts=None))) is HostKeyUnknown


async def test_default_file_is_the_users_own(sshd: Sshd, dialer: Dialer, home: Path) -> None:
    """~/.ssh/known_hosts, when nothing else is named."""
    (home / ".ssh/known_hosts").write_text(sshd.known_hosts.read_text())
    await accepted(dialer, sshd.host(known_hosts=None))


def certify(host_key: Path, authority: Path, principal: str, *options: str) -> Path:
    """Sign a host key; the certificate's path."""
    command = [
        "ssh-keygen",
        "-q",
        "-s",
        str(authority),
        "-I",
        "host",
        "-h",
        "-n",
        principal,
        *options,
        f"{host_key}.pub",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return host_key.with_name(f"{host_key.name}-cert.pub")


@pytest.mark.parametrize(
    ("principal", "options", "good"),
    [("127.0.0.1", (), True), ("elsewhere", (), False), ("127.0.0.1", ("-V", "20200101:20200102"), False)],
    ids=["good", "other name", "expired"],
)
async def test_host_certificates(
    make_sshd: MakeSshd, dialer: Dialer, tmp_path: Path, principal: str, options: tuple[str, ...], good: bool
) -> None:
    """A certificate of a known authority is enough, when its name and dates are right."""
    authority, key = keygen(tmp_path / "authority"), keygen(tmp_path / "certified")
    certificate = certify(key, authority, principal, *options)
    server = make_sshd(f"HostKey {key}\nHostCertificate {certificate}")
    server.known_hosts.write_text(f"@cert-authority {server.listed} {public(authority)}\n")
    if good:
        await accepted(dialer, server.host())
    else:
        error = await refusal(dialer, server.host())
        assert type(error) is HostKeyUnknown
        assert "certificate" in str(error)


async def test_a_certificate_of_a_revoked_authority(make_sshd: MakeSshd, dialer: Dialer, tmp_path: Path) -> None:
    """Revoking the authority revokes what it signed."""
    authority, key = keygen(tmp_path / "authority"), keygen(tmp_path / "certified")
    server = make_sshd(f"HostKey {key}\nHostCertificate {certify(key, authority, '127.0.0.1')}")
    ca = public(authority)
    server.known_hosts.write_text(f"@cert-authority * {ca}\n@revoked * {ca}\n")
    assert type(await refusal(dialer, server.host())) is HostKeyRevoked


async def test_trust_records_the_key_that_was_offered(sshd: Sshd, make_dialer: MakeDialer) -> None:
    """Shown, recorded once with mode 0600, and then accepted."""
    sshd.known_hosts.unlink()
    dialer = make_dialer()
    offered = await dialer.offered_key(sshd.host())
    assert offered.fingerprint == fingerprint(sshd.host_key)
    assert dialer.known_hosts(sshd.host()) == (sshd.listed, (str(sshd.known_hosts),))
    assert trust(sshd.known_hosts, offered)
    assert not trust(sshd.known_hosts, offered)
    assert sshd.known_hosts.read_text() == f"{sshd.listed} {public(sshd.host_key)}\n"
    assert sshd.known_hosts.stat().st_mode & 0o777 == 0o600
    await accepted(dialer, sshd.host())


async def test_trust_never_replaces_a_key(sshd: Sshd, dialer: Dialer, tmp_path: Path) -> None:
    """A changed or revoked key is an error, and the file stays as it is, byte for byte."""
    offered = await dialer.offered_key(sshd.host())
    for before, expected in (
        (f"{sshd.listed} {public(keygen(tmp_path / 'other'))}\n", HostKeyChanged),
        (f"@revoked * {public(sshd.host_key)}\n", HostKeyRevoked),
    ):
        sshd.known_hosts.write_text(before)
        with pytest.raises(expected):
            trust(sshd.known_hosts, offered)
        assert sshd.known_hosts.read_text() == before


async def test_trust_appends_to_a_torn_file(sshd: Sshd, dialer: Dialer) -> None:
    """A last line without its end is not joined with ours."""
    offered = await dialer.offered_key(sshd.host())
    sshd.known_hosts.write_text("elsewhere ssh-ed25519 AAAA")
    trust(sshd.known_hosts, offered)
    assert sshd.known_hosts.read_text().splitlines() == ["elsewhere ssh-ed25519 AAAA", offered.line]


async def test_many_hosts_share_one_reading_of_known_hosts(make_sshd: MakeSshd, dialer: Dialer) -> None:
    """Names on loopback are told apart by the file, all at once."""
    server = make_sshd("MaxStartups 100", address="0.0.0.0")  # noqa: S104 - loopback addresses are all that is used
    addresses = [f"127.0.1.{number}" for number in range(1, 9)]
    server.know(*(f"[{address}]:{server.port}" for address in addresses[:-1]))
    hosts = [server.host(address, address=address) for address in addresses]
    results = await asyncio.gather(*(dialer.connect(host) for host in hosts), return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["SshRoute"] * 7 + ["HostKeyUnknown"]
