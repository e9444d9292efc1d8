"""The registry: every architecture by task and name."""

from hlorank_training.models.architectures import (
    graphsage_transformer,
    kaufman_presets,
    singh,
    tgraph_layouts,
    tgraph_tiles,
    tpugraphs_gst,
    tpugraphs_mlp,
    tpugraphs_res_model,
    tpugraphs_resgcn,
    tpugraphs_sage,
)
from hlorank_training.models.architectures.architecture import Architecture

DEFAULT = "graphsage-transformer-segment"
_ALL = (
    *graphsage_transformer.ARCHITECTURES,
    *tpugraphs_gst.ARCHITECTURES,
    *tpugraphs_res_model.ARCHITECTURES,
    *tgraph_layouts.ARCHITECTURES,
    *tpugraphs_sage.ARCHITECTURES,
    *tpugraphs_resgcn.ARCHITECTURES,
    *tpugraphs_mlp.ARCHITECTURES,
    *tgraph_tiles.ARCHITECTURES,
    *singh.ARCHITECTURES,
    *kaufman_presets.ARCHITECTURES,
)


def architectures(task: str) -> dict[str, Architecture]:
    """Returns the architectures for ``layout`` or ``tile`` by name."""
    return {entry.name: entry for entry in _ALL if entry.task == task}


def architecture(task: str, name: str) -> Architecture:
    """Returns one architecture; raises ``ValueError`` if it does not exist for the task."""
    known = architectures(task)
    if name not in known:
        raise ValueError(
            f"architecture '{name}' does not exist for task '{task}', expected: {', '.join(known)}"
        )
    return known[name]
