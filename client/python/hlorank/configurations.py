"""The configurations of every task."""

from hlorank.config_features import ConfigFeatures
from hlorank.fusions import Fusions
from hlorank.layouts import Layouts
from hlorank.tiles import Tiles

Configurations = Layouts | Tiles | Fusions | ConfigFeatures
