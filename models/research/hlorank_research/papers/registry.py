"""Every architecture: those of the models that ship, and those of the papers."""

from hlorank_research.papers import (
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
from hlorank_training.models.architecture import Registry
from hlorank_training.models.registry import REGISTRY as SHIPPED

REGISTRY = Registry(
    (
        *SHIPPED.entries,
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
)
