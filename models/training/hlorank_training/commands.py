"""The commands of the command line, one function each.

A command imports what it needs when it runs: ``--help`` needs neither torch nor jax, and
``collect`` sets up the process before jax starts.
"""

import argparse
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any


def collect(arguments: argparse.Namespace) -> None:
    """Measures run times on the first JAX device, or of what IREE or TVM compiles."""
    # XLA reads NPROC when it starts; programs then run on one thread.
    os.environ["NPROC"] = "1"
    limits = arguments.out, arguments.minutes
    if arguments.task == "layout":
        from hlorank_training.measuring.collect_layout import collect_layout

        collect_layout(*limits)
    elif arguments.task == "tile":
        from hlorank_training.measuring.collect_iree import PROTOCOL, collect_iree

        collect_iree(*limits, PROTOCOL)
    elif arguments.task == "fusion":
        from hlorank_training.measuring.collect_fusion import collect_fusion

        collect_fusion(*limits)
    else:
        from hlorank_training.measuring.tvm.collect import collect_tvm

        collect_tvm(*limits)


def train(arguments: argparse.Namespace) -> None:
    """Trains a model and measures its quality on held-out graphs."""
    from hlorank_training.registry import REGISTRY
    from hlorank_training.runs import train_run

    entry = REGISTRY.find(arguments.task, arguments.architecture)
    preset = entry.preset(arguments.preset)
    training = replace(preset.training, seed=arguments.seed)
    if arguments.minutes is not None:
        training = replace(training, minutes=arguments.minutes)
    settings = preset.model
    if arguments.pad_value not in (None, entry.model.form(settings).pad_value):
        if not hasattr(settings, "pad_value"):
            raise SystemExit(f"--pad-value: features of {entry.name} are always padded with 0")
        settings = replace(settings, pad_value=arguments.pad_value)
    preset = replace(preset, model=settings, training=training)
    print(train_run(_tuning_files(arguments), entry, preset, arguments.out))


def train_fusion(arguments: argparse.Namespace) -> None:
    """Trains a model of the run times of kernels, and measures it on held-out families."""
    from hlorank_training.fusion_runs import train_fusion_run

    quality = train_fusion_run(_tuning_files(arguments), arguments.seed, arguments.out)
    for name, value in quality.items():
        print(f"{name:34} {value}")


def train_feature_set(arguments: argparse.Namespace) -> None:
    """Trains a model of a feature set, and writes its artifact."""
    from hlorank_training.feature_set_runs import train_feature_set_artifact

    place = _destination(arguments)
    try:
        quality = train_feature_set_artifact(
            arguments.data, arguments.epochs, arguments.members, arguments.order, place
        )
    except ValueError as error:
        raise SystemExit(f"--data: {error}") from None
    for name, value in quality.items():
        print(f"{name:28} {value}")
    print(f"wrote {place.folder}")


def held_out(arguments: argparse.Namespace) -> None:
    """Lists the files of the held-out graphs, for `hlorank eval`."""
    prepared = _tuning_files(arguments).prepare()
    for file in dict.fromkeys(prepared.sources[name].file for name in prepared.split.test):
        print(file)


def export(arguments: argparse.Namespace) -> None:
    """Writes the artifact of a trained model of layouts or tiles."""
    from hlorank_training.runs import export_run

    export_run(_tuning_files(arguments), arguments.run, _destination(arguments))


def export_fusion(arguments: argparse.Namespace) -> None:
    """Writes the artifact of a trained model of fusions."""
    from hlorank_training.fusion_runs import export_fusion_run

    export_fusion_run(_tuning_files(arguments), arguments.run, _destination(arguments))


def measured_fixtures(arguments: argparse.Namespace) -> None:
    """Writes held-out measurements for the demo and the tests, and the pools of a benchmark."""
    from hlorank_training.fixtures.measured import FixtureRule, write_fixtures, write_pool

    if arguments.task == "pool":
        arguments.task = "tile"
        prepared = _tuning_files(arguments).prepare()
        write_pool(prepared, arguments.out, known=not arguments.all)
        _print_sizes([arguments.out])
        return
    prepared = _tuning_files(arguments).prepare()
    _print_sizes(write_fixtures(arguments.task, prepared, arguments.out, FixtureRule()))


def whole_graph_fixtures(arguments: argparse.Namespace) -> None:
    """Writes whole-graph artifacts with random weights, for the server's tests."""
    from hlorank_training.fixtures.whole_graphs import write_whole_graph_fixtures

    written = write_whole_graph_fixtures(arguments.measured, arguments.hlorank, arguments.out)
    _print_sizes(path for folder in written for path in sorted(folder.iterdir()))


def text_fixtures(arguments: argparse.Namespace) -> None:
    """Writes HLO modules as text, and HLO text as modules, for the tests."""
    from hlorank_training.fixtures.texts import write_text_fixtures

    _print_sizes(write_text_fixtures(arguments.data))


def fusion_fixtures(arguments: argparse.Namespace) -> None:
    """Writes programs before fusion, for the tests of their kernels."""
    from hlorank_training.fixtures.fusion import write_fusion_fixtures

    _print_sizes(write_fusion_fixtures(arguments.out))


def _print_sizes(files: Iterable[Path]) -> None:
    for path in files:
        print(path, path.stat().st_size)


def _tuning_files(arguments: argparse.Namespace) -> Any:
    from hlorank_training.runs import TuningFiles

    return TuningFiles(arguments.task, arguments.data, arguments.hlorank)


def _destination(arguments: argparse.Namespace) -> Any:
    from hlorank_training.runs import Destination

    return Destination(arguments.out, arguments.name, arguments.version)
