"""The commands of the command line, one function each.

A command imports what it needs when it runs: ``--help`` needs neither torch nor jax, and
``collect`` sets up the process before jax starts.
"""

import argparse
import os
from dataclasses import replace
from typing import Any

MEASURED = {
    "layout": ("xla",),
    "tile": ("xla", "halide", "iree", "triton"),
    "fusion": ("xla",),
    "feature-set": ("halide", "tvm"),
}
"""The compilers with which configurations of a task are measured, the default first."""


def collect(arguments: argparse.Namespace) -> None:
    """Measure run times on the first JAX device, or of what Halide or TVM schedules."""
    # XLA reads NPROC when it starts; programs then run on one thread.
    os.environ["NPROC"] = "1"
    sources = MEASURED[arguments.task]
    source = arguments.source or sources[0]
    if source not in sources:
        message = f"{arguments.task} is measured with {' or '.join(sources)}"
        raise SystemExit(f"--source {source}: {message}")
    if source == "tvm":
        from hlorank_training.measuring.tvm.collect import CandidateLimits, Protocol, collect_tvm

        collect_tvm(arguments.out, arguments.minutes, Protocol(), CandidateLimits())
    elif arguments.task == "feature-set":
        from hlorank_training.measuring.halide.collect import ScheduleLimits, collect_halide
        from hlorank_training.measuring.halide.schedules import PROTOCOL

        collect_halide(arguments.out, arguments.minutes, PROTOCOL, ScheduleLimits())
    elif arguments.task == "fusion":
        from hlorank_training.measuring.collect_fusion import PROTOCOL, collect_fusion
        from hlorank_training.measuring.draw_fusions import FusionLimits

        collect_fusion(arguments.out, arguments.minutes, PROTOCOL, FusionLimits())
    elif arguments.task == "layout":
        from hlorank_training.measuring.collect_layout import PROTOCOL, LayoutLimits, collect_layout

        collect_layout(arguments.out, arguments.minutes, PROTOCOL, LayoutLimits())
    elif source == "iree":
        from hlorank_training.measuring.collect_iree import PROTOCOL, collect_iree

        collect_iree(arguments.out, arguments.minutes, PROTOCOL)
    elif source == "triton":
        from hlorank_training.measuring.triton.collect import PROTOCOL, collect_triton

        collect_triton(arguments.out, arguments.minutes, PROTOCOL)
    else:
        from hlorank_tune.measure.rounds import Protocol

        from hlorank_training.measuring.choose_tiles import TileLimits
        from hlorank_training.measuring.collect_tile import collect_tile

        collect_tile(arguments.out, arguments.minutes, Protocol(), TileLimits(), source)


def describe(arguments: argparse.Namespace) -> None:
    """Describe the measurements in a table and in plots."""
    from hlorank_training.measuring.describe import describe as run

    print(run(arguments.data, arguments.out))


def train(arguments: argparse.Namespace) -> None:
    """Train a model and measure its quality on held-out graphs."""
    from hlorank_training.models.registry import REGISTRY
    from hlorank_training.runs import train_run

    entry, preset = chosen(arguments, REGISTRY, "small")
    print(train_run(tuning_files(arguments), entry, preset, arguments.out).table())


def train_fusion(arguments: argparse.Namespace) -> None:
    """Train a model of the run times of kernels, and measure it on held-out families."""
    from hlorank_training.fusion_runs import train_fusion_run

    quality = train_fusion_run(tuning_files(arguments), arguments.seed, arguments.out)
    for name, value in quality.items():
        print(f"{name:34} {value}")


def train_feature_set(arguments: argparse.Namespace) -> None:
    """Train a model of a feature set, and write its artifact."""
    from hlorank_training.feature_set_runs import train_feature_set_artifact

    place = destination(arguments)
    try:
        quality = train_feature_set_artifact(
            arguments.data, arguments.epochs, arguments.members, arguments.order, place
        )
    except ValueError as error:
        raise SystemExit(f"--data: {error}") from None
    for name, value in quality.items():
        print(f"{name:28} {value}")
    print(f"wrote {place.folder}")


def evaluate(arguments: argparse.Namespace) -> None:
    """Measure the quality of a trained model on held-out graphs again."""
    from hlorank_training.models.registry import REGISTRY
    from hlorank_training.runs import evaluate_run

    print(evaluate_run(tuning_files(arguments), arguments.run, REGISTRY).table())


def held_out(arguments: argparse.Namespace) -> None:
    """List the files of the held-out graphs, for `hlorank eval`."""
    prepared = tuning_files(arguments).prepare()
    for file in dict.fromkeys(prepared.sources[name].file for name in prepared.split.test):
        print(file)


def export(arguments: argparse.Namespace) -> None:
    """Write the artifact of a trained model, or of the mean of several."""
    from hlorank_training.models.ensemble import segment_ensemble
    from hlorank_training.models.registry import REGISTRY
    from hlorank_training.runs import Exporter
    from hlorank_training.shipping.export import write_segment_model

    export_runs(arguments, Exporter(REGISTRY, segment_ensemble, write_segment_model))


def export_fusion(arguments: argparse.Namespace) -> None:
    """Write the artifact of a trained model of fusions."""
    from hlorank_training.fusion_runs import export_fusion_run

    if len(arguments.run) > 1:
        raise SystemExit("--run: a model of fusions is exported alone; name one run")
    try:
        export_fusion_run(tuning_files(arguments), arguments.run[0], destination(arguments))
    except ValueError as error:
        raise SystemExit(f"--run: {error}") from None


def chosen(arguments: argparse.Namespace, registry: Any, preset_name: str) -> tuple[Any, Any]:
    """Returns the architecture that the command line names, and its preset with the options."""
    try:
        entry = registry.find(arguments.task, arguments.architecture)
        preset = entry.preset(preset_name)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    training = replace(preset.training, seed=arguments.seed, minutes=arguments.minutes)
    if arguments.loss:
        training = replace(training, loss=replace(training.loss, name=arguments.loss))
    return entry, replace(preset, training=training)


def export_runs(arguments: argparse.Namespace, exporter: Any) -> None:
    """Writes the artifact of the runs that the command line names."""
    try:
        exporter.export(tuning_files(arguments), arguments.run, destination(arguments))
    except ValueError as error:
        raise SystemExit(f"--run: {error}") from None


def tuning_files(arguments: argparse.Namespace) -> Any:
    """Returns the measured graphs that the command line names."""
    from hlorank_training.runs import TuningFiles

    return TuningFiles(arguments.task, arguments.data, arguments.hlorank)


def destination(arguments: argparse.Namespace) -> Any:
    """Returns where the command line wants the artifact."""
    from hlorank_training.runs import Destination

    return Destination(arguments.out, arguments.name, arguments.version)
