import numpy as np
import pytest

from hlorank import Adapt, Client, InvalidRequestError, Layouts, Tiles

TILES = Tiles(output_bounds=[[1, 64], [2, 64], [4, 64], [8, 64]])
SECONDS = [0.008, 0.004, 0.0022, 0.001]
ADAPT = Adapt("some target", TILES, SECONDS)


def test_a_call_and_a_stream_are_adapted_alike(server, tile_graph):
    with Client(server) as client:
        ranking = client.rank(tile_graph.graph, TILES, adapt=ADAPT)
        with client.rank_stream(tile_graph.graph, adapt=ADAPT) as stream:
            stream.send(TILES)
            streamed = stream.finish()
    for each in (ranking, streamed):
        assert each.best.tolist() == [3, 2, 1, 0]
        assert np.allclose(np.log(each.predicted_seconds), each.best_scores, atol=1e-4)
        assert each.log_sd.shape == (4,) and (each.log_sd > 0).all()
        assert each.adaptation.adapted and each.adaptation.measured_configs == 4
        assert each.adaptation.target == "some target"
    assert ranking.log_sd.tolist() == streamed.log_sd.tolist()


def test_what_to_measure_next_is_suggested(server, tile_graph):
    measured = Adapt("some target", Tiles(output_bounds=[[1, 64], [2, 64], [4, 64]]), SECONDS[:3])
    with Client(server) as client:
        first = client.suggest(tile_graph.graph, TILES, count=2)
        assert [suggestion.reason for suggestion in first.suggestions] == ["model"] * 2
        assert first.adaptation is None
        suggested = client.suggest(tile_graph.graph, TILES, adapt=measured, count=8)
        (last,) = suggested.suggestions
        assert suggested.configs.tolist() == [3], "the others are measured"
        assert last.reason == "expected_improvement" and last.expected_improvement > 0
        assert np.isclose(np.log(last.predicted_seconds), last.score, atol=1e-4)
        assert suggested.adaptation.measured_configs == 3
        pending = client.suggest(tile_graph.graph, TILES, adapt=measured, pending=[3])
        assert pending.suggestions == ()
        drawn = client.suggest(tile_graph.graph, TILES, adapt=measured, since_improvement=5, seed=4)
        assert drawn.suggestions[0].reason == "random"


def test_combinations_of_layouts_are_suggested(server, layout_graph, tile_graph):
    candidates = Layouts(layout_graph.configurations.values()[:12])
    with Client(server) as client:
        sent = client.rank(layout_graph.graph, candidates)
        for source in ("segments", "nodes"):
            suggested = client.suggest(layout_graph.graph, candidates, count=3, source=source)
            assert suggested.configs.tolist() == [0, 1, 2]
            ranked = client.rank(layout_graph.graph, suggested.combinations, with_scores=True)
            assert [each.score for each in suggested.suggestions] == ranked.scores.tolist()
            assert ranked.best_scores[0] <= sent.best_scores[0], "it begins with the best"
        assert client.suggest(layout_graph.graph, candidates).combinations is None
        with pytest.raises(InvalidRequestError, match="a tile belongs to a whole kernel"):
            client.suggest(tile_graph.graph, TILES, source="segments")
