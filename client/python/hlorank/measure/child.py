"""A process that this one starts and talks to."""

import subprocess
from multiprocessing.connection import Connection
from typing import Any, Self


class Child:
    """The life of a process and of the connection to it; whoever inherits starts it."""

    _process: "subprocess.Popen[bytes] | None" = None
    _connection: Connection | None = None

    def close(self) -> None:
        """Ends the process."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._connection = self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
