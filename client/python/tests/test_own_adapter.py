"""The adapter of docs/in-your-tuner.md, in a tuner that is written for this test alone."""

import re
import runpy

from servers import REPOSITORY, run_empty_server, said_once

PAGE = REPOSITORY / "docs/in-your-tuner.md"


def adapter(address, tmp_path):
    """What the block of the section defines, with a server."""
    section = PAGE.read_text().partition("## Write your own adapter\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    script = tmp_path / "adapter.py"
    script.write_text(code.replace("127.0.0.1:7070", address))
    return runpy.run_path(str(script))


def milliseconds(candidate):
    """A time with a best tile; the largest ones do not run."""
    if candidate["tile"] > 128:
        return None
    return 1.0 + abs(candidate["tile"] - 32) / 8 + candidate["unroll"]


def tune(strategy, trials):
    """The tuner: measures the chosen candidates, and returns all of them in order."""
    measured = []
    for _ in range(trials):
        measured.append(strategy.ask())
        strategy.tell(measured[-1], milliseconds(measured[-1]))
    return measured


def test_the_adapter_of_the_page_tunes_and_reports(store, tmp_path, client):
    page = adapter(store, tmp_path)
    strategy, tiles = page["strategy"], page["tiles"]
    measured = tune(strategy, 12)
    assert len({tuple(each.values()) for each in measured}) == 12, "nothing twice"
    best = min(milliseconds(each) for each in tiles if milliseconds(each) is not None)
    number, seconds = strategy.experience.best
    assert seconds == best / 1e3 and milliseconds(tiles[number]) == best
    (kept,) = client.list_measurements("my board, gcc 12").graphs
    assert len(kept.seconds) == 12
    # Another user's run goes on where this one ended.
    second = page["Strategy"](page["client"], "my board, gcc 12", "my_kernel", tiles)
    assert second.ask() not in measured


def test_without_a_server_the_tuner_goes_on_after_one_warning(tmp_path):
    with run_empty_server(tmp_path) as server:
        strategy = adapter(server.address, tmp_path)["strategy"]
        tune(strategy, 3)
        server.kill()
        with said_once("random search goes on"):
            assert len(tune(strategy, 6)) == 6
    assert strategy.experience.unreported == 6
