"""What the configurations of every task have in common."""

from functools import cached_property
from typing import Any

from hlorank.messages import ConfigBatch, RankConfigsRequest


class Batch:
    """Configurations of one graph, packed once."""

    wire: tuple[str, Any]
    """Field name and message in ``ConfigBatch``: the shortest form."""

    @cached_property
    def serialized(self) -> bytes:
        """A serialized ``RankConfigsRequest`` with the configurations alone."""
        form, message = self.wire
        return RankConfigsRequest(batch=ConfigBatch(**{form: message})).SerializeToString()
