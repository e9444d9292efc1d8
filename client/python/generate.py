"""Generates what is written by no hand in the client: messages, their types, and blocking calls.

usage: generate.py [--check]     (--check: compares, and changes nothing)

``hlorank/wire`` gets the descriptors of the messages, and stubs with their types;
``hlorank/calls/sync`` gets ``hlorank/calls/aio`` without asyncio.
"""

import filecmp
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import unasync

HERE = Path(__file__).resolve().parent
CLIENT = HERE / "hlorank"
PROTOS = HERE.parents[1] / "proto"
NO_MESSAGES = ("method", "model_admin_service")
"""Options of methods, and the calls of the command line alone."""
GENERATED = ("wire/messages.binpb", "wire/messages.pyi", "wire/v1", "calls/sync")
NAMES = {
    f"Async{name}": name for name in ("Calls", "Client", "Experience", "RankStream", "SpaceSearch")
} | {"aio": "sync"}
"""Other names that begin with Async begin with Sync instead."""


def generate(client: Path) -> None:
    """Writes all generated files into a folder like ``hlorank``."""
    for folder in ("wire/v1", "calls/sync"):
        (client / folder).mkdir(parents=True, exist_ok=True)
        for old in (client / folder).glob("*.py*"):
            old.unlink()
    _messages(client / "wire")
    _calls(client / "calls/sync")


def _messages(wire: Path) -> None:
    names = sorted(path.stem for path in (PROTOS / "hlorank/v1").glob("*.proto"))
    names = [name for name in names if name not in NO_MESSAGES]
    plugin = Path(sys.executable).with_name("protoc-gen-mypy")
    with tempfile.TemporaryDirectory() as folder:
        _run(
            "grpc_tools.protoc",
            f"--proto_path={PROTOS}",
            "--include_imports",
            f"--descriptor_set_out={wire / 'messages.binpb'}",
            f"--plugin=protoc-gen-mypy={plugin}",
            f"--mypy_out=quiet:{folder}",
            *(f"hlorank/v1/{name}.proto" for name in names),
        )
        for stub in Path(folder).rglob("*.pyi"):
            text = stub.read_text().replace("from hlorank.v1 import", "from hlorank.wire.v1 import")
            (wire / "v1" / stub.name).write_text(text)
    lines = (f"from hlorank.wire.v1.{name}_pb2 import *\n" for name in names)
    (wire / "messages.pyi").write_text("".join(lines))


def _calls(folder: Path) -> None:
    sources = sorted((CLIENT / "calls/aio").glob("*.py"))
    rule = unasync.Rule(f"{CLIENT}/calls/aio/", f"{folder}/", additional_replacements=NAMES)
    unasync.unasync_files([str(source) for source in sources], [rule])
    for source in sources:
        generated = folder / source.name
        text = generated.read_text()
        # A function that is awaited returns what it is awaited for.
        text = re.sub(r"Awaitable\[([^\[\]]+)\]", r"\1", text).replace("Awaitable, ", "")
        text = text.replace("The calls for asyncio, from which", "The blocking calls;")
        text = text.replace("generates the blocking ones", "generates them from ``aio``")
        generated.write_text(f"# Generated from {source.name} of ``aio``: change that one.\n{text}")
    settings = f"--config={HERE / 'pyproject.toml'}"
    _run("ruff", "check", "--quiet", "--fix", "--exit-zero", settings, str(folder))
    _run("ruff", "format", "--quiet", settings, str(folder))


def _run(module: str, *arguments: str) -> None:
    # Ruff takes the modules of the working folder as those of the project.
    subprocess.run([sys.executable, "-m", module, *arguments], check=True, cwd=HERE)


def main() -> int:
    """Generates, or compares."""
    if "--check" not in sys.argv:
        generate(CLIENT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        generate(made)
        differ = [name for name in GENERATED if not _is_same(made / name, CLIENT / name)]
    if differ:
        print(f"{', '.join(differ)} of client/python/hlorank: run `make messages`")
    return 1 if differ else 0


def _is_same(made: Path, kept: Path) -> bool:
    if not made.is_dir():
        return kept.is_file() and filecmp.cmp(made, kept, shallow=False)
    names = {path.name for folder in (made, kept) for path in folder.glob("*.py*")}
    return not any(filecmp.cmpfiles(made, kept, names, shallow=False)[1:])


if __name__ == "__main__":
    sys.exit(main())
