"""Unpacks model versions of a tar file into the model folder of a server, which may run."""

import argparse
import gzip
import hashlib
import lzma
import os
import re
import shutil
import sys
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

MAX_FILES = 1000
_TIMEOUT_SECONDS = 60.0
_CHUNK_BYTES = 1 << 20
_OPENERS = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}
"""Readers of compressed files by the bytes that such files begin with."""
_FILE = re.compile(
    r"([a-z0-9][a-z0-9._-]*)/([1-9][0-9]*)/((?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*)"
)
"""NAME/VERSION/FILE, without any part that could lead elsewhere."""


class PullError(Exception):
    """Nothing was published, for the reason that the text gives."""


class _StaysOnHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, answer, code, message, headers, url):
        if not url.startswith("https://"):
            raise PullError(f"{request.full_url} leads to {url}, which is not an https:// URL")
        return super().redirect_request(request, answer, code, message, headers, url)


def command(arguments: list[str]) -> int:
    """Runs ``hlorank models pull``; returns its exit code."""
    parser = argparse.ArgumentParser("hlorank models pull", description=__doc__)
    parser.add_argument(
        "source",
        metavar="URL|FILE",
        help="https:// URL or path of a tar file "
        "(plain, gzip or xz) with NAME/VERSION/manifest.json",
    )
    parser.add_argument("destination", type=Path, help="the model folder")
    parser.add_argument("--sha256", required=True, metavar="DIGEST", help="of the tar file")
    parser.add_argument(
        "--max-bytes",
        type=int,
        default=1 << 30,
        metavar="BYTES",
        help="maximum size of the tar file, also uncompressed (1 GiB)",
    )
    given = parser.parse_args(arguments)
    try:
        published = pull(given.source, given.destination, given.sha256, given.max_bytes)
    except (PullError, OSError, EOFError, lzma.LZMAError, tarfile.TarError) as error:
        print(f"hlorank models pull: {error}", file=sys.stderr)
        return 1
    for version in published:
        print(f"published {version}")
    return 0


def pull(source: str, destination: Path, sha256: str, max_bytes: int) -> list[str]:
    """Publishes every version of a tar file, and returns them as ``NAME/VERSION``.

    The versions are unpacked into a folder of another name, which the server ignores, and then
    renamed, so that the server sees only complete ones.

    Raises:
        PullError: if the digest is another one, if the file has more bytes or files than are
            allowed, or anything but versions that the folder does not have yet.
    """
    destination.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".pull-", dir=destination) as folder:
        tar = _fetch(source, Path(folder, "tar"), sha256.lower(), max_bytes)
        versions = _unpack(_uncompressed(tar, max_bytes), Path(folder, "versions"))
        for version in versions:
            if not Path(folder, "versions", version, "manifest.json").is_file():
                raise PullError(f"{version} has no manifest.json")
            if os.path.lexists(destination / version):
                raise PullError(f"{destination / version} exists; versions are not changed")
        for version in versions:
            (destination / version).parent.mkdir(exist_ok=True)
            Path(folder, "versions", version).rename(destination / version)
    return versions


def _fetch(source: str, target: Path, sha256: str, max_bytes: int) -> Path:
    """Copies the tar file, and checks its digest before anything reads it."""
    digest = hashlib.sha256()
    with _opened(source) as stream, target.open("wb") as copy:
        for chunk in _chunks(stream, max_bytes):
            digest.update(chunk)
            copy.write(chunk)
    if digest.hexdigest() != sha256:
        raise PullError(f"{source} has the SHA-256 {digest.hexdigest()}, expected {sha256}")
    return target


def _opened(source: str) -> IO[bytes]:
    if "://" not in source:
        return Path(source).open("rb")
    if not source.startswith("https://"):
        raise PullError(f"{source} is not an https:// URL")
    opener = urllib.request.build_opener(_StaysOnHttps)
    return opener.open(source, timeout=_TIMEOUT_SECONDS)


def _uncompressed(tar: Path, max_bytes: int) -> Path:
    with tar.open("rb") as file:
        start = file.read(6)
    opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
    if opener is None:
        return tar
    plain = tar.with_name("plain")
    with opener(tar) as stream, plain.open("wb") as copy:
        for chunk in _chunks(stream, max_bytes):
            copy.write(chunk)
    return plain


def _chunks(stream: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    left = max_bytes
    while chunk := stream.read(_CHUNK_BYTES):
        left -= len(chunk)
        if left < 0:
            raise PullError(f"the file has more than {max_bytes} bytes; see --max-bytes")
        yield chunk


def _unpack(tar: Path, folder: Path) -> list[str]:
    """Writes regular files alone, and nothing of what the tar file says about them but names."""
    versions = set()
    with tarfile.open(tar, "r:") as archive:
        for number, member in enumerate(archive):
            if number >= MAX_FILES:
                raise PullError(f"the tar file has more than {MAX_FILES} files")
            if member.isdir():
                continue
            name = _FILE.fullmatch(member.name.removeprefix("./"))
            if not name or not member.isreg() or member.issparse():
                raise PullError(f"{member.name!r} is not a regular file NAME/VERSION/FILE")
            versions.add(f"{name[1]}/{name[2]}")
            path = folder / name[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            # Fails if the tar file has the name twice.
            with archive.extractfile(member) as content, path.open("xb") as file:
                shutil.copyfileobj(content, file)
    if not versions:
        raise PullError("the tar file has no model version")
    return sorted(versions)
