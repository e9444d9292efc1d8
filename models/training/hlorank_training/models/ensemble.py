"""The mean of the scores of several models, such as seeds or folds, as one model.

TGraph (2024) averages the scores of folds as they are.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hlorank_training.models.segment_batch import SegmentBatch
from hlorank_training.models.segment_model import SegmentModel, SplitEncoder
from hlorank_training.models.whole_graph_model import WholeGraphModel


def ensemble(members: Sequence[nn.Module]) -> nn.Module:
    """Returns one model; raises ``ValueError`` if the members are of different architectures."""
    first = members[0]
    if {member.architecture for member in members} != {first.architecture}:
        raise ValueError("the members of an ensemble have one architecture")
    if len(members) == 1:
        return first
    combined = SegmentEnsemble if first.kind == "segment" else WholeGraphEnsemble
    return combined(members).eval()


class SegmentEnsemble(SegmentModel):
    """Encoders side by side, and the mean of the heads."""

    def __init__(self, members: Sequence[SegmentModel]):
        super().__init__()
        _describe(self, members)
        self.embedding = sum(member.embedding for member in members)
        encoders = [member.encoder for member in members]
        is_split = all(isinstance(encoder, SplitEncoder) for encoder in encoders)
        self.encoder = (_SplitEncoders if is_split else _Encoders)(encoders)
        self.head = _Heads(members)


class _Encoders(nn.Module):
    def __init__(self, encoders: Sequence[nn.Module]):
        super().__init__()
        self.encoders = nn.ModuleList(encoders)

    def forward(self, opcode, features, operands, mask, segment, config) -> Tensor:
        inputs = opcode, features, operands, mask, segment, config
        return torch.cat([encoder(*inputs) for encoder in self.encoders], -1)


class _SplitEncoders(SplitEncoder):
    def __init__(self, encoders: Sequence[SplitEncoder]):
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        numbered = enumerate(encoders)
        self.tensors = tuple(f"{name}_{i}" for i, one in numbered for name in one.tensors)
        self.counts = [len(encoder.tensors) for encoder in encoders]

    def of_segments(self, batch: SegmentBatch) -> tuple[Tensor, ...]:
        return tuple(t for encoder in self.encoders for t in encoder.of_segments(batch))

    def of_rows(self, tensors: tuple[Tensor, ...], *configuration: Tensor) -> Tensor:
        embeddings, start = [], 0
        for encoder, count in zip(self.encoders, self.counts, strict=True):
            embeddings.append(encoder.of_rows(tensors[start : start + count], *configuration))
            start += count
        return torch.cat(embeddings, -1)

    def configuration_inputs(self, config: Tensor) -> tuple[Tensor, ...]:
        return self.encoders[0].configuration_inputs(config)


class _Heads(nn.Module):
    def __init__(self, members: Sequence[SegmentModel]):
        super().__init__()
        self.heads = nn.ModuleList(member.head for member in members)
        self.widths = [member.embedding for member in members]

    def forward(self, sum: Tensor) -> Tensor:
        parts = zip(self.heads, sum.split(self.widths, -1), strict=True)
        return torch.stack([head(part) for head, part in parts]).mean(0)


class WholeGraphEnsemble(WholeGraphModel):
    """The members beside each other, on the same chunk."""

    def __init__(self, members: Sequence[nn.Module]):
        super().__init__()
        _describe(self, members)
        first = members[0]
        self.rule, self.batch_dependent, self.form = first.rule, first.batch_dependent, first.form
        self.members = nn.ModuleList(members)

    def forward(self, opcode, features, edges, configuration: tuple[Tensor, ...]) -> Tensor:
        """Maps the inputs of a member to scores f32 [C]."""
        scores = [member(opcode, features, edges, configuration) for member in self.members]
        return torch.stack(scores).mean(0)


def _describe(model: nn.Module, members: Sequence[nn.Module]) -> None:
    model.settings = members[0].settings
    model.architecture = f"{members[0].architecture}-ensemble-{len(members)}"
