"""The architectures of the models that ship."""

from hlorank_training.models.architecture import Registry
from hlorank_training.models.graphsage_transformer import ARCHITECTURES

DEFAULT = "graphsage-transformer-segment"
REGISTRY = Registry(ARCHITECTURES)
