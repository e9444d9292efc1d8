"""The commands of the command line, one function each.

A command imports what it needs when it runs: ``--help`` needs neither torch nor jax, and
``collect`` sets up the process before jax starts.
"""

import argparse
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

MEASURED = {
    "layout": ("xla",),
    "tile": ("xla", "halide", "iree"),
    "fusion": ("xla",),
    "feature-set": ("halide",),
}
"""The compilers with which configurations of a task are measured, the default first."""


def collect(arguments: argparse.Namespace) -> None:
    """Measure run times on the first JAX device, or of Halide's schedules."""
    # XLA reads NPROC when it starts; programs then run on one thread.
    os.environ["NPROC"] = "1"
    sources = MEASURED[arguments.task]
    source = arguments.source or sources[0]
    if source not in sources:
        message = f"{arguments.task} is measured with {' or '.join(sources)}"
        raise SystemExit(f"--source {source}: {message}")
    if arguments.task == "feature-set":
        from hlorank.halide.schedules import PROTOCOL

        from hlorank_training.measuring.halide.collect import ScheduleLimits, collect_halide

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
    else:
        from hlorank.measure.rounds import Protocol

        from hlorank_training.measuring.choose_tiles import TileLimits
        from hlorank_training.measuring.collect_tile import collect_tile

        collect_tile(arguments.out, arguments.minutes, Protocol(), TileLimits(), source)


def describe(arguments: argparse.Namespace) -> None:
    """Describe the measurements in a table and in plots."""
    from hlorank_training.measuring.describe import describe as run

    print(run(arguments.data, arguments.out))


def train(arguments: argparse.Namespace) -> None:
    """Train a model and measure its quality on held-out graphs."""
    if arguments.task == "fusion":
        from hlorank_training import fusion_commands

        fusion_commands.train(arguments)
        return
    from hlorank_training.data.prepare import prepare
    from hlorank_training.models.checkpoint import save_checkpoint
    from hlorank_training.models.train import Keeping
    from hlorank_training.models.train import train as run
    from hlorank_training.reports.plots import plot_curves

    entry, preset = _chosen(arguments)
    form = entry.model.form(preset.model)
    prepared = prepare(arguments.task, arguments.data, arguments.hlorank, form)
    graphs, validation = map(prepared.graphs, (prepared.split.train, prepared.split.validation))
    keeping = Keeping(
        lambda model: save_checkpoint(arguments.out / "checkpoint.pt", model),
        arguments.out / "state.pt",
    )
    trained = run(entry.model, preset, graphs, validation, keeping)
    plot_curves(trained.history, arguments.out / "curves.svg")
    report = {
        "feature_digest": prepared.feature_digest,
        "architecture": trained.model.architecture,
        "model": asdict(trained.model.settings),
        "settings": asdict(preset.training),
        "split": asdict(prepared.split),
        "history": trained.history,
    }
    _report_quality(prepared, trained.model, report, arguments.out)


def _chosen(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """Returns the architecture and the preset that the command line names."""
    from hlorank_training.models.architectures.registry import architecture

    try:
        entry = architecture(arguments.task, arguments.architecture)
        preset = entry.preset(arguments.preset)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    training = replace(preset.training, seed=arguments.seed, minutes=arguments.minutes)
    if arguments.loss:
        training = replace(training, loss=replace(training.loss, name=arguments.loss))
    model = _padded(preset.model, entry, arguments.pad_value)
    return entry, replace(preset, training=training, model=model)


def _padded(settings: Any, entry: Any, pad_value: int | None) -> Any:
    """Returns settings of a model whose features are padded with a value, or with its own."""
    if pad_value in (None, entry.model.form(settings).pad_value):
        return settings
    if not hasattr(settings, "pad_value"):
        raise SystemExit(f"--pad-value: features of {entry.name} are always padded with 0")
    return replace(settings, pad_value=pad_value)


def evaluate(arguments: argparse.Namespace) -> None:
    """Measure the quality of a trained model on held-out graphs again."""
    from hlorank.measure.atomic_files import read_json

    from hlorank_training.data.prepare import prepare
    from hlorank_training.models.checkpoint import load_checkpoint

    report = read_json(arguments.run / "training.json")
    model = load_checkpoint(arguments.run / "checkpoint.pt")
    form = model.form(model.settings)
    prepared = prepare(arguments.task, arguments.data, arguments.hlorank, form)
    _refuse_other_features(report, prepared)
    _report_quality(prepared, model, report, arguments.run)


def held_out(arguments: argparse.Namespace) -> None:
    """List the files of the held-out graphs, for `hlorank eval`."""
    from hlorank_training.data.prepare import prepare

    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    for file in dict.fromkeys(prepared.sources[name].file for name in prepared.split.test):
        print(file)


def compare(arguments: argparse.Namespace) -> None:
    """Train the ablations of an architecture, and compare it with them and with baselines."""
    if arguments.task == "fusion":
        from hlorank_training import fusion_commands

        fusion_commands.compare(arguments)
        return
    from hlorank_training.data.prepare import prepare
    from hlorank_training.judging.compare import Compared
    from hlorank_training.judging.compare import compare as run
    from hlorank_training.judging.comparisons import comparison
    from hlorank_training.models.architectures.registry import architecture

    try:
        entry = architecture(arguments.task, arguments.architecture)
        variants = comparison(arguments.task, arguments.architecture)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    preset = entry.preset("small")
    training = replace(preset.training, minutes=arguments.minutes)
    if arguments.epochs:
        training = replace(training, epochs=arguments.epochs)
    form = entry.model.form(preset.model)
    prepared = prepare(arguments.task, arguments.data, arguments.hlorank, form)
    compared = Compared(entry, variants, arguments.out, training)
    print(run(compared, prepared, arguments.workers))


def compare_feature_set(arguments: argparse.Namespace) -> None:
    """Compare models of a feature set on held-out graphs and on held-out configurations."""
    from hlorank_training.judging.feature_sets import compare_known, compare_unseen, comparison

    graphs, columns = _feature_graphs(arguments.data)
    compared = comparison(columns, arguments.epochs)
    unseen = compare_unseen(graphs, compared)
    print(f"### Unseen graphs: {len(graphs)}\n\n{unseen}\n", flush=True)
    known = compare_known(graphs, compared)
    print(f"### Unseen configurations of known graphs\n\n{known}")


def train_feature_set(arguments: argparse.Namespace) -> None:
    """Train a model of a feature set, and write its artifact."""
    from hlorank_training.data.feature_graphs import held_out_folds
    from hlorank_training.judging.feature_sets import FOLDS, held_out_quality, shipped
    from hlorank_training.shipping.export import ArtifactIdentity, digest
    from hlorank_training.shipping.feature_set_artifact import export_feature_set, feature_digest

    graphs, columns = _feature_graphs(arguments.data)
    if len(graphs) < FOLDS:
        raise SystemExit(f"--data: {len(graphs)} graphs; a model needs {FOLDS}, one to judge it")
    held_out = held_out_folds(graphs, FOLDS)[0]
    learned = [graph for graph in graphs if graph.name not in held_out]
    judged = [graph for graph in graphs if graph.name in held_out]
    model = shipped(columns.products, arguments.epochs, arguments.members).train(learned)
    quality = held_out_quality(judged, model.scores)
    identity = ArtifactIdentity(
        name=arguments.name,
        version=arguments.version,
        feature_digest=feature_digest(columns),
        training_data_digest=digest([arguments.data / f"{graph.name}.npz" for graph in learned]),
    )
    folder = arguments.out / identity.name / str(identity.version)
    export_feature_set(folder, model, identity, columns, judged, quality)
    for name, value in quality.items():
        print(f"{name:28} {value}")
    print(f"wrote {folder}")


def _feature_graphs(folder: Path) -> tuple[list[Any], Any]:
    """Returns the measured graphs of a folder, and their columns."""
    from hlorank_training.data.feature_graphs import read_columns, read_feature_graphs

    try:
        graphs = read_feature_graphs(folder)
        return graphs, read_columns(folder, graphs)
    except ValueError as error:
        raise SystemExit(f"--data: {error}") from None


def within_graph(arguments: argparse.Namespace) -> None:
    """Fit a model to one graph and rank its left-out configurations."""
    from hlorank import Client

    from hlorank_training.data.prepare import prepare
    from hlorank_training.judging.adapted import MEASURED
    from hlorank_training.judging.within_graph import Fitting
    from hlorank_training.judging.within_graph import within_graph as run
    from hlorank_training.models.architectures.registry import architecture
    from hlorank_training.reports.tables import markdown

    fitting = Fitting(
        architecture(arguments.task, arguments.architecture), arguments.minutes, arguments.seeds
    )
    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    server = Client(arguments.server) if arguments.server else None
    rows = []
    for features in prepared.features.values():
        for fit in run(features, fitting, server):
            taus = [fit.model, fit.ridge] + ([fit.adapted] if server else [])
            rows.append([fit.split, f"{fit.test:,}", *(f"{tau:.3f}" for tau in taus)])
    columns = ["left out", "configurations", "model, tau", "ridge, tau"]
    print(markdown(columns + [f"{MEASURED} measured, adapted, tau"] * bool(server), rows))


def replay(arguments: argparse.Namespace) -> None:
    """Replay searches of held-out lists that follow a server, and count the measurements."""
    from hlorank import Client

    from hlorank_training.data.prepare import prepare
    from hlorank_training.judging.replayed_search import Replays, replayed_search

    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    settings = Replays(
        arguments.model, arguments.unknown, arguments.earlier, tuple(arguments.within)
    )
    with Client(arguments.server) as client:
        print(replayed_search(prepared, client, settings))


def study(arguments: argparse.Namespace) -> None:
    """Tune held-out programs with and without a server's model, and count the measurements."""
    from hlorank_training.data.prepare import prepare
    from hlorank_training.judging.study import study as run

    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    counts = arguments.subjects, arguments.seeds
    print(run(arguments.task, prepared, arguments.server, arguments.out, *counts))


def study_iree(arguments: argparse.Namespace) -> None:
    """Tune the study's programs with IREE, and measure what each way of tuning gains."""
    from hlorank_training.judging.study_iree import study_iree as run

    print(run(arguments.server, arguments.out, arguments.model))


def study_fusion(arguments: argparse.Namespace) -> None:
    """Tune fusions with a server's model and by measurements alone, and compare the results."""
    from hlorank_training.judging.study_fusion import study_fusion as run

    limits = arguments.minutes, arguments.minutes_without
    print(run(arguments.programs, arguments.server, arguments.out, *limits))


def study_halide(arguments: argparse.Namespace) -> None:
    """Compare a few schedules that a server's model ranks first with all measured ones."""
    from hlorank_training.judging.study_halide import study_halide as run

    try:
        print(
            run(
                arguments.data,
                arguments.pipelines,
                arguments.server,
                arguments.out,
                arguments.model,
            )
        )
    except ValueError as error:
        raise SystemExit(f"--data: {error}") from None


def export(arguments: argparse.Namespace) -> None:
    """Write the artifact of a trained model, or of the mean of several."""
    if arguments.task == "fusion":
        from hlorank_training import fusion_commands

        fusion_commands.export(arguments)
        return
    from hlorank.measure.atomic_files import read_json

    from hlorank_training.data.prepare import prepare
    from hlorank_training.models.checkpoint import load_checkpoint
    from hlorank_training.models.ensemble import ensemble
    from hlorank_training.shipping.export import ArtifactIdentity, digest
    from hlorank_training.shipping.export import export as run

    report, *others = (read_json(run / "training.json") for run in arguments.run)
    if any(other["split"] != report["split"] for other in others):
        raise SystemExit("--run: the models were trained on different splits; train them again")
    model = ensemble([load_checkpoint(run / "checkpoint.pt") for run in arguments.run])
    form = model.form(model.settings)
    prepared = prepare(arguments.task, arguments.data, arguments.hlorank, form)
    _refuse_other_features(report, prepared)
    quality = report["measured_quality"]
    if others:
        quality = _quality(prepared, report, model)["measured_quality"]
    trained_on = [prepared.sources[name].file for name in report["split"]["train"]]
    identity = ArtifactIdentity(
        name=arguments.name,
        version=arguments.version,
        feature_digest=prepared.feature_digest,
        training_data_digest=digest(trained_on),
    )
    features = [prepared.features[name] for name in report["split"]["test"]]
    run(arguments.out / identity.name / str(identity.version), model, identity, features, quality)


def fixtures(arguments: argparse.Namespace) -> None:
    """Write held-out measurements for the demo and the tests."""
    from hlorank_training.data.prepare import prepare
    from hlorank_training.shipping.fixtures import FixtureRule, write_fixtures

    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    for path in write_fixtures(arguments.task, prepared, arguments.out, FixtureRule()):
        print(path, path.stat().st_size)


def pool_fixture(arguments: argparse.Namespace) -> None:
    """Write the measured kernels of many structures as one file, for the benchmark of pools."""
    from hlorank_training.data.prepare import prepare
    from hlorank_training.shipping.fixtures import write_pool

    prepared = prepare("tile", arguments.data, arguments.hlorank)
    write_pool(prepared, arguments.out, known=not arguments.all)
    print(arguments.out, arguments.out.stat().st_size)


def whole_graph_fixtures(arguments: argparse.Namespace) -> None:
    """Write whole-graph artifacts with random weights, for the server's tests."""
    from hlorank_training.shipping.whole_graph_fixtures import write_whole_graph_fixtures

    written = write_whole_graph_fixtures(arguments.measured, arguments.hlorank, arguments.out)
    for path in (path for folder in written for path in sorted(folder.iterdir())):
        print(path, path.stat().st_size)


def text_fixtures(arguments: argparse.Namespace) -> None:
    """Write HLO modules as text, and HLO text as modules, for the tests."""
    from hlorank_training.shipping.text_fixtures import write_text_fixtures

    for path in write_text_fixtures(arguments.data):
        print(path, path.stat().st_size)


def check_texts(arguments: argparse.Namespace) -> None:
    """Compare the graphs of HLO texts in a folder with those of the modules they stand for."""
    from hlorank_training.shipping.text_check import EQUAL, check_texts, table

    outcomes = check_texts(arguments.folder, arguments.hlorank, arguments.parse)
    print(table(outcomes))
    different = sum(outcome.kind != EQUAL for outcome in outcomes)
    if different or not outcomes:
        raise SystemExit(f"check-texts: {different} of {len(outcomes)} texts are not equal")


def fusion_fixtures(arguments: argparse.Namespace) -> None:
    """Write programs before fusion, for the tests of their kernels."""
    from hlorank_training.shipping.fusion_fixtures import write_fusion_fixtures

    for path in write_fusion_fixtures(arguments.out):
        print(path, path.stat().st_size)


def _report_quality(prepared, model, report: dict[str, Any], folder) -> None:
    """Writes the report of a training with the held-out quality, and prints the quality."""
    from hlorank.measure.atomic_files import write_json

    from hlorank_training.judging.applications import applications_table
    from hlorank_training.judging.held_out import quality_table

    quality = _quality(prepared, report, model)
    print(quality_table(prepared, quality))
    if model.settings.task == "tile":
        errors = _application_errors(prepared, report, model)
        quality |= {"application_errors": {name: asdict(one) for name, one in errors.items()}}
        print(applications_table(errors))
    write_json(folder / "training.json", report | quality)


def _quality(prepared, report: dict[str, Any], model) -> dict[str, Any]:
    """Returns the quality on the graphs that the report's split holds out."""
    from hlorank_training.judging.held_out import held_out_quality
    from hlorank_training.models.train import score_graph

    as_trained = _split_as_trained(prepared, report)
    return held_out_quality(as_trained, lambda graph: score_graph(model, graph))


def _application_errors(prepared, report: dict[str, Any], model) -> dict[str, Any]:
    """Returns Kaufman's errors by application on the graphs that the report's split holds out."""
    from hlorank_training.judging.applications import application_errors
    from hlorank_training.models.loss import predicted_nanoseconds
    from hlorank_training.models.train import score_graph

    as_trained = _split_as_trained(prepared, report)
    nanoseconds = predicted_nanoseconds(report["settings"]["loss"]["name"])
    return application_errors(as_trained, lambda graph: score_graph(model, graph), nanoseconds)


def _split_as_trained(prepared, report: dict[str, Any]):
    from hlorank_training.data.split import Split

    return replace(prepared, split=Split(**report["split"]))


def _refuse_other_features(report: dict[str, Any], prepared) -> None:
    """Refuses features of another featurizer, on which the model's scores would be wrong."""
    trained_with = report.get("feature_digest", "unknown")
    if trained_with != prepared.feature_digest:
        raise RuntimeError(
            f"the model was trained with featurizer {trained_with}, but this program has "
            f"{prepared.feature_digest}; train again"
        )
