"""The webhook's certificate on disk: when it ends, and what is said of files that are no good."""

from __future__ import annotations

import datetime as dt
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from dra_operator.app.certificates import ServingCertificate, at, end_of
from tests.authority import Authority

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def folder(tmp_path: Path, authority: Authority) -> Path:
    authority.sign(tmp_path)
    return tmp_path


def openssls_end(path: Path) -> float:
    said = subprocess.run(
        ["openssl", "x509", "-noout", "-enddate", "-in", str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return ssl.cert_time_to_seconds(said.strip().partition("=")[2])


@pytest.mark.parametrize("days", [-1, 1, 365, 20_000], ids="{} days".format)
def test_the_end_is_that_which_openssl_reads(tmp_path: Path, authority: Authority, days: int) -> None:
    """From 2050 on, times are written in another form."""
    authority.sign(tmp_path, days=days)

    end = end_of((tmp_path / "tls.crt").read_bytes())
    assert end == openssls_end(tmp_path / "tls.crt")
    assert abs(end - dt.datetime.now(dt.UTC).timestamp() - days * DAY) < DAY


def test_of_a_chain_it_is_the_first(folder: Path, authority: Authority) -> None:
    own = (folder / "tls.crt").read_bytes()

    assert end_of(b"leaf of somebody\n" + own + authority.bundle.read_bytes()) == end_of(own)


@pytest.mark.parametrize("size", [0, 1, 2, 60, 200])
def test_what_is_cut_off_is_no_certificate(folder: Path, size: int) -> None:
    der = ssl.PEM_cert_to_DER_cert((folder / "tls.crt").read_text())[:size]

    with pytest.raises(ValueError, match=r"holds no X\.509 certificate in PEM form"):
        end_of(ssl.DER_cert_to_PEM_cert(der).encode())


def test_a_good_one_is_taken_with_its_end(folder: Path) -> None:
    certificate = ServingCertificate(str(folder))
    assert (certificate.is_usable, certificate.expires) == (False, None)
    certificate.refresh()

    assert certificate.is_usable
    assert certificate.expires == openssls_end(folder / "tls.crt")
    assert certificate.trouble == ""


def spoil(folder: Path, how: str, authority: Authority) -> None:
    certificate, key = folder / "tls.crt", folder / "tls.key"
    match how:
        case "missing":
            key.unlink()
        case "a folder":
            certificate.unlink()
            certificate.mkdir()
        case "empty":
            certificate.write_text("")
        case "no text":
            certificate.write_bytes(b"\x30\x82\xff\xff")
        case "another's key":
            authority.sign(folder / "other")
            key.write_bytes((folder / "other" / "tls.key").read_bytes())
        case "a key under a password":
            command = ["openssl", "ec", "-in", str(key), "-aes256", "-passout", "pass:x", "-out"]
            subprocess.run([*command, str(folder / "locked")], capture_output=True, check=True)
            (folder / "locked").replace(key)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("missing", "cannot read {}/tls.key: No such file or directory"),
        ("a folder", "cannot read {}/tls.crt: Is a directory"),
        ("empty", "{}/tls.crt and tls.key beside it cannot be used"),
        ("no text", "{}/tls.crt and tls.key beside it cannot be used"),
        ("another's key", "{}/tls.crt and tls.key beside it cannot be used: key values mismatch"),
        ("a key under a password", "{}/tls.crt and tls.key beside it cannot be used"),
    ],
)
def test_bad_files_are_named_once_with_the_remedy(
    folder: Path, authority: Authority, caplog: pytest.LogCaptureFixture, how: str, words: str
) -> None:
    good = ServingCertificate(str(folder))
    good.refresh()
    expires = good.expires
    spoil(folder, how, authority)
    for certificate in (good, fresh := ServingCertificate(str(folder))):
        for _ in range(3):
            certificate.refresh()
        assert certificate.trouble.startswith(words.format(folder))
        assert "Secret dra-operator-webhook" in certificate.trouble
    assert (good.is_usable, good.expires) == (True, expires)
    assert (fresh.is_usable, fresh.expires) == (False, None)
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]

    authority.sign(folder) if how != "a folder" else (folder / "tls.crt").rmdir()
    if how != "a folder":
        fresh.refresh()
        assert (fresh.is_usable, fresh.trouble) == (True, "")


def test_a_time_is_written_as_kubernetes_does() -> None:
    assert at(0.0) == "1970-01-01T00:00:00Z"
