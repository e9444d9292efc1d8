"""No handler makes a message of another library's error, but for what compilers say."""

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

from servers import REPOSITORY

TO_TEXT = ("str", "repr", "type", "first_line")
CODE = ("client/python/hlorank", "client/tuner/hlorank_tune")
QUOTED = {
    "client/python/hlorank/graphs/lowered.py",  # JAX on the caller's function
    "client/python/hlorank/spaces/space.py",  # the caller's own constraint
    "client/python/hlorank/worker/agreement.py",  # what the leader of a group raised
    "client/tuner/hlorank_tune/iree/program.py",  # jaxlib on the caller's program
    "client/tuner/hlorank_tune/iree/compiler.py",  # IREE on its flags
    "client/tuner/hlorank_tune/measure/host.py",  # compilers on a candidate
    "client/tuner/hlorank_tune/values.py",  # argparse, with the words of the tuner
    "client/tuner/hlorank_tune/xla/compiler.py",  # what lowers a candidate
    "client/tuner/hlorank_tune/xla/fusions.py",  # the preparation of the caller's program
    "client/tuner/hlorank_tune/xla/command.py",  # the caller's own script
    "client/tuner/hlorank_tune/xla/program.py",  # XLA's parser, of which the place is read
}
"""Files that quote what another program says of the caller's own code."""


def quotes(handler: ast.ExceptHandler) -> Iterator[int]:
    """Yields the lines where a handler makes text of the error."""
    for node in ast.walk(handler):
        parts = []
        if isinstance(node, ast.FormattedValue):
            parts = [node.value]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in TO_TEXT:
            parts = node.args
        for part in parts:
            if isinstance(part, ast.Name) and part.id == handler.name:
                yield node.lineno


def catches_others(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches errors that this project does not define."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        isinstance(kind, ast.Attribute) or hasattr(builtins, getattr(kind, "id", ""))
        for kind in kinds
    )


def quoting(path: Path) -> list[int]:
    handlers = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler) and node.name and catches_others(node)
    ]
    return [line for handler in handlers for line in quotes(handler)]


def test_messages_do_not_quote_the_errors_of_libraries():
    found = {}
    for folder in CODE:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            lines = quoting(path)
            if lines:
                found[str(path.relative_to(REPOSITORY))] = lines
    assert {name: lines for name, lines in found.items() if name not in QUOTED} == {}
    assert found.keys() >= QUOTED, "names a file that quotes nothing any more"
