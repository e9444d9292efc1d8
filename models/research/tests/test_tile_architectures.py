"""Every architecture for tiles passes the checks that all architectures get."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

import architecture_checks as checks  # noqa: E402

from hlorank_research.papers.registry import REGISTRY  # noqa: E402
from hlorank_research.papers.tpugraphs_resgcn import user_averages  # noqa: E402
from hlorank_research.whole_graphs.ensemble import ensemble  # noqa: E402
from hlorank_training.data.dataset import Graph, distinct, read_graph  # noqa: E402
from hlorank_training.data.featurize import featurize  # noqa: E402

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
    order_matters: bool = False


FACTS = {
    "tpugraphs-early-sage": Facts(61_889, layers=3),
    "tpugraphs-late-sage": Facts(60_353, layers=3),
    "tpugraphs-early-resgcn": Facts(49_825, layers=3),
    "tpugraphs-late-resgcn": Facts(49_825, layers=3),
    "tpugraphs-mlp": Facts(20_705),
    "tgraph-tile": Facts(540_645, opcodes=120),
    # The paper's 320 and 94 features are 140 + 16 and 24 here: see its own test.
    "singh-gcn": Facts(195_361, opcodes=0, layers=2),
    "kaufman-none-per-node": Facts(1_821_440),
    "kaufman-none-column-wise": Facts(7_806_208),
    "kaufman-none-lstm": Facts(3_132_160, order_matters=True),
    "kaufman-none-transformer": Facts(41_360_640 + 3 * 2 * 1024),
    "kaufman-sage-per-node": Facts(4_967_168, layers=3),
    "kaufman-sage-column-wise": Facts(19_341_568, layers=3),
    "kaufman-sage-lstm": Facts(27_729_152, layers=3, order_matters=True),
    "kaufman-sage-transformer": Facts(31_923_456 + 2 * 1024, layers=3),
    "kaufman-gat-per-node": Facts(4_967_168 + 3 * 4 * 512, layers=3),
    "kaufman-gat-column-wise": Facts(4_967_680 + 3 * 4 * 512, layers=3),
    "kaufman-gat-lstm": Facts(7_064_320 + 3 * 4 * 512, layers=3, order_matters=True),
    "kaufman-gat-transformer": Facts(11_258_624 + 3 * 4 * 512 + 2 * 2 * 512, layers=3),
}
TILES = REGISTRY.of_task("tile")
_KAUFMAN = {
    "kaufman-none-per-node",
    "kaufman-gat-column-wise",
    "kaufman-sage-lstm",
    "kaufman-sage-transformer",
}
"""Every GNN and every reduction once; exports take long."""
EXPORTED = [name for name in FACTS if not name.startswith("kaufman") or name in _KAUFMAN]
each = pytest.mark.parametrize("name", FACTS)


def small(name: str, **settings) -> torch.nn.Module:
    return checks.small(TILES[name], **settings)


def without_costs(name: str) -> dict[str, str]:
    """The costs of a kernel, which Kaufman joins at every node, depend on all nodes and edges."""
    return {"costs": "absent"} if name.startswith("kaufman") else {}


def test_every_architecture_of_a_paper_is_checked():
    checks.check_every_architecture_is_listed(TILES, FACTS)


@each
def test_the_published_sizes_have_the_published_number_of_parameters(name):
    checks.check_count(TILES[name], FACTS[name].count, FACTS[name].opcodes)


@each
def test_scores_do_not_depend_on_the_numbers_of_nodes(name):
    checks.check_relabelling(small(name), checks.example(), matters=FACTS[name].order_matters)


@pytest.mark.parametrize("name", ["kaufman-sage-per-node", "kaufman-gat-column-wise"])
def test_which_of_many_neighbours_count_depends_on_the_numbers_of_nodes(name):
    many, settings = checks.star(25), without_costs(name)
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


@pytest.mark.parametrize("name", EXPORTED)
def test_both_kinds_of_artifacts_agree_with_torch(name, tmp_path):
    model = small(name)
    checks.check_onnx_of_segment_model(model, tmp_path)
    checks.check_onnx_of_whole_graph_model(model, tmp_path / "model.onnx")


def test_an_ensemble_is_exported_as_one_pair_of_files(tmp_path):
    members = [small("tgraph-tile", seed=seed) for seed in (1, 2)]
    both, given = ensemble(members), checks.example()
    expected = np.mean([checks.scores(member, given) for member in members], 0)
    assert checks.difference(checks.scores(both, given), expected) < checks.CLOSE
    checks.check_onnx_of_segment_model(both, tmp_path)


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


@pytest.mark.parametrize("name", EXPORTED)
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
    "tpugraphs-late-sage": _ignore_sums,
    "tgraph-tile": _ignore_users,
    "kaufman-sage-column-wise": _ignore_means,
    "kaufman-gat-column-wise": _ignore_means,
}


@pytest.mark.parametrize("name", NO_NEIGHBOURS)
def test_without_edges_a_model_is_itself_without_its_neighbour_terms(name):
    model, ignoring = (small(name, **without_costs(name)) for _ in range(2))
    NO_NEIGHBOURS[name](ignoring)
    checks.check_no_edges(model, ignoring, checks.example())


@pytest.mark.parametrize("name", ["kaufman-sage-per-node", "kaufman-sage-lstm"])
def test_every_row_of_kaufmans_graphsage_has_norm_one_or_is_zero(name):
    norms = np.linalg.norm(checks.node_vectors(small(name), checks.example()), axis=-1)
    assert norms[norms > 0] == pytest.approx(1, abs=1e-5)
    assert norms.max() > 0


def test_every_row_of_tpugraphs_sage_has_norm_one():
    vectors = checks.node_vectors(small("tpugraphs-early-sage"), checks.example())
    assert np.linalg.norm(vectors, axis=-1) == pytest.approx(1, abs=1e-5)


def test_two_kernels_with_equal_sums_have_equal_late_joined_scores():
    model = small("tpugraphs-late-sage")
    given = checks.example()
    order = np.roll(np.arange(len(given.opcode)), 1)
    other = checks.relabelled(given, order)
    other = replace(other, config=given.config)
    assert checks.difference(checks.scores(model, other), checks.scores(model, given)) < 1e-5


def test_a_perceptron_does_not_see_edges():
    model, given = small("tpugraphs-mlp"), checks.example()
    turned = replace(given, edges=given.edges[::-1].copy())
    assert (checks.scores(model, turned) == checks.scores(model, given)).all()


def test_a_producer_averages_itself_and_its_users_and_its_users_do_not_average_back():
    edges = torch.zeros(1, 4, 4)
    edges[0, 1:, 0] = 1  # nodes 1 to 3 consume node 0
    users = user_averages(edges)[0]
    assert users[0].tolist() == [0.25] * 4
    assert users.mT[:, 0].tolist() == [0.25] * 4
    assert users.mT.sum(-1).tolist() == [0.25, 1.25, 1.25, 1.25]
