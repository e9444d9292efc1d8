"""Kaufman 2021's reductions of the nodes of a kernel, in the model of the run times of kernels.

They predict the logarithm of the time; all but ``nodes`` see the kernel's amounts of work.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hlorank_research.papers.kaufman_reductions import LastState, TransformerSum
from hlorank_training.models.kernel_batch import KernelBatch
from hlorank_training.models.kernel_time import (
    CALL,
    KernelTimeEncoder,
    KernelTimeModel,
    KernelTimeSettings,
    every_row,
    network,
)
from hlorank_training.models.kernel_work import Work

_LOG_NANOSECONDS = 10.0
"""Logarithm of nanoseconds of a kernel before training, if nothing else is known."""
REDUCTIONS = ("columns", "nodes", "lstm", "transformer")


@dataclass(frozen=True)
class ReducedSettings(KernelTimeSettings):
    """Sizes of the model, and how it reduces nodes."""

    reduction: str = "columns"
    """``nodes``: a sum over nodes. The others are a network on mean and maximum over the nodes
    (``columns``; here also on the mean weighted by work), on the last state of an LSTM (``lstm``)
    or on the sum of a Transformer layer (``transformer``)."""


class ReducedEncoder(KernelTimeEncoder):
    """Maps the inputs of ``encoder.onnx`` to seconds by one of Kaufman's reductions."""

    def __init__(self, settings: ReducedSettings):
        super().__init__(settings)
        hidden = settings.hidden
        self.reduction = settings.reduction
        self.cost = network(hidden, hidden, settings.dropout, [0.0] * 3)
        self.pool = _pool(settings)
        if self.pool:
            self.kernel = self.kernel_network(self.pool.width, settings)

    def log_nanoseconds(
        self, batch: KernelBatch, work: Work, segment: Tensor | None = None
    ) -> Tensor:
        """Returns the natural logarithm of nanoseconds of every kernel or row: [B]."""
        nodes = self.nodes(batch, work)
        if self.reduction == "nodes":
            total = (self.costs(nodes)[..., 0] * batch.mask).sum(-1)
            return every_row(total, segment) + _LOG_NANOSECONDS
        factor, call = self.of_kernel(self.pooled(nodes, batch.mask, work), work, segment)
        return factor + call - float(np.log(CALL)) + _LOG_NANOSECONDS

    def pooled(self, nodes: Tensor, mask: Tensor, work: Work) -> Tensor:
        """Reduces what is known of the nodes [S,N,H] to one vector per kernel."""
        return self.pool(nodes, mask) if self.pool else super().pooled(nodes, mask, work)


class ReducedKernelTimeModel(KernelTimeModel):
    """Predicts seconds of kernels by one of Kaufman's reductions."""

    encoder_of = ReducedEncoder

    def __init__(self, settings: ReducedSettings):
        if settings.reduction not in REDUCTIONS:
            raise ValueError(f"reduction '{settings.reduction}', expected {', '.join(REDUCTIONS)}")
        super().__init__(settings)


def _pool(settings: ReducedSettings) -> torch.nn.Module | None:
    match settings.reduction:
        case "lstm":
            return LastState(settings.hidden)
        case "transformer":
            return TransformerSum(settings.hidden, layers=1)
    return None
