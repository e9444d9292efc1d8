"""What the adapter of another tuner needs; it imports neither a compiler nor ``hlorank_tune``.

* ``connection.connect`` returns a client of a server that answers
* ``experience.Experience`` predicts candidates, learns from what was measured, and suggests what to
  measure next
* ``reports`` has results, and reports them to a server that keeps them
* ``target.default_target`` names what run times are measured on

>>> experience = Experience(client, graph, convert, Kept("my laptop"))
>>> order, _ = experience.order(candidates, 4)
>>> experience.add(measured, [Result(seconds) for seconds in times])
"""

from hlorank.search.connection import ServerError, connect
from hlorank.search.experience import Experience, Predicted
from hlorank.search.reports import Kept, Result
from hlorank.search.target import default_target

__all__ = [
    "Experience",
    "Kept",
    "Predicted",
    "Result",
    "ServerError",
    "connect",
    "default_target",
]
