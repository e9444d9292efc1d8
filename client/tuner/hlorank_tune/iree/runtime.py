"""Modules around dispatches, and programs, that run with IREE's runtime on the calling thread."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from hlorank_tune.iree.dispatch import Binding, Dispatch
from hlorank_tune.iree.program import TYPES
from hlorank_tune.measure import host
from hlorank_tune.xla.program import data_type, drawn

FUNCTION = "run"
"""Takes the buffers of the dispatch, then how often it runs: i32."""


def harness(dispatch: Dispatch, executable: str) -> str:
    """Returns a module with the function ``run``, at phase ``executable-configurations``.

    ``executable`` is the dispatch's own text or one with another tile.
    """
    # The names of the executable, its variant and its function.
    kinds = (r"hal\.executable (?:public |private )?", r"hal\.executable\.variant public ")
    kinds = (*kinds, r"hal\.executable\.export public ")
    names = [re.search(kind + r'@"?([\w$.-]+)', executable)[1] for kind in kinds]
    buffers = range(len(dispatch.bindings))
    values = []
    for i, binding in enumerate(dispatch.bindings):
        values += [
            f"%buffer{i} = hal.buffer_view.buffer<%view{i} : !hal.buffer_view> : !hal.buffer",
            f"%bytes{i} = arith.constant {binding.bytes} : index",
        ]
    for i, (value, kind) in enumerate(dispatch.constants):
        values.append(f"%k{i} = arith.constant {value} : {kind}")
    constants = ", ".join(f"%k{i}" for i in range(len(dispatch.constants)))
    return _TEMPLATE.format(
        device=dispatch.device,
        executable=executable.replace("hal.executable public", "hal.executable private", 1),
        arguments="".join(f"%view{i}: !hal.buffer_view, " for i in buffers),
        values="\n".join(values),
        path="::".join(f"@{name}" for name in names),
        name=f"@{names[0]}",
        constants=f"constants([{constants}])" if constants else "",
        bindings=", ".join(f"(%buffer{i} : !hal.buffer)[%c0, %bytes{i}]" for i in buffers),
    )


_TEMPLATE = """\
module attributes {{stream.affinity.default = #hal.device.affinity<@__device_0>}} {{
{device}
{executable}
util.func public @run({arguments}%count: i32) attributes {{iree.abi.stub}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.index_cast %count : i32 to index
  %device, %affinity = hal.device.resolve on(#hal.device.affinity<@__device_0>) : !hal.device, i64
  %commands = hal.command_buffer.create device(%device : !hal.device)
      mode("OneShot|AllowInlineExecution") categories(Dispatch) affinity(%affinity)
      : !hal.command_buffer
  {values}
  %x, %y, %z = hal.executable.calculate_workgroups device(%device : !hal.device)
      target({path}) : index, index, index
  %executable = hal.executable.lookup device(%device : !hal.device) executable({name})
      : !hal.executable
  %function = hal.executable.lookup.function target(%executable : !hal.executable)
      function({path}) : i64
  scf.for %i = %c0 to %last step %c1 {{
    hal.command_buffer.dispatch<%commands : !hal.command_buffer>
        target(%executable : !hal.executable)[%function]
        workgroups([%x, %y, %z]) {constants} bindings([{bindings}]) flags("None")
    hal.command_buffer.execution_barrier<%commands : !hal.command_buffer>
        source("Dispatch|CommandRetire") target("CommandIssue|Dispatch") flags("None")
  }}
  hal.command_buffer.finalize<%commands : !hal.command_buffer>
  %none = util.null : !hal.fence
  %done = hal.fence.create device(%device : !hal.device) flags("None") : !hal.fence
  hal.device.queue.execute<%device : !hal.device> affinity(%affinity)
      wait(%none) signal(%done) commands(%commands) flags("None")
  %forever = arith.constant -1 : i32
  %status = hal.fence.await until([%done]) timeout_millis(%forever) flags("None") : i32
  util.status.check_ok %status, "the dispatch did not finish"
  util.return
}}
}}
"""


_SECONDS = 1e-3
"""Shortest duration of one timed call; what is faster runs several times in it."""
_MOST = 1000


class _Run(host.Run):
    """A compiled module with what it runs on."""

    def __init__(self, module: bytes, function: str):
        from iree.runtime import VmContext, VmModule

        instance, _, hal = _device()
        self._module = VmModule.copy_buffer(instance, module)
        self._context = VmContext(instance, [hal, self._module])
        self._function = self._module.lookup_function(function)

    def calibrate(self) -> float:
        self.count = 1
        seconds = super().calibrate()
        self.count = int(np.clip(_SECONDS / max(seconds, 1e-9), 1, _MOST))
        return seconds

    def _invoke(self, views: Sequence[Any], *numbers: int) -> Any:
        from iree.runtime import VmVariantList

        arguments = VmVariantList(len(views) + len(numbers))
        results = VmVariantList(1)
        for view in views:
            arguments.push_ref(view)
        for number in numbers:
            arguments.push_int(number)
        self._context.invoke(self._function, arguments, results)
        return results


class _Loader:
    """Loads compiled modules in the process that measures them."""

    patience: ClassVar[float] = 60.0
    slow: ClassVar[float] = 10.0
    tolerance: ClassVar[float] = host.TOLERANCE

    def failure(self, error: Exception, is_loaded: bool) -> str | None:
        """Returns what an error says of a module: the runtime raises a ValueError."""
        return "crash" if is_loaded and isinstance(error, ValueError) else None


@dataclass(frozen=True)
class DispatchLoader(_Loader):
    """Loads a dispatch on buffers whose contents are the same in every process."""

    bindings: tuple[Binding, ...]

    @cached_property
    def _buffers(self) -> tuple[list[np.ndarray], list[Any]]:
        contents = [_contents(binding, seed) for seed, binding in enumerate(self.bindings)]
        return contents, [_view(content) for content in contents]

    def load(self, program: bytes) -> host.Run:
        """Loads a module with the function of a harness."""
        return _DispatchRun(program, *self._buffers)


@dataclass(frozen=True)
class ProgramLoader(_Loader):
    """Loads a program on its arguments."""

    arguments: tuple[np.ndarray, ...]

    @cached_property
    def _views(self) -> list[Any]:
        return [_array_view(argument) for argument in self.arguments]

    def load(self, program: bytes) -> host.Run:
        """Loads a module with the function ``main``."""
        return _ProgramRun(program, self._views)


class _DispatchRun(_Run):
    def __init__(self, module: bytes, contents: list[np.ndarray], views: list[Any]):
        super().__init__(module, FUNCTION)
        self._contents = contents
        self._views = views

    def results(self) -> list[np.ndarray]:
        # On fresh contents, since a dispatch may write where it reads.
        views = [_view(content) for content in self._contents]
        self._invoke(views, 1)
        pairs = zip(views, self._contents, strict=True)
        return [_numbers(view, like.shape, like.dtype) for view, like in pairs]

    def __call__(self) -> None:
        self._invoke(self._views, self.count)


class _ProgramRun(_Run):
    def __init__(self, module: bytes, views: list[Any]):
        super().__init__(module, "main")
        self._views = views

    def results(self) -> list[np.ndarray]:
        from iree.runtime import HalBufferView, HalElementType

        results = self._invoke(self._views)
        found = []
        for number in range(results.size):
            view = results.get_as_object(number, HalBufferView)
            element = HalElementType(view.element_type)
            is_bfloat = element == HalElementType.BFLOAT_16
            kind = "bfloat16" if is_bfloat else HalElementType.map_to_dtype(element)
            found.append(_numbers(view, view.shape, kind))
        return found

    def __call__(self) -> None:
        for _ in range(self.count):
            self._invoke(self._views)


@cache
def _device() -> tuple[Any, Any, Any]:
    """Returns the instance, the device that runs on the calling thread, and its module."""
    from iree.runtime import VmInstance, create_hal_module, get_device

    instance = VmInstance()
    device = get_device("local-sync")
    return instance, device, create_hal_module(instance, device)


def _contents(binding: Binding, seed: int) -> np.ndarray:
    """Draws numbers; the bytes of an unknown type are 0 or 1."""
    kind = data_type(TYPES.get(binding.element, "uint8"))
    return drawn(kind, [-(-binding.bytes // kind.itemsize)], np.random.default_rng(seed))


def _numbers(view: Any, shape: Sequence[int], kind: Any) -> np.ndarray:
    """Copies an array from the device, which IREE maps as a type of NumPy's own."""
    own = data_type(kind)
    mapped = view.map().asarray(shape, np.dtype("u2") if kind == "bfloat16" else own)
    return mapped.view(own).copy()


def _view(content: np.ndarray) -> Any:
    from iree.runtime import HalElementType

    return _allocate(content.view("u1"), HalElementType.UINT_8)


def _array_view(array: np.ndarray) -> Any:
    from iree.runtime.array_interop import map_dtype_to_element_type

    return _allocate(np.ascontiguousarray(array), map_dtype_to_element_type(array.dtype))


def _allocate(content: np.ndarray, element: Any) -> Any:
    from iree.runtime import BufferUsage, MemoryType

    _, device, _ = _device()
    return device.allocator.allocate_buffer_copy(
        memory_type=MemoryType.DEVICE_LOCAL | MemoryType.HOST_VISIBLE,
        allowed_usage=BufferUsage.DEFAULT | BufferUsage.MAPPING,
        device=device,
        buffer=content,
        element_type=element,
    )
