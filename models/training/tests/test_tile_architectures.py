"""Every architecture for tiles passes the checks that all architectures get."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

import architecture_checks as checks  # noqa: E402

from hlorank_training.data.dataset import Graph, distinct, read_graph  # noqa: E402
from hlorank_training.data.featurize import featurize  # noqa: E402
from hlorank_training.registry import REGISTRY  # noqa: E402

CEILING = 0.93
"""Mean noise ceiling of the kernels that were measured."""


@dataclass(frozen=True)
class Facts:
    """What a paper says about an architecture."""

    count: int
    """Trained parameters of preset ``paper``, with ``opcodes`` rows of the opcode table."""
    opcodes: int = 121
    layers: int = 0
    """Layers along edges, after which a node's vector depends on as many hops."""


FACTS = {
    "tpugraphs-early-sage": Facts(61_889, layers=3),
    "tgraph-tile": Facts(540_645, opcodes=120),
    "kaufman-sage-transformer": Facts(31_923_456 + 2 * 1024, layers=3),
}
TILES = REGISTRY.of_task("tile")
each = pytest.mark.parametrize("name", FACTS)


def small(name: str, **settings) -> torch.nn.Module:
    return checks.small(TILES[name], **settings)


def without_costs(name: str) -> dict[str, bool]:
    """The costs of a kernel, which Kaufman joins at every node, depend on all nodes and edges."""
    return {"costs": False} if name.startswith("kaufman") else {}


def test_every_architecture_of_a_paper_is_checked():
    checks.check_every_architecture_is_listed(TILES, FACTS)


@each
def test_the_published_sizes_have_the_published_number_of_parameters(name):
    checks.check_count(TILES[name], FACTS[name].count, FACTS[name].opcodes)


@each
def test_scores_do_not_depend_on_the_numbers_of_nodes(name):
    checks.check_relabelling(small(name), checks.example())


def test_which_of_many_neighbours_count_depends_on_the_numbers_of_nodes():
    name, many = "kaufman-sage-transformer", checks.star(25)
    settings = without_costs(name)
    checks.check_relabelling(small(name, **settings), many, matters=True)
    checks.check_relabelling(small(name, **settings), checks.star(20))
    checks.check_relabelling(small(name, **settings, neighbours=25), many)


@each
def test_every_configuration_has_a_score_of_its_own(name):
    checks.check_configurations(small(name), checks.example())


@each
def test_degenerate_graphs_have_finite_scores(name):
    checks.check_degenerate_graphs(small(name), "tile")


@each
def test_padding_influences_nothing(name):
    checks.check_padding(small(name), checks.example())


@each
def test_both_kinds_of_artifacts_agree_with_torch(name, tmp_path):
    model = small(name)
    checks.check_onnx_of_segment_model(model, tmp_path)
    checks.check_onnx_of_whole_graph_model(model, tmp_path / "model.onnx")


@pytest.mark.parametrize("name", [name for name, facts in FACTS.items() if facts.layers])
def test_a_node_sees_as_many_hops_as_there_are_layers(name):
    vectors = partial(checks.node_vectors, small(name, **without_costs(name)))
    checks.check_receptive_field(vectors, FACTS[name].layers)


@pytest.fixture(scope="session")
def kernel(hlorank, tmp_path_factory) -> Graph:
    """A measured kernel."""
    kernels = Path(__file__).parents[3] / "tests/data/measured/tile_kernels.pb"
    path = tmp_path_factory.mktemp("features") / "kernel.npz"
    featurize(hlorank, [(kernels, 0)], [path])
    return distinct(read_graph(path, path.stem))


@each
def test_a_model_learns_the_order_of_one_measured_kernel(name, kernel):
    checks.check_learning(TILES[name].model, TILES[name].presets["small"], kernel, CEILING)


def _ignore_sums(model) -> None:
    for sage in model.encoder.sages:
        with torch.no_grad():
            sage.linear.weight[:, : sage.linear.in_features // 2] = 0


def _ignore_means(model) -> None:
    for block in model.encoder.blocks:
        with torch.no_grad():
            block.join.weight[:, model.settings.hidden :] = 0


def _ignore_users(model) -> None:
    for sage in model.encoder.sages:
        torch.nn.init.zeros_(sage.users.weight)


NO_NEIGHBOURS: dict[str, Callable[[torch.nn.Module], None]] = {
    "tpugraphs-early-sage": _ignore_sums,
    "tgraph-tile": _ignore_users,
    "kaufman-sage-transformer": _ignore_means,
}


@pytest.mark.parametrize("name", NO_NEIGHBOURS)
def test_without_edges_a_model_is_itself_without_its_neighbour_terms(name):
    model, ignoring = (small(name, **without_costs(name)) for _ in range(2))
    NO_NEIGHBOURS[name](ignoring)
    checks.check_no_edges(model, ignoring, checks.example())


def test_every_row_of_kaufmans_graphsage_has_norm_one_or_is_zero():
    model = small("kaufman-sage-transformer")
    norms = np.linalg.norm(checks.node_vectors(model, checks.example()), axis=-1)
    assert norms[norms > 0] == pytest.approx(1, abs=1e-5)
    assert norms.max() > 0


def test_every_row_of_tpugraphs_sage_has_norm_one():
    vectors = checks.node_vectors(small("tpugraphs-early-sage"), checks.example())
    assert np.linalg.norm(vectors, axis=-1) == pytest.approx(1, abs=1e-5)
