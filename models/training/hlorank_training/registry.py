"""The architectures of layouts and tiles: of the models that ship, and of the papers."""

from hlorank_training.models import graphsage_transformer
from hlorank_training.models.architecture import Registry
from hlorank_training.papers import (
    kaufman,
    tgraph_layouts,
    tgraph_tiles,
    tpugraphs_gst,
    tpugraphs_tiles,
)

DEFAULT = "graphsage-transformer-segment"
REGISTRY = Registry(
    (
        *graphsage_transformer.ARCHITECTURES,
        *tpugraphs_gst.ARCHITECTURES,
        *tgraph_layouts.ARCHITECTURES,
        *tpugraphs_tiles.ARCHITECTURES,
        *tgraph_tiles.ARCHITECTURES,
        *kaufman.ARCHITECTURES,
    )
)
