"""A module around one dispatch, which runs it repeatedly on given buffers."""

import re
from collections.abc import Sequence

from hlorank_tune.iree.dispatch import Dispatch

FUNCTION = "run"
"""Takes the buffers of the dispatch, then how often it runs: i32."""


def harness(dispatch: Dispatch, executable: str) -> str:
    """Returns a module with the function ``run``, at phase ``executable-configurations``.

    ``executable`` is the dispatch's own text or one with another tile.
    """
    path = "::".join(f"@{name}" for name in _path(executable))
    buffers = range(len(dispatch.bindings))
    arguments = "".join(f"%view{i}: !hal.buffer_view, " for i in buffers)
    bindings = ", ".join(f"(%buffer{i} : !hal.buffer)[%c0, %bytes{i}]" for i in buffers)
    return _TEMPLATE.format(
        device=dispatch.device,
        executable=executable.replace("hal.executable public", "hal.executable private", 1),
        arguments=arguments,
        values="\n".join([*_buffers(dispatch), *_constants(dispatch)]),
        path=path,
        name=path.split("::")[0],
        constants=_list_of_constants(dispatch.constants),
        bindings=bindings,
    )


def _path(executable: str) -> Sequence[str]:
    """Returns the names of the executable, its variant and its function."""
    kinds = (r"hal\.executable (?:public |private )?", r"hal\.executable\.variant public ")
    kinds = (*kinds, r"hal\.executable\.export public ")
    return [re.search(kind + r'@"?([\w$.-]+)', executable)[1] for kind in kinds]


def _buffers(dispatch: Dispatch) -> list[str]:
    lines = []
    for i, binding in enumerate(dispatch.bindings):
        lines.append(
            f"%buffer{i} = hal.buffer_view.buffer<%view{i} : !hal.buffer_view> : !hal.buffer"
        )
        lines.append(f"%bytes{i} = arith.constant {binding.bytes} : index")
    return lines


def _constants(dispatch: Dispatch) -> list[str]:
    numbered = enumerate(dispatch.constants)
    return [f"%k{i} = arith.constant {value} : {kind}" for i, (value, kind) in numbered]


def _list_of_constants(constants: Sequence[tuple[int, str]]) -> str:
    names = ", ".join(f"%k{i}" for i in range(len(constants)))
    return f"constants([{names}])" if names else ""


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
