"""docs/learn-from-nothing.md as printed, with fewer measurements."""

import re

from page_commands import commands, partition
from servers import REPOSITORY, run_empty_server

PAGE = REPOSITORY / "docs/learn-from-nothing.md"
EXAMPLE = REPOSITORY / "client/python/examples/c_kernel"
MEASUREMENTS = 20


def test_the_page_quotes_the_example_which_has_fewer_than_fifty_lines():
    program = (EXAMPLE / "tune.py").read_text()
    space, loop = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert space in program and loop in program and len(program.splitlines()) < 50


def seconds_of(shell, flags: str) -> float:
    """The run time of the kernel with flags of our own."""
    return float(shell(f"gcc {flags} matmul.c -o untuned && ./untuned"))


def test_an_empty_server_tunes_the_kernel(shell, tmp_path):
    before, serve, (tune,) = partition(commands(PAGE))
    assert serve == "hlorank-server --models models --measurements measurements"
    for command in before:
        shell(command)
    assert not list((tmp_path / "models").iterdir())
    with run_empty_server(tmp_path / "models") as server:
        *measured, found = shell(f"{tune} {server.address} {MEASUREMENTS}").splitlines()
        again = shell(f"{tune} {server.address} 1").splitlines()
    assert len(measured) == MEASUREMENTS and len(again) == 2
    tuned = float(found.split()[0])
    untuned = seconds_of(shell, "-O1 -DTILE_I=8 -DTILE_J=8 -DTILE_K=8")
    assert tuned < untuned / 3, "the slowest of the space takes ten times as long as the fastest"
