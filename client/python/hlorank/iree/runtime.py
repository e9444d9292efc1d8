"""Runs dispatches with IREE's runtime, on the calling thread."""

import time
from functools import cache
from typing import Any

import numpy as np

from hlorank.iree.dispatch import Binding
from hlorank.iree.harness import FUNCTION

_SECONDS = 1e-3
"""Shortest duration of one timed call; a faster dispatch runs several times in it."""
_MOST = 1000
_TYPES = {
    "f64": "f8",
    "f32": "f4",
    "f16": "f2",
    "bf16": "u2",
    "i64": "i8",
    "i32": "i4",
    "i16": "i2",
}
"""NumPy types by element type; of others, the bytes are 0 or 1."""


class Buffers:
    """The buffers of one dispatch, filled with numbers that are the same in every process."""

    def __init__(self, bindings: tuple[Binding, ...]):
        self._contents = [_contents(binding, i) for i, binding in enumerate(bindings)]
        self.views = [_view(content) for content in self._contents]

    def results(self, run: "Run") -> list[np.ndarray]:
        """Runs once on fresh contents, and returns those of all buffers afterwards."""
        views = [_view(content) for content in self._contents]
        run.once(views)
        return [
            view.map().asarray(content.shape, content.dtype).copy()
            for view, content in zip(views, self._contents, strict=True)
        ]


class Run:
    """A compiled dispatch."""

    def __init__(self, module: bytes, buffers: Buffers):
        from iree.runtime import VmContext, VmModule

        instance, _, hal = _device()
        self._module = VmModule.copy_buffer(instance, module)
        self._context = VmContext(instance, [hal, self._module])
        self._function = self._module.lookup_function(FUNCTION)
        self._buffers, self._count = buffers, 1

    def once(self, views: list[Any]) -> None:
        """Runs the dispatch once on buffers."""
        self._invoke(views, 1)

    def calibrate(self) -> float:
        """Returns the seconds of one run, and decides how many runs a timed call makes."""
        self.once(self._buffers.views)
        begin = time.perf_counter()
        self.once(self._buffers.views)
        seconds = time.perf_counter() - begin
        self._count = int(np.clip(_SECONDS / max(seconds, 1e-9), 1, _MOST))
        return seconds

    @property
    def count(self) -> int:
        """How often one call runs the dispatch."""
        return self._count

    def __call__(self) -> None:
        """Runs the dispatch ``count`` times."""
        self._invoke(self._buffers.views, self._count)

    def _invoke(self, views: list[Any], count: int) -> None:
        from iree.runtime import VmVariantList

        arguments = VmVariantList(len(views) + 1)
        for view in views:
            arguments.push_ref(view)
        arguments.push_int(count)
        self._context.invoke(self._function, arguments, VmVariantList(0))


@cache
def _device() -> tuple[Any, Any, Any]:
    """Returns the instance, the device that runs on the calling thread, and its module."""
    from iree.runtime import VmInstance, create_hal_module, get_device

    instance, device = VmInstance(), get_device("local-sync")
    return instance, device, create_hal_module(instance, device)


def _contents(binding: Binding, seed: int) -> np.ndarray:
    random, kind = np.random.default_rng(seed), _TYPES.get(binding.element, "u1")
    size = -(-binding.bytes // np.dtype(kind).itemsize)
    if kind.startswith("f"):
        return (0.1 * random.standard_normal(size)).astype(kind)
    if binding.element == "bf16":
        # The upper half of a float.
        return (
            (0.1 * random.standard_normal(size)).astype("f4").view("u4").__rshift__(16).astype("u2")
        )
    return random.integers(0, 2, size).astype(kind)


def _view(content: np.ndarray) -> Any:
    from iree.runtime import BufferUsage, HalElementType, MemoryType

    _, device, _ = _device()
    return device.allocator.allocate_buffer_copy(
        memory_type=MemoryType.DEVICE_LOCAL | MemoryType.HOST_VISIBLE,
        allowed_usage=BufferUsage.DEFAULT | BufferUsage.MAPPING,
        device=device,
        buffer=content.view("u1"),
        element_type=HalElementType.UINT_8,
    )
