"""The configurations of every task, packed once, and what was measured of them."""

from hlorank.configurations.config_features import ConfigFeatures
from hlorank.configurations.fusions import Fusions
from hlorank.configurations.layouts import Layouts
from hlorank.configurations.tiles import Tiles

__all__ = ["ConfigFeatures", "Configurations", "Fusions", "Layouts", "Tiles"]

Configurations = Layouts | Tiles | Fusions | ConfigFeatures
"""The configurations of one graph."""
