"""Configurations that a server draws, since they are too many to list."""

from functools import cached_property

from hlorank.configurations.config_features import ConfigFeatures
from hlorank.wire.messages import (
    ConfigSpace,
    ParameterConfig,
    ParameterConfigs,
    SuggestConfigsRequest,
)


class DescribedConfigs:
    """The configurations of a space, ``Space.description``, for ``suggest``.

    ``pending`` are those that are being measured, at most 256. What a server draws comes with its
    suggestions, so none of it has a number among the candidates, and no digest names it.
    """

    digest = b""

    def __init__(self, space: ConfigSpace, pending: ConfigFeatures | None = None):
        self._space = space
        self._pending = pending

    def __len__(self) -> int:
        return 0

    @cached_property
    def serialized(self) -> bytes:
        """A serialized ``SuggestConfigsRequest`` with the space and what is pending alone."""
        rows = () if self._pending is None else self._pending.values()[:, 0, :].tolist()
        pending = ParameterConfigs(configs=[ParameterConfig(values=row) for row in rows])
        return SuggestConfigsRequest(space=self._space, pending_configs=pending).SerializeToString()
