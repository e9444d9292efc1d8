import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="jax is not installed")

from fake_server import fake_server
from library_words import assert_own_words
from programs import hurry
from programs import run_command as run
from servers import DATA, TOKEN, run_secured_server
from tls import Certificate, tls_server

from hlorank_tune.journal import RESULTS_FILE
from hlorank_tune.run import read_run
from hlorank_tune.xla.command import load

NOWHERE = "--endpoint=127.0.0.1:1"
MODULE = DATA / "hlo/mlp_train.before_opt.hlo_module.pb"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch, tmp_path):
    hurry(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])


def measured_rows(out):
    """The lines about measurements: a busy machine adds lines about phases."""
    return [line for line in out.splitlines() if line.split()[0].isdigit()]


@pytest.mark.parametrize(
    "file",
    [
        "mlp_train.before_opt.hlo.txt",
        "mlp_train.before_opt.hlo_module.pb",
        "control_flow_mix.before_opt.hlo_module.pb",
    ],
)
def test_the_layouts_of_a_dumped_module_are_tuned(server, capsys, file):
    short = ("--measurements=3", "--predictions=64", "--out=out")
    code, out, err = run(capsys, "xla", DATA / "hlo" / file, "--endpoint", server, *short)
    assert (code, err) == (0, "")
    assert [row.split()[0] for row in measured_rows(out)] == ["0", "1", "2"]
    assert "out/report.md" in out.splitlines()[-1]
    found = read_run(Path("out"))[1]
    assert found.with_model and found.predictions == 64 and found.errors == []
    assert {m.outcome.status for m in found.measurements} == {"measured"}


def test_a_search_lies_where_the_program_says_and_is_shown_again_continued_and_replayed(
    script, capsys
):
    program = ("xla", f"{script}:matmul")
    arguments = (*program, "--without-model", "--measurements=2")
    code, out, _ = run(capsys, *arguments)
    folder = Path("tuned/product")
    assert code == 0 and f"{folder / 'report.md'}" in out
    files = {path.name for path in folder.iterdir()}
    assert files == {RESULTS_FILE, "report.md", "worker.log"}
    code, again, _ = run(capsys, *arguments)
    assert code == 0 and measured_rows(again) == measured_rows(out)
    code, _, err = run(capsys, *arguments, "--seed=1")
    assert code == 1 and "seed 0, not 1" in err
    code, more, _ = run(capsys, *arguments[:-1], "--measurements=4")
    assert code == 0 and "goes on after 2 measurements" in more
    assert measured_rows(more)[:2] == measured_rows(out) and len(measured_rows(more)) == 4
    assert "your program" in more.splitlines()[-1]
    code, replayed, err = run(capsys, *program, f"--replay={folder}")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in replayed.splitlines()] == ["program", "winner"]


def test_a_server_that_is_not_there_is_an_error_before_anything_is_measured(script, capsys):
    code, _, err = run(capsys, "xla", f"{script}:matmul", "--measurements=2", "--out=out", NOWHERE)
    assert code == 1 and err.startswith("error: ") and "Traceback" not in err
    for words in ("no server answers", "127.0.0.1:1", "start a server", "--without-model"):
        assert words in err
    assert read_run(Path("out"))[1].measurements == []
    assert not Path("out/worker.log").exists() and not Path("out/report.md").exists()
    again = ("xla", f"{script}:matmul", "--measurements=2", "--out=out", "--without-model")
    assert run(capsys, *again)[0] == 0, "what failed left nothing that is in the way"


def test_the_first_replica_that_answers_is_asked(script, capsys, monkeypatch):
    with fake_server(b"") as replica:
        monkeypatch.setenv("HLORANK_ENDPOINT", f"127.0.0.1:1,http://{replica.address},127.0.0.1:2")
        code, _, err = run(capsys, "xla", f"{script}:matmul", "--out=out")
    assert code == 1 and "nothing listens" not in err and replica.calls


def test_a_server_with_tokens_and_tls_is_asked_as_hlorank_asks_it(
    script, capsys, tmp_path, monkeypatch
):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    search = ("xla", f"{script}:matmul", "--measurements=2", "--predictions=64")
    with run_secured_server(tmp_path) as address:
        server = ("--endpoint", f"https://{address}", "--ca", tmp_path / "localhost.crt")
        code, _, err = run(capsys, *search, *server, "--out=none")
        assert code == 1 and "TOKEN_MISSING" in err
        assert run(capsys, *search, *server, "--token-file=token", "--out=file")[0] == 0
        monkeypatch.setenv("HLORANK_TOKEN", TOKEN)
        monkeypatch.setenv("HLORANK_CA", str(tmp_path / "localhost.crt"))
        assert run(capsys, *search, *server[:2], "--out=variables")[0] == 0
    assert read_run(Path("variables"))[1].predictions == 64
    code, _, err = run(capsys, *search, *server[:2], "--ca=missing.pem")
    assert code == 1 and "missing.pem" in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "given is not text in UTF-8, line 1"),
        (b"", "given: the token is empty"),
        (b"two\nlines", "its character 4 is"),
        (None, "given cannot be read: No such file"),
    ],
)
def test_a_token_file_of_the_environment_that_cannot_be_used_is_named(
    script, capsys, monkeypatch, content, words
):
    if content is not None:
        Path("given").write_bytes(content)
    monkeypatch.setenv("HLORANK_TOKEN_FILE", "given")
    code, _, err = run(capsys, "xla", f"{script}:matmul", "--out=out", NOWHERE)
    assert code == 1 and words in err
    assert_own_words(err.removeprefix("error: "))


def test_a_variable_with_a_value_that_cannot_be_used_is_named(script, capsys, monkeypatch):
    for name, value in (("HLORANK_ENDPOINT", "localhost"), ("HLORANK_CERTIFICATE", "one")):
        with monkeypatch.context() as environment:
            environment.setenv(name, value)
            code, _, err = run(capsys, "xla", f"{script}:matmul", "--out=out")
        assert code == 2 and f"; {name} has this value" in err


def test_a_variable_without_a_value_is_not_set(script, capsys, monkeypatch):
    for name in ("ENDPOINT", "CA", "CERTIFICATE", "TOKEN_FILE", "TOKEN"):
        monkeypatch.setenv(f"HLORANK_{name}", "")
    arguments = ("--without-model", "--measurements=1")
    assert run(capsys, "xla", f"{script}:matmul", *arguments)[0] == 0


def test_a_server_that_is_not_trusted_is_one_line_that_says_what_to_do(script, tmp_path):
    with tls_server(Certificate(tmp_path, "localhost")) as address:
        command = [sys.executable, "-m", "hlorank_tune", "xla", f"{script}:matmul"]
        command += [f"--endpoint=https://{address}", "--out=out"]
        ended = subprocess.run(command, capture_output=True, text=True)
    (line,) = ended.stderr.splitlines()
    assert "is not trusted" in line and "--ca FILE" in line
    assert "start a server" not in line
    assert_own_words(line.removeprefix("error: "))


@pytest.mark.parametrize("encoding", ["gbk", "ascii"])
def test_a_terminal_without_a_letter_gets_another_one(encoding):
    program = """
from hlorank_tune.command import main
try:
    main(["--help"])
except SystemExit:
    print("12 µ \\u2028")
"""
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert printed.stdout.splitlines()[-1] == b"12 ? ?"


def test_a_module_is_named_as_python_names_it(script, monkeypatch):
    monkeypatch.syspath_prepend(script.parent)
    assert load("programs_to_tune:matmul").name == "product"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.hlo"], "missing.hlo"),
        (["missing.py:step"], "missing.py cannot be imported"),
        (["no_such_module:step"], "no_such_module cannot be imported"),
        (["SCRIPT"], "programs_to_tune.py:NAME"),
        (["SCRIPT:nothing"], "nothing is not defined, expected"),
        (["SCRIPT:number"], "number is a int, expected"),
        ([DATA / "hlo/mlp_train.before_opt.features.npz"], "contains no HLO module"),
        ([DATA / "hlo/scalar_identity.before_opt.hlo_module.pb"], "no configurable layouts"),
        ([DATA / "hlo/fuzz_all_columns.hlo_module.pb"], "the module has no computation 0"),
        ([DATA / "README.md"], "XLA cannot parse the text"),
        (["stable.hlo"], "it is MLIR, which hlorank-tune iree takes"),
        ([DATA], "directory"),
        (["broken.py:step"], "cannot be imported: SyntaxError"),
        (["raises.py:step"], "cannot be imported: ZeroDivisionError"),
        (["broken.hlo"], "as an HLO module, line 3, column 19: it expects '=' in instruction"),
        (["SCRIPT:matmul", "--replay=nowhere"], "nowhere/results.jsonl cannot be read"),
        (["SCRIPT:matmul", "--fusion"], "'product' has no fusions to choose: none of its"),
        (["SCRIPT:program", "--fusion", "--threads=0", "--without-model"], "--threads is 0"),
        (["SCRIPT:program", "--fusion", NOWHERE], "no server answers"),
        (["SCRIPT:matmul", "--without-model", "--out=SCRIPT"], "programs_to_tune.py"),
        (["SCRIPT:matmul", "--without-model", "--out=/proc/tuned"], "/proc/tuned"),
    ],
)
def test_what_cannot_begin_says_why_and_ends_with_1(script, capsys, arguments, words):
    Path("broken.py").write_text("this is no Python")
    Path("raises.py").write_text("1 / 0")
    Path("broken.hlo").write_text("HloModule broken\n\nENTRY main { what }\n")
    Path("stable.hlo").write_text("module @m { func.func @main() { return } }")
    given = [str(argument).replace("SCRIPT", str(script)) for argument in arguments]
    code, out, err = run(capsys, "xla", *given)
    assert code == 1 and out == ""
    assert err.startswith("error: ") and words in err and "Traceback" not in err
    if "imported" not in words:  # scripts of users raise errors of their own
        assert_own_words(err.removeprefix("error: "))


def test_names_that_are_paths_stay_inside_the_folder(capsys):
    module = load(str(MODULE)).module
    module.name = "../../a step"
    Path("step.pb").write_bytes(module.SerializeToString())
    assert run(capsys, "xla", "step.pb", "--without-model", "--measurements=1")[0] == 0
    assert [path.name for path in Path("tuned").iterdir()] == ["a-step"]
    assert Path("tuned/a-step/report.md").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_was_stopped_goes_on(script, capsys, how):
    arguments = ["xla", f"{script}:network", "--without-model", "--measurements=3", "--out=out"]
    command = [sys.executable, "-m", "hlorank_tune", *arguments]
    results = Path("out", RESULTS_FILE)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            if results.exists() and b'"candidate"' in results.read_bytes():
                break
            time.sleep(0.01)
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130 and b"the same command continues" in err
    before = [line for line in results.read_text().splitlines() if '"candidate"' in line]
    assert run(capsys, *arguments)[0] == 0
    after = [line for line in results.read_text().splitlines() if '"candidate": ' in line]
    assert after[: len(before)] == before
    rows = [json.loads(line) for line in after]
    assert len([row for row in rows if "confirmed" not in row]) == 3


def test_a_module_that_xla_does_not_compile_again_says_so(capsys):
    path = DATA / "hlo/mlp_train.cpu_after_opt.hlo_module.pb"
    code, _, err = run(capsys, "xla", path, "--without-model", "--measurements=1", "--out=out")
    assert code == 1 and "does not run as it is: failed: INTERNAL" in err
