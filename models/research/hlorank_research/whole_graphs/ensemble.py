"""The mean of the scores of several models of either kind."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hlorank_research.whole_graphs.model import WholeGraphModel
from hlorank_training.models.ensemble import (
    describe_ensemble,
    refuse_different_architectures,
    segment_ensemble,
)


def ensemble(members: Sequence[nn.Module]) -> nn.Module:
    """Returns one model; raises ``ValueError`` if the members are of different architectures."""
    if members[0].kind == "segment":
        return segment_ensemble(members)
    refuse_different_architectures(members)
    return members[0] if len(members) == 1 else WholeGraphEnsemble(members).eval()


class WholeGraphEnsemble(WholeGraphModel):
    """The members beside each other, on the same chunk."""

    def __init__(self, members: Sequence[nn.Module]):
        super().__init__()
        describe_ensemble(self, members)
        first = members[0]
        self.rule = first.rule
        self.batch_dependent = first.batch_dependent
        self.form = first.form
        self.members = nn.ModuleList(members)

    def forward(self, opcode, features, edges, configuration: tuple[Tensor, ...]) -> Tensor:
        """Maps the inputs of a member to scores f32 [C]."""
        scores = [member(opcode, features, edges, configuration) for member in self.members]
        return torch.stack(scores).mean(0)
