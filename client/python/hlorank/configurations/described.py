"""Configurations that a server draws, since they are too many to list."""

from dataclasses import dataclass

from hlorank.configurations.config_features import ConfigFeatures
from hlorank.wire.messages import ConfigSpace, ParameterConfig, ParameterConfigs


@dataclass(frozen=True)
class DescribedConfigs:
    """The configurations of a space, ``Space.description``, for ``suggest``."""

    space: ConfigSpace
    pending: ConfigFeatures | None = None
    """Those that are being measured, at most 256."""

    @property
    def pending_message(self) -> ParameterConfigs:
        """What is sent of those that are being measured."""
        rows = () if self.pending is None else self.pending.values()[:, 0, :].tolist()
        return ParameterConfigs(configs=[ParameterConfig(values=row) for row in rows])
