"""What the command line does: one function per command."""

import argparse
import os
from dataclasses import asdict, replace
from typing import Any

from .tuning_data import write_json


def collect(arguments: argparse.Namespace) -> None:
    """Measure run times on XLA:CPU."""
    # XLA reads this when it starts: one thread runs the programs.
    os.environ["NPROC"] = "1"
    from .measure import Protocol

    if arguments.task == "layout":
        from .collect_layout import LayoutLimits, collect_layout

        collect_layout(
            arguments.out, arguments.minutes, Protocol(), LayoutLimits(), arguments.backwards
        )
    else:
        from .choose_tiles import TileLimits
        from .collect_tile import collect_tile

        collect_tile(arguments.out, arguments.minutes, Protocol(rounds=6), TileLimits())


def train(arguments: argparse.Namespace) -> None:
    """Train a model and measure it on what was held out."""
    from .prepare import prepare
    from .train import MODEL_SETTINGS, TASK_SETTINGS, save_checkpoint
    from .train import train as run

    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    settings = replace(
        TASK_SETTINGS[arguments.task], seed=arguments.seed, minutes=arguments.minutes
    )
    graphs, validation = map(prepared.graphs, (prepared.split.train, prepared.split.validation))
    trained = run(MODEL_SETTINGS[arguments.task], settings, graphs, validation)
    save_checkpoint(arguments.out / "checkpoint.pt", trained.model)
    report = {
        "model": asdict(MODEL_SETTINGS[arguments.task]),
        "settings": asdict(settings),
        "split": asdict(prepared.split),
        "history": trained.history,
    }
    quality = held_out_quality(arguments.task, prepared, trained.model)
    write_json(arguments.out / "training.json", report | quality)
    print(quality["measured_quality"])


def evaluate(arguments: argparse.Namespace) -> None:
    """Measure a trained model again on what its training held out."""
    from .export import read_json
    from .prepare import prepare
    from .split import Split
    from .train import load_checkpoint

    report = read_json(arguments.run / "training.json")
    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    prepared = replace(prepared, split=Split(**report["split"]))
    model = load_checkpoint(arguments.run / "checkpoint.pt")
    quality = held_out_quality(arguments.task, prepared, model)
    write_json(arguments.run / "training.json", report | quality)
    print(quality["measured_quality"])


def held_out_quality(task: str, prepared, model) -> dict[str, Any]:
    """Means over the held-out graphs, per graph too; for layouts the moved bytes beside them."""
    from .evaluate import evaluate, moved_bytes, summary
    from .prepare import split_rule
    from .train import score_graph

    graphs = prepared.graphs(prepared.split.test)
    apart = split_rule(task, prepared.families).held_out_families
    qualities = evaluate(graphs, lambda graph: score_graph(model, graph))
    known = [q for q in qualities if prepared.families[q.name] not in apart]
    unseen = [q for q in qualities if prepared.families[q.name] in apart]
    measured = {"split": "whole graphs held out, chosen by the SHA-256 of their names"}
    measured |= summary(known)
    if unseen:
        measured["unseen_family"] = summary(unseen)
    if task == "layout":
        baseline = evaluate(graphs, lambda graph: moved_bytes(prepared.tuning_files[graph.name]))
        measured["moved_bytes_baseline"] = summary(baseline)
    return {"measured_quality": measured, "per_graph": {q.name: q.values for q in qualities}}


def export(arguments: argparse.Namespace) -> None:
    """Write the artifact of a trained model."""
    from .export import ArtifactIdentity, digest, read_json
    from .export import export as run
    from .featurize import feature_digest
    from .prepare import prepare
    from .train import load_checkpoint

    report = read_json(arguments.run / "training.json")
    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    trained_on = [prepared.tuning_files[name] for name in report["split"]["train"]]
    identity = ArtifactIdentity(
        name=f"{arguments.task}-xla-cpu",
        version=arguments.version,
        feature_digest=feature_digest(arguments.hlorank),
        training_data_digest=digest(trained_on),
    )
    test = report["split"]["test"]
    run(
        arguments.out / identity.name / str(identity.version),
        load_checkpoint(arguments.run / "checkpoint.pt"),
        identity,
        [prepared.features[name] for name in test],
        prepared.graphs(test),
        report["measured_quality"],
    )


def fixtures(arguments: argparse.Namespace) -> None:
    """Write held-out measurements for the demo and the tests."""
    from .fixtures import FixtureRule, write_fixtures
    from .prepare import prepare

    prepared = prepare(arguments.task, arguments.data, arguments.hlorank)
    for path in write_fixtures(arguments.task, prepared, arguments.out, FixtureRule()):
        print(path, path.stat().st_size)
