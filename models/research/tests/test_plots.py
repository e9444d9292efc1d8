import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from hlorank_research.reports.plots import plot_comparison


def test_a_comparison_writes_every_label_and_mean(tmp_path):
    rows = [("model", 0.75, [0.5, 1.0]), ("random order", -0.125, [-0.25, 0.0])]
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    plot_comparison(rows, first)
    plot_comparison(rows, second)
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text()
    for label in ("model", "0.75", "random order", "\N{MINUS SIGN}0.12"):
        assert f">{label}</text>" in text
