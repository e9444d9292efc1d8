"""The commands of the command line, one function each.

A command imports what it needs when it runs: ``--help`` needs neither torch nor jax, and
``collect`` sets up the process before jax starts.
"""

import argparse
import os
from dataclasses import replace
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
    _print_figures(train_run(_tuning_files(arguments), entry, preset, arguments.out))


def train_fusion(arguments: argparse.Namespace) -> None:
    """Trains a model of the run times of kernels, and measures it on held-out families."""
    from hlorank_training.fusion_runs import train_run

    _print_figures(train_run(_tuning_files(arguments), arguments.seed, arguments.out))


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
    _print_figures(quality)
    print(f"wrote {place.folder}")


def held_out(arguments: argparse.Namespace) -> None:
    """Lists the files of the held-out graphs, for `hlorank eval`."""
    prepared = _tuning_files(arguments).prepare()
    for file in dict.fromkeys(prepared.sources[name].file for name in prepared.split.test):
        print(file)


def export(arguments: argparse.Namespace) -> None:
    """Writes the artifact of a trained model."""
    from hlorank_training import fusion_runs, runs

    of_task = fusion_runs if arguments.task == "fusion" else runs
    of_task.export_run(_tuning_files(arguments), arguments.run, _destination(arguments))


def _print_figures(quality: dict[str, Any]) -> None:
    for name, value in quality.items():
        print(f"{name:40} {value}")


def _tuning_files(arguments: argparse.Namespace) -> Any:
    from hlorank_training.runs import TuningFiles

    return TuningFiles(arguments.task, arguments.data, arguments.hlorank)


def _destination(arguments: argparse.Namespace) -> Any:
    from hlorank_training.runs import Destination

    return Destination(arguments.out, arguments.name, arguments.version)
