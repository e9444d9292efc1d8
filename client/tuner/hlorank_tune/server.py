"""Connects a search to its server."""

import platform

from hlorank import Client, DeadlineError, HlorankError, UnavailableError
from hlorank.wire.defaults import TARGET_BYTES


def default_target(compiler: str, threads: int = 1) -> str:
    """Names this machine's processor, a compiler with its version, and the threads of a program.

    ``threads`` is 0 for as many as the compiler uses.
    """
    counted = {0: "all threads", 1: "1 thread"}.get(threads, f"{threads} threads")
    name = f"{processor()}, {compiler}, {counted}"
    return name.encode()[:TARGET_BYTES].decode(errors="ignore")


def processor() -> str:
    """Returns the processor's model name, or its architecture if the name is unknown."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            ]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


_SECONDS = 5.0
"""How long a server may take to answer at all, before the search begins."""


class ServerError(HlorankError):
    """The server did not answer, or refused the program or the model, before the search began."""


def server_error(error: HlorankError) -> ServerError:
    """Says what to do about a call that failed before the search began."""
    is_absent = isinstance(error, UnavailableError | DeadlineError)
    what = "no server answers" if is_absent else "the server does not rank this program"
    return ServerError(
        f"{what}: {error}; start a server or choose another "
        "with --endpoint ADDRESS, or search by measurements alone with --without-model"
    )


def connect(server: str) -> Client:
    """Returns a client of a server that answers.

    Raises:
        ServerError: if none answers within five seconds; later calls have more time.
    """
    client = Client(server)
    try:
        client.list_models(timeout=_SECONDS)
    except (UnavailableError, DeadlineError) as error:
        client.close()
        raise server_error(error) from error
    except HlorankError:
        # There is a server; the first prediction shows whether the error matters.
        pass
    return client
