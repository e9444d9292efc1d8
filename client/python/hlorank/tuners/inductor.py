"""Choices of PyTorch Inductor's autotuning, by what was measured before."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nextafter
from typing import Any

from torch._inductor.ir import ChoiceCaller
from torch._inductor.select_algorithm import (
    ExternKernelCaller,
    add_feedback_saver,
    add_preprocessing_fn,
)

from hlorank import Evidence, Result
from hlorank.tuners.proposals import (
    Proposals,
    Row,
    key_of,
    number_of,
    object_of,
    result_of,
    row_of,
)

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
        self._claimed: dict[str, _Claimed] = {}

    def install(self) -> None:
        """Adds both functions to Inductor."""
        add_preprocessing_fn(self.preprocess)
        add_feedback_saver(self.feedback)

    def preprocess(self, choices: list[ChoiceCaller]) -> list[ChoiceCaller]:
        """Returns the choices to measure, in their order."""
        if len(choices) < 2:
            return choices
        instance = _instance(choices[0])
        for choice in choices:
            choice.annotations[_ANNOTATION] = instance
        claimed = _Claimed(key_of(instance, sorted(map(_name, choices))), choices)
        state, decided = self.decided(claimed.key, claimed.read)
        if state in ("decided", "away"):
            return [decided or choices[0]]
        if state == "claimed":
            self._claimed[instance] = claimed
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

    def _agree(self, claimed: "_Claimed", timings: dict[ChoiceCaller, float]) -> None:
        """Has Inductor take what is decided, which is the choice with the shortest time."""
        own = min(timings, key=timings.__getitem__)
        if not isfinite(timings[own]):
            self.give_back(claimed.key)
            return
        evidence = Evidence(timings[own] / 1e3, 1, len(timings))
        value = json.dumps({"choice": _name(own)}).encode()
        chosen = self.agree(claimed.key, own, value, claimed.read, evidence) or claimed.choices[0]
        if chosen is not own:
            timings[chosen] = nextafter(timings[own], 0.0)


@dataclass(frozen=True)
class _Claimed:
    """What this process tunes for all."""

    key: bytes
    choices: Sequence[ChoiceCaller]

    def read(self, value: bytes) -> ChoiceCaller | None:
        """Returns the choice that a decision stands for."""
        name = (object_of(value) or {}).get("choice")
        return next((each for each in self.choices if _name(each) == name), None)


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
