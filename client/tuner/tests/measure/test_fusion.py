"""Slots, bits, kernels and modules of fusion configurations, without a compiler."""

from collections import Counter

import numpy as np
import pytest

from hlorank_tune.measure.fusion.compilation import (
    KernelSet,
    compiled_kernels,
    difference,
)
from hlorank_tune.measure.fusion.graph import FUSIBLE, FusionGraph, packed, unpacked
from hlorank_tune.measure.fusion.kernels import (
    UNLIMITED,
    Limits,
    configuration,
    drawn,
    neighbour,
    unfused,
)
from hlorank_tune.measure.fusion.prepare import inlined, logical
from hlorank_tune.measure.fusion.write import Builder, digest, fused_program, lone_kernel
from hlorank_tune.measure.schema import ModuleTuningData, ShapeProto

FLOATS = ShapeProto(element_type=11, dimensions=[4, 8])
ROOT = 7


def program(first="add", name="program"):
    """x, y -> tanh(x+y) * sort(x+y), with two operations that read the sum."""
    builder = Builder(name)
    main = builder.computation("main")
    x, y = (builder.parameter(main, number, FLOATS) for number in (0, 1))
    total = builder.add(main, first, FLOATS, [x, y]).id  # node 2
    ordered = builder.add(main, "sort", FLOATS, [x]).id  # node 3
    curved = builder.add(main, "tanh", FLOATS, [total]).id  # node 4
    turned = builder.add(main, "negate", FLOATS, [total]).id  # node 5
    product = builder.add(main, "multiply", FLOATS, [curved, turned]).id  # node 6
    return FusionGraph(
        builder.finish_module(main, builder.add(main, "add", FLOATS, [product, ordered]).id)
    )


GRAPH = program()


def shown(kernels):
    return [(kernel.root, kernel.members, kernel.inputs) for kernel in kernels]


def test_slots_are_fusible_nodes_with_a_fusible_user():
    assert GRAPH.slots == [2, 4, 5, 6]
    assert GRAPH.root == ROOT
    assert not FUSIBLE & {"gather", "scatter", "select-and-scatter", "sort", "dot", "convolution"}
    assert {"dynamic-slice", "dynamic-update-slice", "iota", "reduce-window"} <= FUSIBLE


def test_slot_numbers_are_positions_in_the_flattened_instruction_list():
    builder = Builder("two")
    other = builder.computation("other")
    builder.finish(other, builder.parameter(other, 0, FLOATS))
    main = builder.computation("main")
    value = builder.add(main, "negate", FLOATS, [builder.parameter(main, 0, FLOATS)]).id
    module = builder.finish_module(main, builder.add(main, "abs", FLOATS, [value]).id)
    graph = FusionGraph(module)
    assert (graph.slots, graph.slot_numbers) == ([1], [2])


def test_bits_are_packed_with_the_lowest_bit_of_the_first_byte_first():
    assert packed(GRAPH, frozenset({2, 6})) == bytes([0b1001])
    assert unpacked(GRAPH, bytes([0b0110])) == {4, 5}
    for fused in (frozenset(), frozenset(GRAPH.slots)):
        assert unpacked(GRAPH, packed(GRAPH, fused)) == fused


@pytest.mark.parametrize("content", [b"", b"\0\0", bytes([1 << 4])])
def test_bits_of_the_wrong_length_are_refused_with_the_number_of_slots(content):
    with pytest.raises(ValueError, match="4 slots has 1 bytes"):
        unpacked(GRAPH, content)


def test_everything_fused_is_one_kernel_and_a_sort_is_a_kernel_of_its_own():
    fused = configuration(GRAPH, GRAPH.slots)
    assert shown(fused.kernels) == [(3, (3,), (0,)), (7, (2, 4, 5, 6, 7), (0, 1, 3))]


def test_nothing_fused_is_one_kernel_per_node():
    assert [k.members for k in unfused(GRAPH).kernels] == [(2,), (3,), (4,), (5,), (6,), (7,)]


def test_a_fused_node_with_two_users_is_computed_in_both_kernels():
    fused = configuration(GRAPH, [2])
    members = [kernel.members for kernel in fused.kernels]
    assert members == [(3,), (2, 4), (2, 5), (6,), (7,)]


def test_a_node_past_the_limits_is_written_instead():
    fused = configuration(GRAPH, GRAPH.slots, Limits(members=3))
    assert max(len(kernel.members) for kernel in fused.kernels) == 3
    assert set(fused.fused) < set(GRAPH.slots)
    covered = {node for kernel in fused.kernels for node in kernel.members}
    assert covered == {2, 3, 4, 5, 6, 7}


def test_a_reduction_is_not_repeated_for_every_element_that_reads_it():
    builder = Builder("mean")
    main = builder.computation("main")
    row = ShapeProto(element_type=11, dimensions=[4])
    x = builder.parameter(main, 0, FLOATS)
    zero = builder.add(main, "constant", ShapeProto(element_type=11)).id
    total = builder.add(main, "reduce", row, [x, zero]).id
    wide = builder.add(main, "broadcast", FLOATS, [total]).id
    graph = FusionGraph(
        builder.finish_module(main, builder.add(main, "subtract", FLOATS, [x, wide]).id)
    )
    limited, unlimited = (
        configuration(graph, graph.slots, limits) for limits in (Limits(), UNLIMITED)
    )
    assert [kernel.members for kernel in limited.kernels] == [(2,), (3, 4)]
    assert [kernel.members for kernel in unlimited.kernels] == [(2, 3, 4)]
    assert limited.kernels[1].inputs == (2, 0)


def test_configurations_are_stable_under_their_own_bits():
    random = np.random.default_rng(0)
    for _ in range(20):
        one = drawn(GRAPH, random, Limits(members=3))
        again = configuration(GRAPH, unpacked(GRAPH, packed(GRAPH, one.fused)), UNLIMITED)
        assert again.kernels == one.kernels


def test_a_neighbour_differs_in_the_flipped_bits():
    random = np.random.default_rng(0)
    one = neighbour(GRAPH, frozenset({2, 4}), random, 1)
    assert len(one.fused ^ {2, 4}) == 1


def test_a_written_program_has_the_wanted_kernels_and_inlining_gives_the_nodes_back():
    for fused in ([], [2], [4, 6], GRAPH.slots):
        kernels = configuration(GRAPH, fused).kernels
        module = fused_program(GRAPH, kernels)
        found = compiled_kernels(module)
        members = (m for k in kernels if GRAPH.fusible(k.root) for m in k.members)
        opcodes = ",".join(found.fusions.elements()).split(",")
        assert sorted(opcodes) == sorted(map(GRAPH.opcode, members)) and found.others == 1
        flat, written = logical(*inlined(module))
        again = FusionGraph(flat)
        assert sorted(map(again.opcode, range(8))) == sorted(map(GRAPH.opcode, range(8)))
        assert len(written) == 2 + len(kernels), "two parameters, and every kernel's root"


def test_a_difference_of_kernels_names_what_is_missing():
    wanted = compiled_kernels(fused_program(GRAPH, unfused(GRAPH).kernels))
    compiled = compiled_kernels(fused_program(GRAPH, configuration(GRAPH, GRAPH.slots).kernels))
    assert "missing fusions {'add': 2" in difference(wanted, compiled)


def test_a_kernel_that_the_compiler_wraps_into_a_fusion_of_its_own_is_no_difference():
    def kernels(others, *fusions):
        return KernelSet(Counter(fusions), others)

    wanted = kernels(1, "add")
    assert difference(wanted, kernels(0, "add", "gather")) == ""
    assert "added" in difference(wanted, kernels(0, "add", "add,gather"))
    assert "instead of" in difference(wanted, kernels(0, "add"))


def kernel_digest(graph, fused, root):
    kernels = configuration(graph, fused).kernels
    return digest(lone_kernel(graph, next(k for k in kernels if k.root == root)))


def test_equal_kernels_of_different_programs_have_one_digest():
    assert kernel_digest(GRAPH, [4], 6) == kernel_digest(program("subtract", "other"), [4], 6)
    assert kernel_digest(GRAPH, [], 2) == kernel_digest(GRAPH, [4, 5], 2)
    assert kernel_digest(GRAPH, [2], 4) != kernel_digest(program("subtract"), [2], 4)
    assert kernel_digest(GRAPH, [], 4) != kernel_digest(GRAPH, [2], 4)


def mean(source):
    """A reduction whose reducer has metadata and names of its source."""
    builder = Builder("mean")
    reducer = builder.computation(source)
    left, right = (builder.parameter(reducer, n, ShapeProto(element_type=11)) for n in (0, 1))
    builder.finish(
        reducer, builder.add(reducer, "add", ShapeProto(element_type=11), [left, right]).id
    )
    main = builder.computation("main")
    x = builder.parameter(main, 0, FLOATS)
    zero = builder.add(main, "constant", ShapeProto(element_type=11)).id
    total = builder.add(main, "reduce", ShapeProto(element_type=11, dimensions=[4]), [x, zero])
    total.called_computation_ids.append(reducer.id)
    module = builder.finish_module(main, total.id)
    for computation in module.computations:
        for instruction in computation.instructions:
            instruction.metadata = source.encode()
            instruction.name += source
    return FusionGraph(module)


def test_names_and_metadata_do_not_enter_the_digest():
    assert kernel_digest(mean("a"), [], 2) == kernel_digest(mean("b"), [], 2)


def test_readers_that_do_not_know_fusion_configurations_skip_them():
    data = ModuleTuningData()
    data.runs.add().module_config.fusion_config.fused = b"\x05"
    # Field 1000 as a tag, then its length and content.
    assert b"\xc2\x3e\x03\x0a\x01\x05" in data.SerializeToString()


def bitcast_to(shape):
    """A module of a parameter and its bitcast."""
    builder = Builder("bitcast")
    main = builder.computation("main")
    x = builder.parameter(main, 0, FLOATS)
    return builder.finish_module(main, builder.add(main, "bitcast", shape, [x]).id)


def test_a_bitcast_becomes_transposes_around_a_reshape():
    module = bitcast_to(ShapeProto(element_type=11, dimensions=[8, 4]))
    parameter, bitcast = module.computations[0].instructions
    bitcast.shape.layout.minor_to_major[:] = [0, 1]
    parameter.shape.layout.minor_to_major[:] = [1, 0]
    flat, _ = logical(module, frozenset())
    assert [i.opcode for i in flat.computations[0].instructions] == ["parameter", "transpose"]
    assert list(flat.computations[0].instructions[1].dimensions) == [1, 0]


def test_a_bitcast_to_another_type_stays_a_conversion():
    module = bitcast_to(ShapeProto(element_type=4, dimensions=[32]))
    flat, _ = logical(module, frozenset())
    parameter, converted, reshaped = flat.computations[0].instructions
    assert [converted.opcode, reshaped.opcode] == ["bitcast-convert", "reshape"]
    assert (converted.shape.element_type, list(converted.shape.dimensions)) == (4, [4, 8])
    assert list(converted.operand_ids) == [parameter.id] and not converted.dimensions
    module.computations[0].instructions[1].shape.dimensions[:] = [64]
    with pytest.raises(ValueError, match="changes the number of elements"):
        logical(module, frozenset())
