"""Workers of a search as actors of Ray, which places them and starts those anew that die."""

from collections.abc import Sequence
from time import sleep
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError

from hlorank import Space, Worker
from hlorank.worker.worker import Ended, Measure

_RESTART = 1.0  # seconds until an actor that is started anew is called again


# A call is never repeated by Ray: what it was measuring is leased again once the lease expires.
@ray.remote(max_restarts=-1, max_task_retries=0)
class _Actor:
    def __init__(self, *arguments: Any, **options: Any):
        self._worker = Worker(*arguments, **options)

    def run(self) -> Ended:
        return self._worker.run()

    def conclude(self, **options: Any) -> Any:
        return self._worker.conclude(**options)


def actors(
    count: int, address: str, space: Space, target: str, measure: Measure, **options: Any
) -> list[ActorHandle]:
    """Starts actors, each with a ``hlorank.Worker`` of these arguments.

    >>> gpus = actors(8, "10.0.0.1:7070", space, "H100", measure, num_gpus=1, budget=256)
    >>> run(gpus)
    >>> ray.get(gpus[0].conclude.remote())

    ``num_cpus``, ``num_gpus``, ``memory``, ``resources`` and ``runtime_env`` say what Ray gives
    each actor; other options are those of ``Worker``.
    """
    names = ("num_cpus", "num_gpus", "memory", "resources", "runtime_env")
    given = {name: options.pop(name) for name in names if name in options}
    actor: Any = _Actor.options(**given)  # type: ignore[attr-defined]
    return [actor.remote(address, space, target, measure, **options) for _ in range(count)]


def run(actors: Sequence[ActorHandle]) -> list[Ended]:
    """Runs workers until the search has ended; one that died goes on once Ray started it anew."""
    calls = {actor.run.remote(): actor for actor in actors}
    ended: list[Ended] = []
    while calls:
        done = ray.wait([*calls])[0][0]
        actor = calls.pop(done)
        try:
            ended.append(ray.get(done))
        except ActorUnavailableError:
            sleep(_RESTART)
            calls[actor.run.remote()] = actor
    return ended
