"""``SpaceSearch.run``, and what is printed of spaces, searches and answers."""

import asyncio

from gemm import SPACE, seconds
from servers import said_once

from hlorank import AsyncClient, Client, Experience, Fallback, Result


def test_a_run_measures_what_is_suggested_and_goes_on(client):
    search = client.search(SPACE, "run")
    best, first = search.run(seconds, 4)
    assert first == seconds(best)
    assert search.run(seconds, 100) == ({"tile": 8, "flag": "-O2"}, 0.1)
    (kept,) = client.list_measurements("run").graphs
    assert len(kept.seconds) == len(SPACE), "and ends when nothing is left"


def test_ctrl_c_ends_a_run_with_what_was_measured(client):
    measured = []

    def interrupted(one):
        if len(measured) == 3:
            raise KeyboardInterrupt
        measured.append(one)
        return "crash" if len(measured) == 1 else seconds(one)

    search = client.search(SPACE, "interrupted")
    best, fastest = search.run(interrupted, 10)
    assert fastest == min(map(seconds, measured[1:])) and best in measured
    (kept,) = client.list_measurements("interrupted").graphs
    assert sorted(map(str, kept.failures)) == ["None", "None", "crash"]
    assert client.search(SPACE, "another").run(interrupted, 3) is None
    search.run(seconds, 100)
    (kept,) = client.list_measurements("interrupted").graphs
    assert len(kept.seconds) == len(SPACE), "what was interrupted is suggested again"


def test_a_run_of_asyncio_awaits_its_function(store):
    async def run():
        async def measure(one):
            await asyncio.sleep(0)
            return seconds(one)

        async with AsyncClient(store) as client:
            search = client.search(SPACE, "awaited")
            assert await search.run(measure, 6) == search.best
            ranking = await search.rank()
            assert search.adaptation.adapted
            assert await search.predicted_best() == SPACE[ranking.best[0]]

    asyncio.run(run())


def test_a_terminal_shows_how_far_a_run_is(client, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    search = client.search(SPACE, "shown")
    search.run(seconds, 2)
    shown = capsys.readouterr().err
    assert "\r1 of 2 measured, fastest" in shown and shown.endswith("\n")
    search.run(seconds, 3)
    assert "\r3 of 5 measured, fastest" in capsys.readouterr().err, "it goes on"


def test_answers_and_spaces_print_themselves_as_tables(client):
    search = client.search(SPACE, "printed")
    search.run(seconds, 12)
    assert repr(SPACE).splitlines()[:2] == [
        "Space 'gemm': 12 configurations",
        "parameter  values                from",
    ]
    assert "seconds    0.1" in repr(search)
    ranking = repr(search.rank(2)).splitlines()
    assert ranking[0] == "Ranking of 12 configurations by measurements"
    assert ranking[1].split() == ["configuration", "score", "seconds"] and len(ranking) == 4
    assert "printed" in repr(client.list_measurements("printed"))


def test_with_a_fallback_no_call_raises_and_there_is_one_warning():
    fallback = Fallback("the tuner goes on")
    with Client("127.0.0.1:1", timeout=1) as client:
        convert = SPACE.configurations
        experience = Experience(client, SPACE.graph, convert, "a board", fallback=fallback)
        with said_once("; the tuner goes on"):
            assert experience.predict([0, 1]) is None
            assert experience.suggest(SPACE.configurations()) is None
            assert experience.order([0, 1], 1) is None
            assert experience.kept_measurements() is None
            assert experience.add([0], [Result(1.0)]) is None
    assert fallback.is_away and experience.unreported == 1
