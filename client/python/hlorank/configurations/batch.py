"""What the configurations of every task have in common."""

from functools import cached_property

from hlorank.wire.messages import ConfigBatch, RankConfigsRequest


class Batch:
    """Configurations of one graph, packed once."""

    digest = b""
    """By which a server knows them, once it has said so; empty if they have to be sent."""

    def __len__(self) -> int:
        raise NotImplementedError

    @cached_property
    def wire(self) -> ConfigBatch:
        """The message in the shortest form."""
        raise NotImplementedError

    @cached_property
    def serialized(self) -> bytes:
        """A serialized ``RankConfigsRequest`` with the configurations alone.

        Configurations are most of a request, and several calls send the same ones, so they are
        serialized once and appended to the rest: concatenated messages are parsed as their merger.
        """
        return RankConfigsRequest(batch=self.wire).SerializeToString()
