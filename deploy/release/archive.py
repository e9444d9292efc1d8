"""Writes archives that are the same for the same content."""

import gzip
import tarfile
from pathlib import Path


def write_archive(path: Path, folder: Path, prefix: str, time: int) -> None:
    """Writes a folder as .tar.gz: entries sorted, of root, and all with one time."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = time
        return entry

    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=time) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in sorted(folder.rglob("*")):
            name = str(Path(prefix, entry.relative_to(folder)))
            archive.add(entry, name, recursive=False, filter=plain)
