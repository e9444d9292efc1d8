"""Graph files and their measured run times."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from hlorank.configurations import Configurations
from hlorank.graph import Graph
from hlorank.graph_file import file_graphs
from hlorank.task import Task


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
    ``HloProto``, or HLO text. ``task`` applies if the file does not determine it.

    Raises:
        GraphFileError: if the file has another format or is broken; the message names the file.
    """
    return [
        MeasuredGraph(found.name, Graph(found.source), found.configurations, found.run_times)
        for found in file_graphs(Path(path), task)
    ]
