"""Values of flags that cannot be read are errors that name them."""

import pytest

from hlorank_tune.command import main


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("flag", "value", "reason"),
    [
        *(("--measurements", v, "is not a whole number from 1") for v in ("0", "1_0", "")),
        *(("--seed", v, "is not a whole number from 0") for v in ("-1", "1e3", "9" * 30)),
        ("--threads", "two", "is not a whole number from 0"),
        ("--predictions", "0", "is not a whole number from 1"),
        ("--top-k", "0", "is not a whole number from 1"),
        *(("--minutes", v, "is not a number above 0") for v in ("x", "nan")),
        ("--endpoint", "127.0.0.1", "the port is missing"),
        ("--model", "layout@0", "versions count from 1"),
        ("--target", "", "has 0 bytes, expected 1 to 256"),
        ("--out", "", "is not a path"),
        ("--certificate", "tls.crt", "is not two paths with a comma between them"),
    ],
)
def test_the_error_names_the_flag_and_what_is_expected(capsys, flag, value, reason):
    line = refusal(capsys, "xla", "step.hlo", f"{flag}={value}")
    assert f"argument {flag}: " in line and reason in line
    assert value in line


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["iree", "step.mlir", "--fusion"], "unrecognized arguments: --fusion"),
        (["iree", "step.mlir", "--threads=2"], "unrecognized arguments: --threads=2"),
        (
            ["xla", "step.hlo", "--without-model", "--model=a"],
            "--model does not apply with --without-m",
        ),
        (["xla", "step.hlo", "--without-model", "--target=a"], "--target does not apply with"),
    ],
)
def test_an_option_that_would_be_ignored_is_an_error(capsys, arguments, reason):
    assert reason in refusal(capsys, *arguments)
