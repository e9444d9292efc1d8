"""The commands of the command line, one function each.

A command imports what it needs when it runs, so that ``--help`` needs neither torch nor jax.
"""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hlorank_training.commands import chosen, export_runs, tuning_files


def train(arguments: argparse.Namespace) -> None:
    """Train a model of any architecture, and measure its quality on held-out graphs."""
    from hlorank_research.papers.losses import PaperLoss
    from hlorank_research.papers.registry import REGISTRY
    from hlorank_training.runs import train_run

    entry, preset = chosen(arguments, REGISTRY, arguments.preset)
    if arguments.loss:
        loss = PaperLoss(**asdict(preset.training.loss))
        preset = replace(preset, training=replace(preset.training, loss=loss))
    preset = replace(preset, model=_padded(preset.model, entry, arguments.pad_value))
    judged = train_run(tuning_files(arguments), entry, preset, arguments.out)
    _print_quality(judged, arguments.out)


def _padded(settings: Any, entry: Any, pad_value: int | None) -> Any:
    """Returns settings of a model whose features are padded with a value, or with its own."""
    if pad_value in (None, entry.model.form(settings).pad_value):
        return settings
    if not hasattr(settings, "pad_value"):
        raise SystemExit(f"--pad-value: features of {entry.name} are always padded with 0")
    return replace(settings, pad_value=pad_value)


def evaluate(arguments: argparse.Namespace) -> None:
    """Measure the quality of a trained model on held-out graphs again."""
    from hlorank_research.papers.registry import REGISTRY
    from hlorank_training.runs import evaluate_run

    judged = evaluate_run(tuning_files(arguments), arguments.run, REGISTRY)
    _print_quality(judged, arguments.run)


def _print_quality(judged: Any, folder: Path) -> None:
    """Prints the quality, and for tiles Kaufman's errors by application, which it also writes."""
    from hlorank_tune.measure.atomic_files import write_json

    from hlorank_research.comparisons.applications import application_errors, applications_table
    from hlorank_research.papers.losses import predicted_nanoseconds

    print(judged.table())
    if judged.model.settings.task != "tile":
        return
    nanoseconds = predicted_nanoseconds(judged.report["settings"]["loss"]["name"])
    errors = application_errors(judged.prepared, judged.score, nanoseconds)
    by_application = {name: asdict(one) for name, one in errors.items()}
    write_json(folder / "applications.json", by_application)
    print(applications_table(errors))


def export(arguments: argparse.Namespace) -> None:
    """Write the artifact of a trained model of any architecture, or of the mean of several."""
    from hlorank_research.papers.registry import REGISTRY
    from hlorank_research.whole_graphs.ensemble import ensemble
    from hlorank_research.whole_graphs.export import write_model
    from hlorank_training.runs import Exporter

    export_runs(arguments, Exporter(REGISTRY, ensemble, write_model))


def compare(arguments: argparse.Namespace) -> None:
    """Train the ablations of an architecture, and compare it with them and with baselines."""
    from hlorank_research.comparisons.compare import Compared
    from hlorank_research.comparisons.compare import compare as run
    from hlorank_research.comparisons.variants import comparison
    from hlorank_research.papers.registry import REGISTRY

    try:
        entry = REGISTRY.find(arguments.task, arguments.architecture)
        variants = comparison(arguments.task, arguments.architecture)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    preset = entry.preset("small")
    training = replace(preset.training, minutes=arguments.minutes)
    if arguments.epochs:
        training = replace(training, epochs=arguments.epochs)
    prepared = tuning_files(arguments).prepare(entry.model.form(preset.model))
    compared = Compared(entry, variants, arguments.out, training)
    print(run(compared, prepared, arguments.workers))


def compare_fusion(arguments: argparse.Namespace) -> None:
    """Compare the model of fusions with Kaufman's reductions of it and with boosted trees."""
    from hlorank_research.comparisons.fusions import FusionComparison

    comparison = FusionComparison(
        arguments.data, arguments.hlorank, arguments.out, arguments.epochs
    )
    print(comparison.run(arguments.workers))


def compare_feature_set(arguments: argparse.Namespace) -> None:
    """Compare models of a feature set on held-out graphs and on held-out configurations."""
    from hlorank_research.comparisons.feature_sets import compare_known, compare_unseen, comparison
    from hlorank_training.feature_set_runs import read_feature_set

    try:
        graphs, columns = read_feature_set(arguments.data)
    except ValueError as error:
        raise SystemExit(f"--data: {error}") from None
    compared = comparison(columns, arguments.epochs)
    unseen = compare_unseen(graphs, compared)
    print(f"### Unseen graphs: {len(graphs)}\n\n{unseen}\n", flush=True)
    known = compare_known(graphs, compared)
    print(f"### Unseen configurations of known graphs\n\n{known}")


def within_graph(arguments: argparse.Namespace) -> None:
    """Fit a model to one graph and rank its left-out configurations."""
    from hlorank import Client

    from hlorank_research.comparisons.adapted import MEASURED
    from hlorank_research.comparisons.within_graph import Fitting
    from hlorank_research.comparisons.within_graph import within_graph as run
    from hlorank_research.papers.registry import REGISTRY
    from hlorank_training.reports.tables import markdown

    entry = REGISTRY.find(arguments.task, arguments.architecture)
    fitting = Fitting(entry, arguments.minutes, arguments.seeds)
    prepared = tuning_files(arguments).prepare()
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

    from hlorank_research.studies.replayed_search import Replays, replayed_search

    prepared = tuning_files(arguments).prepare()
    settings = Replays(
        arguments.model, arguments.unknown, arguments.earlier, tuple(arguments.within)
    )
    with Client(arguments.server) as client:
        print(replayed_search(prepared, client, settings))


def study(arguments: argparse.Namespace) -> None:
    """Tune held-out programs with and without a server's model, and count the measurements."""
    from hlorank_research.studies.tuner import study as run

    prepared = tuning_files(arguments).prepare()
    counts = arguments.subjects, arguments.seeds
    print(run(arguments.task, prepared, arguments.server, arguments.out, *counts))


def study_iree(arguments: argparse.Namespace) -> None:
    """Tune the study's programs with IREE, and measure what each way of tuning gains."""
    from hlorank_research.studies.iree import study_iree as run

    print(run(arguments.server, arguments.out, arguments.model))


def study_fusion(arguments: argparse.Namespace) -> None:
    """Tune fusions with a server's model and by measurements alone, and compare the results."""
    from hlorank_research.studies.fusion import study_fusion as run

    limits = arguments.minutes, arguments.minutes_without
    print(run(arguments.programs, arguments.server, arguments.out, *limits))


def study_trust(arguments: argparse.Namespace) -> None:
    """Compare the tau that a server expects of its rankings with what comes of them."""
    from hlorank_research.studies.trust import study_trust as run

    print(run(arguments.data, arguments.tpugraphs, arguments.server, arguments.hlorank))


def measured_fixtures(arguments: argparse.Namespace) -> None:
    """Write held-out measurements for the demo and the tests."""
    from hlorank_research.fixtures.measured import FixtureRule, write_fixtures

    prepared = tuning_files(arguments).prepare()
    _print_sizes(write_fixtures(arguments.task, prepared, arguments.out, FixtureRule()))


def pool_fixture(arguments: argparse.Namespace) -> None:
    """Write the measured kernels of many structures as one file, for the benchmark of pools."""
    from hlorank_research.fixtures.measured import write_pool

    arguments.task = "tile"
    write_pool(tuning_files(arguments).prepare(), arguments.out, known=not arguments.all)
    _print_sizes([arguments.out])


def whole_graph_fixtures(arguments: argparse.Namespace) -> None:
    """Write whole-graph artifacts with random weights, for the server's tests."""
    from hlorank_research.fixtures.whole_graphs import write_whole_graph_fixtures

    written = write_whole_graph_fixtures(arguments.measured, arguments.hlorank, arguments.out)
    _print_sizes([path for folder in written for path in sorted(folder.iterdir())])


def text_fixtures(arguments: argparse.Namespace) -> None:
    """Write HLO modules as text, and HLO text as modules, for the tests."""
    from hlorank_research.fixtures.texts import write_text_fixtures

    _print_sizes(write_text_fixtures(arguments.data))


def fusion_fixtures(arguments: argparse.Namespace) -> None:
    """Write programs before fusion, for the tests of their kernels."""
    from hlorank_research.fixtures.fusion import write_fusion_fixtures

    _print_sizes(write_fusion_fixtures(arguments.out))


def check_texts(arguments: argparse.Namespace) -> None:
    """Compare the graphs of HLO texts in a folder with those of the modules they stand for."""
    from hlorank_research.fixtures.text_check import EQUAL, check_texts, table

    outcomes = check_texts(arguments.folder, arguments.hlorank, arguments.parse)
    print(table(outcomes))
    different = sum(outcome.kind != EQUAL for outcome in outcomes)
    if different or not outcomes:
        raise SystemExit(f"check-texts: {different} of {len(outcomes)} texts are not equal")


def _print_sizes(files: Any) -> None:
    for path in files:
        print(path, path.stat().st_size)
