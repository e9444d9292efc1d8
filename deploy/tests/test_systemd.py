"""The systemd unit is valid, hardened, and agrees with the server."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from sources import DEPLOY, NO_TELEMETRY, foreign_variables, server_settings

UNIT = DEPLOY / "systemd/hlorank-server.service"
# Maximum exposure level of systemd-analyze, from 0 to 100; 50 is medium.
EXPOSURE = 20


def assignments(name: str) -> list[str]:
    """Returns the values of a name in the unit."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)


def analyze(*command: object) -> subprocess.CompletedProcess:
    """Runs systemd-analyze; skips the test if it is missing."""
    program = shutil.which("systemd-analyze")
    if not program:
        pytest.skip("systemd-analyze is missing")
    command = [program, *map(str, command)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_variables_are_settings_of_the_server():
    variables = dict(variable.split("=", 1) for variable in assignments("Environment"))
    assert foreign_variables(variables) == NO_TELEMETRY
    assert {"HLORANK_ONNXRUNTIME", "HLORANK_MODELS"} <= set(variables)


def test_stopping_leaves_time_for_the_drain():
    [stop] = assignments("TimeoutStopSec")
    assert float(stop) > float(server_settings()["HLORANK_DRAIN_SECONDS"])


def test_the_server_may_write_the_model_folder_and_that_of_measurements_alone():
    folder, measurements = assignments("StateDirectory")[0].split()
    file = f"HLORANK_MEASUREMENTS=/var/lib/{measurements}/measurements"
    assert file in UNIT.read_text() and file in (DEPLOY / "README.md").read_text()
    [models] = [v for v in assignments("Environment") if v.startswith("HLORANK_MODELS=")]
    assert models == f"HLORANK_MODELS=/var/lib/{folder}"
    assert assignments("ProtectSystem") == ["strict"]
    assert not assignments("ReadWritePaths")


def test_systemd_takes_the_unit(tmp_path: Path):
    unit = tmp_path / UNIT.name
    # systemd-analyze checks that the program exists.
    program = shutil.which("true")
    unit.write_text(re.sub("^ExecStart=.*$", f"ExecStart={program}", UNIT.read_text(), flags=re.M))
    verified = analyze("verify", unit)
    assert verified.returncode == 0, verified.stderr
    assert UNIT.name not in verified.stderr, verified.stderr


def test_the_unit_is_hardened():
    judged = analyze("security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE}", UNIT)
    if "unrecognized option" in judged.stderr:
        pytest.skip("this systemd-analyze judges no files")
    assert judged.returncode == 0, judged.stdout
