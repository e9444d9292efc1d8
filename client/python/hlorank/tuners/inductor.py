"""Choices of PyTorch Inductor's autotuning, by what was measured before."""

import re
from collections.abc import Sequence
from functools import wraps
from math import isfinite, nextafter
from typing import Any

from torch._inductor import config
from torch._inductor.ir import ChoiceCaller
from torch._inductor.remote_cache import RemoteAutotuneCache, RemoteCacheBackend
from torch._inductor.select_algorithm import (
    ExternKernelCaller,
    add_feedback_saver,
    add_preprocessing_fn,
    get_algorithm_selector_cache,
)

from hlorank import Client, Result
from hlorank.tuners.decider import Listed, SharedCache, key_of, object_of
from hlorank.tuners.proposals import Proposals, Row, number_of, result_of, row_of

_SPACE = "inductor"
_ANNOTATION = "hlorank"
"""Where a choice keeps its instance from before it is measured until after."""
_COUNTER = "_0123456789"
_CUTLASS = "CUTLASSTemplateCaller"


class Choices(Proposals):
    """Keeps the choices that are fastest by what was measured, and reports new times.

    >>> Choices(Client("127.0.0.1:7070"), "H100, torch 2.15").install()
    >>> torch.compile(model, mode="max-autotune")

    What is tuned is known by the inputs of the operation: sizes, strides and types. Kernels of
    libraries, such as cuBLAS, and the first choice are always kept. If nothing is known, all
    choices are. It takes the arguments of ``Proposals``. With ``decide=True``, only the decided
    choice is left, and what the server decides counts as the fastest; the default is the first one.
    """

    namespace = "inductor"

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._claimed: dict[str, Listed[ChoiceCaller]] = {}

    def install(self) -> None:
        """Adds both functions to Inductor."""
        add_preprocessing_fn(self.preprocess)
        add_feedback_saver(self.feedback)
        cache = get_algorithm_selector_cache()
        tune = cache.do_autotuning

        @wraps(tune)
        def tune_and_give_back(*arguments: Any, **named: Any) -> Any:
            try:
                return tune(*arguments, **named)
            finally:  # if no choice ran, nothing calls `feedback`
                self._give_back([*arguments, *named.values()])

        cache.do_autotuning = tune_and_give_back

    def preprocess(self, choices: list[ChoiceCaller]) -> list[ChoiceCaller]:
        """Returns the choices to measure, in their order."""
        if len(choices) < 2:
            return choices
        instance = _instance(choices[0])
        for choice in choices:
            choice.annotations[_ANNOTATION] = instance
        listed = Listed(key_of(instance, sorted(map(_name, choices))), choices, _named)
        state, decided = self.decided(listed.key, listed.read)
        if state in ("decided", "away"):
            return [decided or choices[0]]
        if state == "claimed":
            self._claimed[instance] = listed
        best = self.best(_SPACE, instance, [*map(_row, choices)])
        libraries = [n for n, each in enumerate(choices) if isinstance(each, ExternKernelCaller)]
        return [choices[number] for number in sorted({0, *best, *libraries})] if best else choices

    def feedback(
        self,
        timings: dict[ChoiceCaller, float],
        name: str,
        input_nodes: Sequence[object],
        choices: Sequence[ChoiceCaller],
        profiled_time: object,
        precompile_times: object,
    ) -> None:
        """Reports the times in milliseconds, as Inductor's feedback has them.

        An infinite one says that a choice did not compile or run, except where another one may have
        failed in its place: after the first failure of CUTLASS, Inductor measures no other choice
        of it, and after a failure of CUDA that stays, such as an illegal access to memory, none of
        the following choices runs.
        """
        measured: dict[str, list[tuple[Row, Result]]] = {}
        ran = [isfinite(milliseconds) for milliseconds in timings.values()]
        last = max((place for place, each in enumerate(ran) if each), default=-1)
        for place, (choice, milliseconds) in enumerate(timings.items()):
            if not ran[place] and (place > last + 1 or type(choice).__name__ == _CUTLASS):
                continue
            instance = str(choice.annotations.get(_ANNOTATION) or _instance(choice))
            pairs = measured.setdefault(instance, [])
            pairs.append((_row(choice), result_of(milliseconds / 1e3)))
        claimed = [self._claimed.pop(instance, None) for instance in measured]
        for each in claimed:
            if each is not None:
                self._agree(each, timings)
        for instance, pairs in measured.items():
            self.report(_SPACE, instance, pairs)

    def _give_back(self, arguments: Sequence[object]) -> None:
        """Gives back what is claimed for the choices among arguments."""
        lists = [each for each in arguments if isinstance(each, list)]
        choices = [one for each in lists for one in each if isinstance(one, ChoiceCaller)]
        for instance in {choice.annotations.get(_ANNOTATION) for choice in choices}:
            claimed = self._claimed.pop(str(instance), None)
            if claimed is not None:
                self.give_back(claimed.key)

    def _agree(self, listed: Listed[ChoiceCaller], timings: dict[ChoiceCaller, float]) -> None:
        """Has Inductor take what is decided, which is the choice with the shortest time."""
        own = min(timings, key=timings.__getitem__)
        chosen = self.agree_on_one(listed, own, timings[own] / 1e3, len(timings))
        if chosen is not own:
            timings[chosen] = nextafter(timings[own], 0.0)


class RemoteCache(SharedCache):
    """Keeps what Inductor's autotuning of its own Triton kernels found, as its remote cache.

    >>> RemoteCache(Client("127.0.0.1:7070"), "H100, torch 2.15").install()

    The first process that tuned a kernel decides for those that start later, as of a
    ``SharedCache``, whose arguments it takes but for ``read``. Inductor's own key lacks the name of
    the device.
    """

    namespace = "inductor"

    def __init__(self, client: Client, target: str, **options: Any):
        super().__init__(client, target, _entry, **options)

    def install(self) -> None:
        """Takes the place of Redis, and of the local cache, which has what lost.

        Kernels are compiled in this process from now on: compile workers would have no cache.
        """
        cache = self

        class Backend(RemoteCacheBackend):
            def _get(self, key: str) -> bytes | None:
                return cache.get(key)

            def _put(self, key: str, data: bytes) -> None:
                cache.put(key, data)

        RemoteAutotuneCache.backend_override_cls = Backend
        config.autotune_remote_cache = True
        config.autotune_local_cache = False
        config.compile_threads = 1


def _entry(value: bytes) -> bytes | None:
    """Returns an entry that Inductor can read; None if it would raise."""
    found = object_of(value) or {}
    whole = [found.get(name) for name in ("num_warps", "num_stages")]
    return value if all(type(each) is int for each in whole) else None


def _named(choice: ChoiceCaller) -> dict[str, Any]:
    return {"choice": _name(choice)}


def _name(choice: ChoiceCaller) -> str:
    """Returns what names a choice in every process: names of Inductor have counters."""
    info = sorted(choice.info_dict().items())
    return f"{choice.name.rstrip(_COUNTER)} {choice.description} {info}"


def _instance(choice: ChoiceCaller) -> str:
    inputs = [
        (tuple(node.get_size()), tuple(node.get_stride()), node.get_dtype())
        for node in choice.input_nodes
    ]
    return f"{inputs} {choice.layout.dtype}"


def _row(choice: ChoiceCaller) -> dict[str, float]:
    """Returns the columns of every kind of choice: those that it lacks are 0."""
    info = choice.info_dict()
    template = choice.name.rstrip(_COUNTER)
    identity = (template, choice.description, sorted(info.items()))
    known = {name: info.get(name, 0) for name in ("num_warps", "num_stages")}
    sizes = [int(size) for size in re.findall(r"-?\d+", str(info.get("tile_shape", "")))]
    tile = sizes if len(sizes) == 3 else [0, 0, 0]
    return {
        "template": number_of(template),
        "identity": number_of(identity),
        **row_of(known | dict(zip(("tile_m", "tile_k", "tile_n"), tile, strict=True))),
    }
