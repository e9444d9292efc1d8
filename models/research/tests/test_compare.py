from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import architecture_checks as checks  # noqa: E402

from hlorank_research.comparisons.compare import Compared, compare, table  # noqa: E402
from hlorank_research.comparisons.variants import (  # noqa: E402
    COMPARISONS,
    Comparison,
    Variant,
    comparison,
)
from hlorank_research.papers.losses import loss_names  # noqa: E402
from hlorank_research.papers.registry import REGISTRY  # noqa: E402
from hlorank_training.data.prepare import Prepared  # noqa: E402
from hlorank_training.data.sources import Source  # noqa: E402
from hlorank_training.data.split import Split  # noqa: E402
from hlorank_training.judging.held_out import held_out_quality  # noqa: E402
from hlorank_training.models.checkpoint import load_checkpoint  # noqa: E402

NAMES = tuple(f"k{number}" for number in range(4))


class Examples(Prepared):
    """Random kernels."""

    def graphs(self, names):
        return [
            replace(checks.as_graph(checks.example(seed=NAMES.index(name))), name=name)
            for name in names
        ]


@pytest.fixture
def prepared() -> Prepared:
    sources = {name: Source(name, Path(name), None, name, "f", None, 0.9) for name in NAMES}
    return Examples("0" * 64, Split(NAMES[:2], NAMES[2:3], NAMES[3:]), {}, sources)


@pytest.mark.parametrize("key", COMPARISONS, ids=str)
def test_every_variant_of_an_architecture_is_another_model_or_loss(key):
    entry, variants = REGISTRY.find(*key), comparison(*key).variants
    small = entry.preset("small")
    settings = [replace(small.model, **variant.changes) for variant in variants.values()]
    for one in settings:
        assert checks.parameters(entry.model(one)) > 0
    losses = [variant.loss or small.training.loss.name for variant in variants.values()]
    assert set(losses) <= set(loss_names())
    shares = [variant.share for variant in variants.values()]
    assert len(set(zip(settings, losses, shares, strict=True))) == len(variants)


def test_an_architecture_without_variants_lists_those_that_have_some():
    with pytest.raises(ValueError, match=r"expected: graphsage-.*, kaufman-sage-per-node"):
        comparison("tile", "tgraph-tile")


def test_a_comparison_trains_what_is_missing_and_reads_what_is_there(prepared, tmp_path):
    entry = REGISTRY.find("tile", "kaufman-sage-per-node")
    variants = {
        "vanilla": Variant({"costs": "absent"}, published="6.2"),
        "MSE loss": Variant({"directed": False}, loss="kaufman-log-mse", published="16.7"),
    }
    training = replace(entry.preset("small").training, epochs=2)
    compared = Compared(entry, Comparison(variants, published="paper"), tmp_path, training)
    first = compare(compared, prepared, 1)
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == ["mse_loss_1.pt", "vanilla_1.pt"]
    changed = load_checkpoint(tmp_path / "mse_loss_1.pt", REGISTRY).settings
    assert (changed.directed, changed.costs) == (False, "nodes")
    written = (tmp_path / "vanilla_1.pt").stat().st_mtime_ns
    assert compare(compared, prepared, 1) == first
    assert (tmp_path / "vanilla_1.pt").stat().st_mtime_ns == written
    rows = cells(first)
    assert rows[0][-2:] == ["Tile-Size APE: median, mean", "paper"]
    assert [(row[0], row[-1]) for row in rows[2:]] == [
        ("vanilla", "6.2"),
        ("MSE loss", "16.7"),
        ("random", ""),
        ("always the default", ""),
    ]


def test_several_seeds_of_the_full_model_are_trained_and_one_of_the_others():
    runs = Comparison({"full": Variant(), "less": Variant(share=0.5)}, seeds=3).runs()
    assert runs == [("full", 1), ("less", 1), ("full", 2), ("full", 3)]


def test_the_table_has_a_row_a_model_and_what_needs_none(prepared):
    qualities = {
        "best": held_out_quality(prepared, lambda g: g.runtimes),
        "worst": held_out_quality(prepared, lambda g: -g.runtimes),
    }
    rows = cells(table(qualities, Comparison({})))
    assert rows[2][:3] == ["best", "1.00", "1.00"]
    assert rows[3][:3] == ["worst", "-1.00", "0.00"]
    assert [row[0] for row in rows[4:]] == ["random", "always the default"]
    assert len({len(row) for row in rows}) == 1


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
