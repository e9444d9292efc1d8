"""Writes the files of a release.

Usage: release.py OUT: a folder that exists. The wheels are in ``target/wheel``, the programs in
``target/dist``, and the root file system of the image in ``target/image``.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from sbom import sbom
from version import REPOSITORY, release_notes, version

PROGRAMS = ("hlorank", "hlorank-server")


def release(out: Path) -> None:
    """Writes all files into a folder."""
    name, time = f"hlorank-{version()}", int(run("git", "log", "-1", "--format=%ct"))
    for package in ("hlorank", "hlorank_tune"):
        (wheel,) = (REPOSITORY / "target/wheel").glob(f"{package}-{version()}-*.whl")
        shutil.copy(wheel, out)
    with TemporaryDirectory() as folder:
        staged = Path(folder)
        # The programs, and what they need and are described by.
        programs = REPOSITORY / "target/dist"
        for kind in ("bin", "lib", "share/licenses"):
            (staged / kind).mkdir(parents=True)
        for program in PROGRAMS:
            shutil.copy(programs / program, staged / "bin")
            run("strip", "--strip-debug", str(staged / "bin" / program))
        run(sys.executable, "deploy/manual/build.py", str(staged / "share"))
        shutil.copy(REPOSITORY / "target/onnxruntime/libonnxruntime.so", staged / "lib")
        licences = REPOSITORY / "target/onnxruntime/licences"
        shutil.copytree(licences, staged / "share/licenses/onnxruntime")
        ignored = shutil.ignore_patterns("policy.json")
        shutil.copytree(REPOSITORY / "models/registry", staged / "models", ignore=ignored)
        for page in ("LICENSE", "README.md", "CHANGELOG.md"):
            shutil.copy(REPOSITORY / page, staged)
        write_archive(out / f"{name}-linux-x86_64.tar.gz", staged, name, time)
    write_archive(out / f"{name}-image-root.tar.gz", REPOSITORY / "target/image", "", time)
    source = out / f"{name}-source.tar.gz"
    run("git", "archive", f"--prefix={name}/", f"--output={source}", "HEAD")
    (out / f"{name}.cdx.json").write_text(json.dumps(sbom(), indent=1) + "\n")
    (out / "RELEASE_NOTES.md").write_text(release_notes())
    # As sha256sum does.
    files = sorted(file for file in out.iterdir() if file.name != "SHA256SUMS")
    sums = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (out / "SHA256SUMS").write_text("".join(sums))


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


def run(*command: str) -> str:
    """Runs a command in the repository, and returns what it prints."""
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"release: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    if run("git", "status", "--porcelain"):
        sys.exit("release: the tree has changes that are not committed; commit them first")
    target = Path(sys.argv[1])
    release(target)
    for written in sorted(target.iterdir()):
        print(f"{written.stat().st_size:>11,}  {written.name}")
