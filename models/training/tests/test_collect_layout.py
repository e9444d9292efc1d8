import json
from functools import partial
from pathlib import Path

import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_tune.measure.constrain import configurable_nodes  # noqa: E402
from hlorank_tune.measure.constrain import constrained as module_with_layouts  # noqa: E402
from hlorank_tune.measure.rounds import Protocol  # noqa: E402
from hlorank_tune.measure.schema import ModuleTuningData  # noqa: E402

from hlorank_training.measuring import collect_layout as module  # noqa: E402
from hlorank_training.measuring.collect_layout import COLLECTIONS, LayoutLimits, collect_layout  # noqa: E402
from hlorank_training.measuring.layers import dense  # noqa: E402
from hlorank_training.measuring.zoo import Network  # noqa: E402

AT_ONCE = Protocol(warmups=0, rounds=2, seconds=0, other_load=99, tries=0)
"""Waits for nobody: only that times are taken matters here, not how good they are."""
LIMITS = LayoutLimits(random=3, generations=2, children=2, parents=2)


def layers(p, x):
    """Four dots and four reshapes, so that three mutated nodes are not all of them."""
    for width in (4, 6, 4, 6):
        x = jax.numpy.tanh(dense(p, x, width)).reshape(2, 3, -1)
    return x


TINY = Network("tiny", "small", layers, ((2, 3, 6),))


@pytest.fixture(scope="module", autouse=True)
def only_the_tiny_network():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "networks", lambda: [TINY])
        patch.setattr(module, "_QUICK", AT_ONCE)
        yield


collect = partial(collect_layout, minutes=1, protocol=AT_ONCE, limits=LIMITS)


@pytest.fixture(scope="module")
def collected(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    collect(folder)
    return folder


def read(folder: Path, collection: str):
    return ModuleTuningData.FromString((folder / collection / "tiny.pb").read_bytes())


def configurations(data) -> list[tuple]:
    return [
        tuple(
            tuple(tuple(tensor.dims) for tensor in node.tensors)
            for node in run.module_config.layout_config.nodes
        )
        for run in data.runs
    ]


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_graph_becomes_a_tuning_file_and_its_record(collected, collection):
    names = {path.name for path in (collected / collection).iterdir()}
    assert names == {"provenance.json", "tiny.pb", "tiny.json"}
    data = read(collected, collection)
    record = json.loads((collected / collection / "tiny.json").read_text(encoding="utf-8"))
    assert (record["name"], record["family"]) == ("tiny", "small")
    assert record["configurations"] == len(data.runs)
    assert record["configurable_nodes"] == len(data.config_index_to_node)
    assert record["rounds_of_both_passes"] == 4
    assert record["refused"] == 0


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_node_numbers_are_those_of_the_stored_module(collected, collection):
    data = read(collected, collection)
    numbers = [node.number for node in configurable_nodes(data.module)]
    assert list(data.config_index_to_node) == numbers
    flat = [i for computation in data.module.computations for i in computation.instructions]
    assert {flat[number].opcode for number in numbers} == {"dot", "reshape"}
    assert all(len(configuration) == len(numbers) for configuration in configurations(data))


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_collection_begins_with_the_default_and_times_are_positive(collected, collection):
    data = read(collected, collection)
    assert [run.is_default for run in data.runs] == [True] + [False] * (len(data.runs) - 1)
    assert set(configurations(data)[0]) == {((), (), ())}
    assert all(run.profile.compute_time_ns > 0 for run in data.runs)


def test_both_collections_hold_distinct_configurations_and_share_only_the_default(collected):
    random, default = (configurations(read(collected, name)) for name in COLLECTIONS)
    assert len(random) == 1 + LIMITS.random
    assert len(default) == 1 + LIMITS.generations * LIMITS.children
    assert len(set(random)) == len(random) and len(set(default)) == len(default)
    assert set(random) & set(default) == {default[0]}


def test_both_collections_hold_one_module_and_one_measurement_of_the_default(collected):
    random, default = (read(collected, name) for name in COLLECTIONS)
    assert random.module == default.module
    assert random.runs[0] == default.runs[0]


def test_children_of_the_first_generation_differ_from_the_default_in_at_most_three_nodes(collected):
    default, *others = configurations(read(collected, "default"))
    for child in others[: LIMITS.children]:
        changed = sum(a != b for a, b in zip(child, default, strict=True))
        assert 1 <= changed <= 3


def test_what_is_collected_is_not_collected_again(collected, monkeypatch):
    def state():
        return {path: path.stat().st_mtime_ns for path in collected.glob("*/tiny.*")}

    def fail(*_):
        raise AssertionError("compiled again")

    before = state()
    monkeypatch.setattr(module, "lower", fail)
    collect(collected)
    assert len(before) == 4 and state() == before


@pytest.fixture
def collects(monkeypatch) -> list[str]:
    """The names that are collected, in place of collecting them."""
    names: list[str] = []
    monkeypatch.setattr(module, "_collect", lambda network, *_: names.append(network.name))
    return names


def test_a_half_written_file_does_not_count_as_collected(tmp_path, collects):
    for name in COLLECTIONS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "tiny.pb.partial").write_bytes(b"half")
        (tmp_path / name / "tiny.json").write_bytes(b"{}")
    collect(tmp_path)
    assert collects == ["tiny"]


@pytest.mark.parametrize("written", COLLECTIONS)
def test_a_stop_between_the_two_files_measures_both_again(tmp_path, collects, written):
    (tmp_path / written).mkdir()
    (tmp_path / written / "tiny.pb").touch()
    collect(tmp_path)
    assert collects == ["tiny"]


def test_nothing_is_begun_when_the_time_is_over(tmp_path, collects):
    collect(tmp_path, minutes=-1)
    assert collects == []


@pytest.fixture
def spoils(monkeypatch):
    """Changes the instructions of one opcode in every layout but the default."""

    def spoil(spoiled: str, **fields: str) -> None:
        def constrained(original, nodes, configuration):
            changed = module_with_layouts(original, nodes, configuration)
            for computation in changed.computations if changed != original else ():
                for instruction in computation.instructions:
                    for name, value in fields.items() if instruction.opcode == spoiled else ():
                        setattr(instruction, name, value)
            return changed

        monkeypatch.setattr(module, "constrained", constrained)

    return spoil


def test_a_layout_that_changes_the_results_stops_the_collection(tmp_path, spoils):
    spoils("tanh", opcode="negate")
    with pytest.raises(RuntimeError, match=r"changed the results: .* of the largest value"):
        collect(tmp_path)
    assert not list(tmp_path.glob("*/tiny.*"))


def test_layouts_that_the_compiler_refuses_are_counted_and_left_out(tmp_path, spoils):
    spoils("dot", custom_call_target="no_such_function", opcode="custom-call")
    collect(tmp_path)
    for collection in COLLECTIONS:
        assert len(configurations(read(tmp_path, collection))) == 1
    record = json.loads((tmp_path / "random" / "tiny.json").read_text(encoding="utf-8"))
    assert record["refused"] == LIMITS.random + LIMITS.generations * LIMITS.children
