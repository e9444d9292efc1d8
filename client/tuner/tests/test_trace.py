import json
import subprocess

import pytest
from servers import command_line

from hlorank import Adapt, Graph, Layouts
from hlorank.wire.messages import TraceRecord
from hlorank_tune.trace import Trace, _varint


def records(path):
    """The records of a file."""
    content, at, read = path.read_bytes(), 0, []
    while at < len(content):
        length, at = length_at(content, at)
        read.append(TraceRecord.FromString(content[at : at + length]))
        at += length
    return read


def length_at(content, at):
    """The varint at a place, and where it ends."""
    length = content[at] & 0x7F
    if content[at] < 0x80:
        return length, at + 1
    more, end = length_at(content, at + 1)
    return length | more << 7, end


def measured(layout_graph):
    layouts = Layouts(layout_graph.configurations.values()[:3])
    return Adapt("a board", layouts, [3.0, 2.0, 1.0])


@pytest.fixture
def recorded(tmp_path, layout_graph):
    """A trace of two calls about a measured graph."""
    path = tmp_path / "deep" / "search.trace"
    trace = Trace(path, layout_graph.graph)
    trace.write(layout_graph.configurations, top_k=1, model="layout-xla-cpu", with_scores=True)
    trace.write(layout_graph.configurations, adapt=measured(layout_graph))
    trace.close()
    return path


def test_calls_come_after_their_graph_with_what_was_asked(recorded, layout_graph):
    graph, first, second = records(recorded)
    assert graph.graph == layout_graph.graph.whole()
    assert first.call.request.model.name == "layout-xla-cpu"
    assert (first.call.request.top_k, first.call.request.include_scores) == (1, True)
    assert not second.call.request.HasField("model")
    assert not first.call.request.HasField("adapt")
    assert second.call.request.adapt == measured(layout_graph).message
    for record in (first, second):
        request = record.call.request
        assert not request.HasField("graph") and request.batch.WhichOneof("configs")
    times = [(r.call.at.seconds, r.call.at.nanos) for r in (first, second)]
    assert times == sorted(times) and times[1] < (60, 0)


def test_the_command_line_sends_a_trace_again(recorded, server):
    command = [command_line(), "bench", "--trace", recorded, "--json"]
    bench = subprocess.run(
        [*command, "--endpoint", f"http://{server}"], check=True, capture_output=True
    )
    report = json.loads(bench.stdout)
    assert (report["all"]["answered"], report["failures"]) == (2, [])


def test_a_file_that_is_there_is_not_touched(tmp_path):
    path = tmp_path / "search.trace"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        Trace(path, Graph.from_hlo_text("HloModule m"))
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("number", "expected"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\1"), (300, b"\xac\2")]
)
def test_lengths_are_varints(number, expected):
    assert _varint(number) == expected
