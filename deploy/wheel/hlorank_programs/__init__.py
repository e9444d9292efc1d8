"""Starts the programs of a wheel: the command line, and the server with its models.

The wheel of ``make wheel`` holds both programs, the default models and measured examples beside
this file. ONNX Runtime comes from the package ``onnxruntime``. Environment variables that are set
already keep their values. This is a package of its own, since importing ``hlorank`` takes longer
than most commands.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

_INSTALLED = Path(__file__).parent / "installed"
_DEMO = {
    "Layouts of a whole program, measured on XLA:CPU": (
        "rank",
        "layout_random_window_nchw_train.pb",
    ),
    "Tiles of one kernel, measured with IREE on a CPU": (
        "rank",
        "tile_dispatches.pb",
        "--module=0",
    ),
    "Fusions of a program, measured on XLA:CPU": ("report", "rotary.pb"),
}
_START_SECONDS = 60.0


def command_line() -> NoReturn:
    """Runs ``hlorank``, which has two more commands here."""
    match sys.argv[1:]:
        case ["serve", *arguments]:
            _become("hlorank-server", arguments)
        case ["demo"]:
            sys.exit(_demo())
        case arguments:
            _become("hlorank", arguments)


def server() -> NoReturn:
    """Runs ``hlorank-server``."""
    _become("hlorank-server", sys.argv[1:])


def _become(program: str, arguments: list[str]) -> NoReturn:
    """Replaces this process by a program."""
    os.execve(_program(program), [program, *arguments], _environment(program))


def _program(name: str) -> Path:
    path = _INSTALLED / name
    if not path.exists():
        sys.exit(
            f"hlorank: this installation has the Python client without the program {name}; "
            "install the wheel that `make wheel` builds, or run `cargo install` in the repository"
        )
    return path


def _environment(program: str) -> dict[str, str]:
    defaults = {}
    if program == "hlorank-server":
        defaults["HLORANK_MODELS"] = str(_INSTALLED / "models")
        # Turns off the telemetry of ONNX Runtime.
        defaults["ORT_DISABLE_TELEMETRY"] = "1"
        if not os.environ.get("HLORANK_ONNXRUNTIME"):
            defaults["HLORANK_ONNXRUNTIME"] = str(_onnxruntime())
    # A variable that is set to nothing is not set.
    given = {name: value for name, value in os.environ.items() if value or name not in defaults}
    return defaults | given


def _onnxruntime() -> Path:
    """Returns the library of the package ``onnxruntime``, which is not imported."""
    spec = find_spec("onnxruntime")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        libraries = sorted(Path(folder, "capi").glob("libonnxruntime.so*"))
        if libraries:
            return libraries[0]
    sys.exit(
        "hlorank-server: ONNX Runtime is missing; run `pip install 'onnxruntime>=1.24'`, or name "
        "its library with HLORANK_ONNXRUNTIME"
    )


def _demo() -> int:
    """Starts a server, ranks measured configurations, and stops the server."""
    with TemporaryDirectory() as folder, _server(Path(folder, "log")) as address:
        print(f"A server listens on {address}.", flush=True)
        environment = os.environ | {"HLORANK_ENDPOINT": f"http://{address}"}
        for title, (command, file, *selection) in _DEMO.items():
            print(f"\n{title}:\n", flush=True)
            graph = str(_INSTALLED / "demo" / file)
            shown = [_program("hlorank"), command, "--graph", graph, "--top=5", *selection]
            code = subprocess.run(shown, env=environment).returncode
            if code:
                return code
    print("\nThe server has stopped. `hlorank serve` starts one for you.")
    return 0


@contextmanager
def _server(log: Path) -> Iterator[str]:
    """A server on a free port of this machine; gives its address."""
    flags = ["--listen=127.0.0.1:0", "--metrics-listen=off", "--log-format=text", "--log=info"]
    command = [_program("hlorank-server"), *flags]
    with log.open("w") as output:
        process = subprocess.Popen(command, stderr=output, env=_environment("hlorank-server"))
    try:
        yield _address(process, log)
    finally:
        process.terminate()
        process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        # All but what is being written.
        for line in log.read_text().split("\n")[:-1]:
            _, _, fields = line.partition("serving address=")
            if fields:
                return fields.split()[0]
        time.sleep(0.02)
    sys.exit(f"hlorank: the server did not start:\n{log.read_text()}")
