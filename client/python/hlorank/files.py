"""Graph files and their measured run times."""

from dataclasses import dataclass
from os import PathLike

import numpy as np

from hlorank.configurations import Configurations
from hlorank.graph import Graph
from hlorank.graph_file import file_graphs
from hlorank.paths import file_path
from hlorank.task import Task, task_number


@dataclass(frozen=True, eq=False)
class MeasuredGraph:
    """A graph of a file with its measurements."""

    name: str
    """Name of the module, or of the file."""
    graph: Graph
    configurations: Configurations | None
    """The measured configurations; None if the file has none."""
    run_times: np.ndarray
    """i64 [configs] nanoseconds; all 0 in TpuGraphs' test files"""


def read_graphs(path: str | PathLike[str], *, task: Task = "layout") -> list[MeasuredGraph]:
    """Reads every graph of a file.

    The file is a TpuGraphs npz (layout or tile) or protobuf (``TuningData``,
    ``ModuleTuningData``), the npz of a feature set, a serialized ``HloModuleProto`` or
    ``HloProto``, or HLO text, also several modules in a log; plain or compressed with gzip or zstd.
    ``task`` applies if the file does not determine it.

    Raises:
        MissingFileError: if the file does not exist, or cannot be opened.
        GraphFileError: if the file has another format or is broken; the message names the file.
    """
    task_number(task)
    return [
        MeasuredGraph(found.name, Graph(found.source), found.configurations, found.run_times)
        for found in file_graphs(file_path(path), task)
    ]
