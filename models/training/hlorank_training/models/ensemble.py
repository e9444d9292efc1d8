"""The mean of the scores of several models, such as seeds or folds, as one model.

TGraph (2024) averages the scores of folds as they are.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hlorank_training.models.segment_batch import SegmentBatch
from hlorank_training.models.segment_model import SegmentModel, SplitEncoder


def segment_ensemble(members: Sequence[SegmentModel]) -> SegmentModel:
    """Returns one model; raises ``ValueError`` if the members are of different architectures."""
    refuse_different_architectures(members)
    return members[0] if len(members) == 1 else SegmentEnsemble(members).eval()


def refuse_different_architectures(members: Sequence[nn.Module]) -> None:
    """Raises ``ValueError`` if the members of an ensemble are of different architectures."""
    if len({member.architecture for member in members}) > 1:
        raise ValueError("the members of an ensemble have one architecture")


class SegmentEnsemble(SegmentModel):
    """Encoders side by side, and the mean of the heads."""

    def __init__(self, members: Sequence[SegmentModel]):
        super().__init__()
        describe_ensemble(self, members)
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
        embeddings = []
        start = 0
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


def describe_ensemble(model: nn.Module, members: Sequence[nn.Module]) -> None:
    """Gives an ensemble the settings of its members, and an architecture with their number."""
    model.settings = members[0].settings
    model.architecture = f"{members[0].architecture}-ensemble-{len(members)}"
