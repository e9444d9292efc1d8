"""Layout configurations of a module: its configurable nodes, and modules with fixed layouts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from hlorank_tune.measure.schema import HloInstructionProto, HloModuleProto, ModuleTuningData

CONFIGURABLE_OPCODES = frozenset({"convolution", "dot", "reshape"})
MAX_RANK = 6

Permutation = tuple[int, ...]
"""Minor-to-major dimensions; empty leaves the choice to the compiler."""
Entry = tuple[Permutation, Permutation, Permutation]
"""The layouts of one node's output, first and second input."""
Configuration = tuple[Entry, ...]
"""One entry per configurable node, in node order."""

UNCHANGED: Entry = ((), (), ())


@dataclass(frozen=True)
class ConfigurableNode:
    """A node of the entry computation whose layouts the tuner chooses."""

    number: int
    """Position in the flattened instruction list over all computations, in proto order."""
    identity: int
    """Id of the instruction."""
    ranks: tuple[int, int, int]
    """Ranks of output, first and second input; 0 if the tensor does not exist."""


def configurable_nodes(module) -> list[ConfigurableNode]:
    """Returns convolutions, dots and reshapes of the entry computation, by node number."""
    nodes = []
    number = 0
    for computation in module.computations:
        entry = computation.id == module.entry_computation_id
        ranks = {i.id: len(i.shape.dimensions) for i in computation.instructions}
        for instruction in computation.instructions:
            if entry and instruction.opcode in CONFIGURABLE_OPCODES:
                operands = [ranks[identity] for identity in instruction.operand_ids[:2]]
                tensors = [ranks[instruction.id], *operands, 0][:3]
                nodes.append(ConfigurableNode(number, instruction.id, tuple(tensors)))
            number += 1
    return [node for node in nodes if 2 <= max(node.ranks) <= MAX_RANK]


def constrained(module, nodes: list[ConfigurableNode], configuration: Configuration):
    """Returns a copy of ``module`` whose LayoutConstraint calls fix the layouts."""
    edited = HloModuleProto.FromString(module.SerializeToString())
    entry = next(c for c in edited.computations if c.id == edited.entry_computation_id)
    entries = {node.identity: e for node, e in zip(nodes, configuration, strict=True)}
    shapes = {i.id: i.shape for i in entry.instructions}
    renamed: dict[int, int] = {}
    written: list = []
    ids = count(max(shapes) + 1)

    def constraint(operand: int, shaped_like: int, order: Permutation) -> int:
        call = HloInstructionProto(opcode="custom-call", custom_call_target="LayoutConstraint")
        call.id = next(ids)
        call.name = f"layout_constraint.{call.id & 0xFFFFFFFF}"
        call.operand_ids.append(operand)
        call.shape.CopyFrom(shapes[shaped_like])
        call.shape.layout.minor_to_major[:] = order
        call.constrain_layout = True
        call.operand_shapes_with_layout.add().CopyFrom(call.shape)
        written.append(call)
        return call.id

    # In instruction order, so that operands stay before users.
    for instruction in list(entry.instructions):
        output, *inputs = entries.get(instruction.id, UNCHANGED)
        copy = HloInstructionProto()
        copy.CopyFrom(instruction)
        originals = list(instruction.operand_ids)
        operands = [renamed.get(identity, identity) for identity in originals]
        for slot, order in enumerate(inputs[: len(operands)]):
            if order:
                operands[slot] = constraint(operands[slot], originals[slot], order)
        copy.operand_ids[:] = operands
        written.append(copy)
        if output:
            renamed[copy.id] = constraint(copy.id, copy.id, output)
    root = entry.root_id
    del entry.instructions[:]
    entry.instructions.extend(written)
    entry.root_id = renamed.get(root, root)
    return edited


def layout_tuning_data(
    module,
    nodes: Sequence[ConfigurableNode],
    configurations: Iterable[Configuration],
    runtimes: Iterable[int],
):
    """Returns the ModuleTuningData of a layout graph; the first configuration is the default."""
    data = ModuleTuningData()
    data.module.CopyFrom(module)
    data.config_index_to_node.extend(node.number for node in nodes)
    for index, (configuration, runtime) in enumerate(zip(configurations, runtimes, strict=True)):
        run = data.runs.add(is_default=index == 0)
        run.profile.compute_time_ns = int(runtime)
        for entry in configuration:
            node = run.module_config.layout_config.nodes.add()
            for order in entry:
                node.tensors.add(dims=order)
    return data
