"""Tuning specs: files that give the dispatches of a program their tiles in ``iree-compile``.

A spec finds a dispatch by the name of its function, which holds its number in the program and its
shapes, and the root among the operations of the function. So it belongs to one program and its
flags: in another program it finds nothing, and changes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hlorank_tune.iree.compiler import (
    CONFIGURATIONS,
    FLAGS,
    SPEC_FLAG,
    STABLEHLO_FLAGS,
    CompileError,
    compile_text,
    compiler_version,
    lower_text,
)
from hlorank_tune.iree.dispatch import Dispatch, lowering_config, operations, parse, root_of
from hlorank_tune.iree.dispatches import Choices
from hlorank_tune.iree.program import StablehloProgram
from hlorank_tune.iree.tiles import TileSizes


def tuning_spec(dispatches: Iterable[Dispatch], choices: Choices) -> str:
    """Returns the text of a tuning spec that gives dispatches their tiles."""
    chosen = [(one, choices[one.name]) for one in dispatches if one.name in choices]
    lines = [f"//   {one.name}: {lowering_config(tile)}" for one, tile in chosen]
    return _TEMPLATE.format(
        version=compiler_version(),
        flag=SPEC_FLAG,
        tiles="\n".join(lines),
        choices="\n".join(_choice(*pair, n) for n, pair in enumerate(chosen)),
    )


def applied(program: str, spec_path: str, flags: Sequence[str] = FLAGS) -> dict[str, str]:
    """Compiles a program with a spec up to its configurations.

    Returns:
        The ``lowering_config`` at the root of every dispatch, by name.

    Raises:
        CompileError: if IREE refuses the program or the spec.
    """
    text = lower_text(program, CONFIGURATIONS, (*flags, f"{SPEC_FLAG}={spec_path}"))
    module = parse(text)
    found = {}
    for function in operations(module.operation):
        if function.name == "func.func" and (root := root_of(function)) is not None:
            name = str(function.attributes["sym_name"]).strip('"')
            found[name] = str(root.attributes["lowering_config"])
    return found


def missing(chosen: Choices, found: Mapping[str, str]) -> list[str]:
    """Returns the dispatches whose tile a spec did not set, of those that it was written for."""
    return [name for name, tile in chosen.items() if found.get(name) != lowering_config(tile)]


def _choice(dispatch: Dispatch, tile: TileSizes, number: int) -> str:
    module = parse(f"module {{\n{dispatch.device}\n{dispatch.configured}\n}}")
    root = root_of(module.operation)
    if root is None:
        raise CompileError(f"{dispatch.name} has no root")
    alike = [o for o in operations(module.operation) if _looks(o) == _looks(root)]
    info = (
        f"#iree_codegen.compilation_info<lowering_config = {lowering_config(tile)}, "
        "translation_info = #iree_codegen.translation_info<"
        f"pipeline = #iree_cpu.pipeline<{dispatch.pipeline}>>>"
    )
    place = [o == root for o in alike].index(True)
    return _CHOICE.format(
        n=number,
        name=dispatch.name,
        operation=root.name,
        attributes=_attributes(root),
        root=_one_of(len(alike), place, number),
        info=info,
    )


def _looks(operation: Any) -> tuple[str, str]:
    return operation.name, _attributes(operation)


def _attributes(operation: Any) -> str:
    """Returns the attributes by which an operation is found; named operations have none."""
    if operation.name != "linalg.generic":
        return ""
    names = ("indexing_maps", "iterator_types")
    texts = [f"{name} = {operation.attributes[name]}" for name in names]
    return f"attributes {{{', '.join(texts)}}} "


def _one_of(count: int, place: int, number: int) -> str:
    """Returns operations that pick one of several operations that look alike."""
    if count == 1:
        return f"%root{number} = transform.merge_handles %found{number} : !transform.any_op"
    names = ", ".join(f"%one{number}_{i}" for i in range(count))
    types = ", ".join(["!transform.any_op"] * count)
    return (
        f'{names} = "transform.split_handle"(%found{number}) '
        "<{fail_on_payload_too_small = true, pass_through_empty_handle = true}> "
        f": (!transform.any_op) -> ({types})\n"
        f"      %root{number} = transform.merge_handles %one{number}_{place} : !transform.any_op"
    )


_TEMPLATE = """\
// Tiles for the dispatches of one program, for IREE {version} on the CPU it was tuned on:
//   iree-compile {flag}=spec.mlir PROGRAM ...
{tiles}
module @hlorank attributes {{ transform.with_named_sequence }} {{
  // An entry point consumes its module, which only a match does; these match nothing.
  transform.named_sequence @nothing(%op: !transform.any_op {{transform.readonly}})
      -> !transform.any_op {{
    transform.match.operation_name %op ["hlorank.nothing"] : !transform.any_op
    transform.yield %op : !transform.any_op
  }}
  transform.named_sequence @keep(%op: !transform.any_op {{transform.readonly}}) {{
    transform.yield
  }}
  transform.named_sequence @__kernel_config(%module: !transform.any_op {{transform.consumed}})
      -> !transform.any_op attributes {{ iree_codegen.tuning_spec_entrypoint }} {{
{choices}
    %tuned = transform.foreach_match in %module @nothing -> @keep
        : (!transform.any_op) -> !transform.any_op
    transform.yield %tuned : !transform.any_op
  }}
}}
"""

_CHOICE = """\
    %function{n} = transform.structured.match ops{{["func.func"]}}
        attributes {{sym_name = "{name}"}} in %module
        : (!transform.any_op) -> !transform.any_op
    transform.foreach %function{n} : !transform.any_op {{
    ^bb0(%body{n}: !transform.any_op):
      %found{n} = transform.structured.match ops{{["{operation}"]}} {attributes}in %body{n}
          : (!transform.any_op) -> !transform.any_op
      {root}
      %info{n} = transform.param.constant {info} -> !transform.any_param
      transform.annotate %root{n} "compilation_info" = %info{n}
          : !transform.any_op, !transform.any_param
    }}"""


@contextmanager
def _spec_file(dispatches: Iterable[Dispatch], choices: Choices) -> Iterator[Path]:
    """Gives a file with a tuning spec, as long as it is needed."""
    with TemporaryDirectory(prefix="hlorank-") as folder:
        path = Path(folder, "spec.mlir")
        path.write_text(tuning_spec(dispatches, choices))
        yield path


def unreached(
    program: StablehloProgram, dispatches: Iterable[Dispatch], choices: Choices
) -> list[str]:
    """Returns the dispatches that IREE rewrites after it reads a spec, of those with a choice.

    Raises:
        CompileError: if IREE refuses one of the tiles.
    """
    if not choices:
        return []
    with _spec_file(dispatches, choices) as path:
        return missing(choices, applied(program.text, str(path), STABLEHLO_FLAGS))


def program_module(
    program: StablehloProgram, dispatches: Iterable[Dispatch], choices: Choices
) -> bytes:
    """Compiles a program with the tuning spec of chosen tiles, or without one."""
    with _spec_file(dispatches, choices) as path:
        spec = [f"{SPEC_FLAG}={path}"] if choices else []
        return compile_text(program.text, (*STABLEHLO_FLAGS, *spec))
