"""The report of a search for tiles: what the program gains, by dispatch, with plots."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hlorank.iree.dispatch import lowering_config
from hlorank.measure.atomic_files import write_atomically
from hlorank.tune.dispatches.kernel import Kernel
from hlorank.tune.dispatches.run import TileRun
from hlorank.tune.dispatches.tuner import SPEC_FILE
from hlorank.tune.duration import duration
from hlorank.tune.report import table

REPORT_FILE = "report.md"
_PLOT_FILE = "dispatches.svg"


def verdict(run: TileRun) -> str:
    """Says in one line what the program gains."""
    measured = sum(len(kernel.outcomes) for kernel in run.kernels)
    lost = f"; the server failed: {run.errors[0]}" if run.errors else ""
    if run.default is None and run.spec:
        return f"{run.program}: tiles for {len(run.chosen)} dispatches, not measured{lost}"
    if not run.spec:
        return (
            f"{run.program}: nothing is faster than your program as IREE compiles it "
            f"after {measured} measured tiles ({run.message}){lost}"
        )
    return (
        f"{run.program}: {1 / run.ratio:.2f} times as fast as IREE compiles it "
        f"({duration(run.default)} before, {duration(run.tuned)} after, noise {run.noise:.1%}) "
        f"after {measured} measured tiles{lost}"
    )


def write_tile_report(run: TileRun, folder: Path) -> Path:
    """Writes the report with its plot, and returns its path."""
    lines = [f"# Tiles of {run.program}", "", verdict(run) + ".", ""]
    if run.spec:
        lines += ["Use them:", "", "```console", _command(), "```", ""]
    if any(kernel.outcomes for kernel in run.kernels):
        _plot(run.kernels, folder / _PLOT_FILE)
        lines += [f"![Run time of every measured tile]({_PLOT_FILE})", ""]
    lines += _dispatches(run)
    if run.left:
        lines += ["", "These dispatches are left as they are:", ""]
        lines += table(["dispatch", "reason"], [list(pair) for pair in run.left], 2)
    path = folder / REPORT_FILE
    write_atomically(path, ("\n".join(lines) + "\n").encode())
    return path


def _command() -> str:
    return (
        f"$ iree-compile --iree-codegen-tuning-spec-path={SPEC_FILE} PROGRAM.mlir -o PROGRAM.vmfb"
    )


def _dispatches(run: TileRun) -> list[str]:
    head = ["dispatch", "calls", "IREE's tile", "best found", "ratio", "tiles", "refused", "tile"]
    return table(head, [_row(run, kernel) for kernel in run.kernels], 1)


def _row(run: TileRun, kernel: Kernel) -> list[str]:
    best, refused = kernel.best, sum(bool(outcome.message) for outcome in kernel.outcomes)
    chosen = run.chosen.get(kernel.dispatch.name)
    return [
        kernel.dispatch.name,
        str(kernel.dispatch.calls),
        duration(kernel.default),
        duration(best.nanoseconds) if best else "",
        f"{best.ratio:.3f}" if best else "",
        str(len(kernel.outcomes)),
        str(refused),
        lowering_config(chosen)[len("#iree_cpu.lowering_config<") : -1] if chosen else "IREE's",
    ]


def _plot(kernels: Sequence[Kernel], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(kernels) + 1.4), layout="constrained")
    for place, kernel in enumerate(kernels):
        ratios = [o.ratio for o in kernel.outcomes if np.isfinite(o.ratio)]
        axes.plot(ratios, [place] * len(ratios), "o", color="C0", alpha=0.5)
        if kernel.best is not None:
            axes.plot(kernel.best.ratio, place, "o", color="C1")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(kernels)), [kernel.dispatch.name for kernel in kernels], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("run time, as a multiple of IREE's own tile (orange: the fastest)")
    figure.savefig(path)
    pyplot.close(figure)
