"""Times kernels alone, with inputs in the nearest caches and, if they are large, farther away.

Times are processor time of the process: other processes preempt it, which takes none of it. The
process may die: XLA aborts on fusions that it cannot generate.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import cycle, islice
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from hlorank_tune.measure.execute import Executable, on_device
from hlorank_tune.measure.fusion.compilation import CHOSEN_FUSION, LOOPED
from hlorank_tune.measure.fusion.write import Builder, looped
from hlorank_tune.measure.host import first_line
from hlorank_tune.measure.schema import HloModuleProto, ShapeProto

PASSES = 2
ROUNDS = 5
"""Rounds of a pass; the rounds of the passes alternate."""
_DIFFERENCE = 0.03
"""Relative difference of the passes up to which they agree; otherwise both get more rounds."""
_TRIES = 4
"""Maximum number of times that both get their rounds."""
_SECONDS = 0.002
"""Duration of one round with inputs in the caches."""
_REPETITIONS = 200_000
LARGE = 512 << 10
"""Bytes that a kernel reads and writes from which on it leaves the caches of its core."""
LONG = 5_000.0
"""Nanoseconds below which only a loop is precise, and a kernel reads a small part of its inputs."""
WARM = 8 << 20
"""Bytes of all copies of its inputs and outputs, which are more than the caches of a core."""

_TYPES = {1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16"}
_TYPES |= {8: "uint32", 9: "uint64", 10: "float16", 11: "float32", 12: "float64"}
"""Values of xla.PrimitiveType."""

Times = tuple[float, ...]
"""Nanoseconds of each pass, the minimum over its rounds."""


@dataclass(frozen=True)
class LoneTimes:
    """The run times of a kernel by itself."""

    hot: Times
    """With inputs that the repetition before has read."""
    warm: Times | None = None
    """With inputs and outputs in the cache that cores share; None for small and short kernels."""


def serve(connection: Connection, request: bytes) -> None:
    """Answers with the ``LoneTimes`` of a serialized kernel as a dictionary, or its ``error``."""
    try:
        answer = asdict(time_kernel(HloModuleProto.FromString(request)))
    # Compilers raise errors of several types.
    except Exception as error:
        answer = {"error": first_line(error)}
    connection.send(answer)


def time_kernel(kernel: Any) -> LoneTimes:
    """Times the HloModuleProto of a lone kernel.

    Raises:
        ValueError: if its parameters or its result are not arrays of numbers.
    """
    entry = next(c for c in kernel.computations if c.id == kernel.entry_computation_id)
    shapes = list(entry.program_shape.parameters)
    output = _array(entry.program_shape.result, np.random.default_rng(1))
    random = np.random.default_rng(0)
    arrays = [_array(shape, random) for shape in shapes]
    size = output.nbytes + sum(array.nbytes for array in arrays)
    hot = _hot(kernel, [output, *arrays])
    if size < LARGE or min(hot) < LONG:
        return LoneTimes(hot)
    return LoneTimes(hot, _warm(kernel, arrays, size))


def _hot(kernel: Any, arrays: Sequence[np.ndarray]) -> Times:
    executable = Executable(looped(kernel), (), LOOPED)
    arguments = on_device(arrays)

    def run(repetitions: int) -> int:
        (count,) = on_device([np.int32(repetitions)])
        return _processor_time(lambda: executable.run([count, *arguments]))

    repetitions = _repetitions(run)
    return _passes(lambda: run(repetitions), lambda: run(0), repetitions)


def _repetitions(run: Callable[[int], int]) -> int:
    """Returns how often to repeat a kernel, so that a round is long enough."""
    run(1)
    empty = min(run(0) for _ in range(3))
    repetitions = 1
    while (taken := run(repetitions) - empty) < _SECONDS / 4 * 1e9 and repetitions < _REPETITIONS:
        repetitions *= 4
    wanted = repetitions * _SECONDS * 1e9 / max(taken, 1)
    return int(np.clip(wanted, 2, _REPETITIONS))


def _warm(kernel: Any, arrays: Sequence[np.ndarray], size: int) -> Times:
    """Runs the kernel on one copy of its inputs after another; outputs live as long.

    ``size`` is that of inputs and output in bytes.
    """
    executable = Executable(kernel, (), CHOSEN_FUSION)
    copies = max(2, math.ceil(WARM / size))
    inputs = [on_device([array.copy() for array in arrays]) for _ in range(copies)]
    empty = empty_program(len(arrays))
    nothing = [on_device([np.float32(0)] * len(arrays))] * copies
    outputs = [None] * copies
    none = [None] * copies

    def run(executable: Executable, arguments: list[Any], results: list[Any]) -> None:
        for copy in range(copies):
            results[copy] = executable.run(arguments[copy])

    run(executable, inputs, outputs)
    return _passes(
        lambda: _processor_time(lambda: run(executable, inputs, outputs)),
        lambda: _processor_time(lambda: run(empty, nothing, none)),
        copies,
    )


def _passes(run: Callable[[], int], empty: Callable[[], int], repetitions: int) -> Times:
    """Returns nanoseconds of one of the repetitions of a round, by the least times of each pass."""
    times: list[list[tuple[int, int]]] = [[] for _ in range(PASSES)]
    for _ in range(_TRIES):
        for one in islice(cycle(times), PASSES * ROUNDS):
            one.append((run(), empty()))
        least = [np.min(one, axis=0) for one in times]
        passes = [max(float(taken - base) / repetitions, 1.0) for taken, base in least]
        if max(passes) <= (1 + _DIFFERENCE) * min(passes):
            break
    return tuple(passes)


@cache
def empty_program(parameters: int) -> Executable:
    """Returns a program of f32 scalars that does nothing: its run time is that of a call."""
    builder = Builder("empty", ())
    number = ShapeProto(element_type=11)
    main = builder.computation("main")
    for place in range(parameters):
        builder.parameter(main, place, number)
    module = builder.finish_module(main, builder.number(main, 0))
    return Executable(module, (), CHOSEN_FUSION)


def _processor_time(run: Callable[[], Any]) -> int:
    begin = time.process_time_ns()
    run()
    return time.process_time_ns() - begin


def _array(shape: Any, random: np.random.Generator) -> np.ndarray:
    if shape.element_type not in _TYPES:
        raise ValueError(f"not an array of numbers: xla.PrimitiveType {shape.element_type}")
    kind = np.dtype(_TYPES[shape.element_type])
    if kind.kind == "f":
        # No zeros and no small numbers, whose arithmetic takes another time.
        return (0.5 + random.random(tuple(shape.dimensions))).astype(kind)
    return random.integers(0, 2, tuple(shape.dimensions)).astype(kind)
