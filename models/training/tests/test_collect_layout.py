from functools import partial
from pathlib import Path

import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_tune.measure.atomic_files import read_json  # noqa: E402
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
    assert [run.is_default for run in data.runs] == [True] + [False] * (len(data.runs) - 1)
    assert set(configurations(data)[0]) == {((), (), ())}
    assert all(run.profile.compute_time_ns > 0 for run in data.runs)
    record = read_json(collected / collection / "tiny.json")
    assert (record["name"], record["family"]) == ("tiny", "small")
    assert record["configurations"] == len(data.runs)
    assert record["configurable_nodes"] == len(data.config_index_to_node)
    assert record["rounds_of_both_passes"] == 4
    assert record["refused"] == 0


def test_node_numbers_are_those_of_the_stored_module(collected):
    data = read(collected, "random")
    nodes = configurable_nodes(data.module)
    assert list(data.config_index_to_node) == [node.number for node in nodes]
    assert all(len(configuration) == len(nodes) for configuration in configurations(data))


def test_both_collections_hold_one_module_and_share_the_measured_default_alone(collected):
    random, default = (read(collected, name) for name in COLLECTIONS)
    assert random.module == default.module
    assert random.config_index_to_node == default.config_index_to_node
    assert random.runs[0] == default.runs[0]
    layouts, others = configurations(random), configurations(default)
    assert len(set(layouts)) == len(layouts) == 1 + LIMITS.random
    assert len(set(others)) == len(others) == 1 + LIMITS.generations * LIMITS.children
    assert set(layouts) & set(others) == {others[0]}


def test_children_of_the_first_generation_differ_from_the_default_in_at_most_three_nodes(collected):
    default, *others = configurations(read(collected, "default"))
    for child in others[: LIMITS.children]:
        changed = sum(a != b for a, b in zip(child, default, strict=True))
        assert 1 <= changed <= 3


def test_what_is_collected_is_not_collected_again(collected, monkeypatch):
    def fail(*_):
        raise AssertionError("compiled again")

    monkeypatch.setattr(module, "lower", fail)
    collect(collected)


@pytest.fixture
def collects(monkeypatch) -> list[str]:
    """The names that are collected, in place of collecting them."""
    names: list[str] = []
    monkeypatch.setattr(module, "_collect", lambda network, *_: names.append(network.name))
    return names


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            [f"{name}/tiny.{end}" for name in COLLECTIONS for end in ("pb.partial", "json")],
            id="half written",
        ),
        *([f"{name}/tiny.pb"] for name in COLLECTIONS),
    ],
)
def test_a_graph_is_collected_again_unless_both_files_are_complete(tmp_path, collects, files):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
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
    assert (
        read_json(tmp_path / "random/tiny.json")["refused"]
        == LIMITS.random + LIMITS.generations * LIMITS.children
    )
