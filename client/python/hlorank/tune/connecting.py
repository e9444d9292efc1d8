"""Connects a search to its server."""

from hlorank.client import Client
from hlorank.errors import DeadlineError, HlorankError, UnavailableError
from hlorank.tune.predictor import server_error

_SECONDS = 5.0
"""How long a server may take to answer at all, before the search begins."""


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
