"""Keeps what native code prints."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def printed() -> Iterator[Callable[[], str]]:
    """Keeps what the C library prints to standard error; yields a function that returns it."""
    kept = os.dup(2)
    text = [""]
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: text[0]
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            text[0] = file.read().decode(errors="replace")
