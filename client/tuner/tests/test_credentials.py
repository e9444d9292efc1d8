"""Files of certificates, keys and tokens: what is wrong with one is said before it is used."""

import subprocess
from pathlib import Path

import pytest
from library_words import assert_own_words
from tls import Certificate

from hlorank import HlorankError
from hlorank_tune.credentials import channel_credentials

SERVER = "https://localhost:7070"


def openssl(folder: Path, command: str) -> None:
    subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with certificates and keys, right and wrong."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("own", "other"):
        Certificate(folder, name)
    openssl(folder, "pkey -in own.key -aes256 -passout pass:word -out encrypted.key")
    openssl(folder, "ec -in own.key -aes256 -passout pass:word -out encrypted_old.key")
    openssl(folder, "x509 -in own.crt -outform der -out own.der")
    openssl(folder, "pkey -in own.key -outform der -out key.der")
    openssl(folder, "pkcs12 -export -in own.crt -inkey own.key -passout pass: -out own.p12")
    for name in ("own.crt", "own.key"):
        lines = (folder / name).read_text().splitlines()
        (folder / f"damaged.{name}").write_text("\n".join([lines[0], lines[1][:-9], *lines[2:]]))
        (folder / f"cut.{name}").write_text("\n".join(lines[:-1]))
    (folder / "empty").touch()
    (folder / "text").write_text("no PEM")
    (folder / "folder").mkdir()
    return folder


def test_files_that_fit_are_taken(files):
    pair = files / "own.crt", files / "own.key"
    for authority in (None, files / "own.crt"):
        for given in (None, pair):
            assert channel_credentials(SERVER, authority, given) is not None
    assert channel_credentials("localhost:7070", None, None) is None


def refusal(authority: Path | None, *pair: Path) -> str:
    with pytest.raises(HlorankError) as refused:
        channel_credentials(SERVER, authority, pair or None)
    assert_own_words(str(refused.value))
    return str(refused.value)


@pytest.mark.parametrize(
    "name", ["empty", "text", "own.key", "own.der", "own.p12", "damaged.own.crt"]
)
def test_a_certificate_that_cannot_be_used_is_named(files, name):
    path = files / name
    assert f"{path} is no certificate in PEM" in refusal(path)
    assert f"{path} and" in refusal(None, path, files / "own.key")


@pytest.mark.parametrize(
    "name",
    [
        "empty",
        "own.crt",
        "encrypted.key",
        "encrypted_old.key",
        "key.der",
        "cut.own.key",
        "damaged.own.key",
        "other.key",
    ],
)
def test_a_key_that_cannot_be_used_is_named(files, name):
    path = files / name
    assert f"and {path} are no certificate with its key" in refusal(None, files / "own.crt", path)


def test_certificates_for_an_address_without_tls_are_refused(files):
    for authority, pair in ((files / "own.crt", None), (None, (files / "own.crt", files / "own"))):
        with pytest.raises(HlorankError, match="does not use TLS; use an address at https://"):
            channel_credentials("localhost:7070", authority, pair)
