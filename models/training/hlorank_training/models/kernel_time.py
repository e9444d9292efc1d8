"""A model of the run time of one kernel, in seconds: GraphSAGE and a Transformer over its nodes.

The run time is a sum over the nodes, as it is on hardware: what a node computes, counted with
recomputation, times a cost that the network learns from the node and what is around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from hlorank_training.data.kernels import MeasuredKernel
from hlorank_training.models.graph_layers import (
    Attention,
    RootMeanSquareNorm,
    Sage,
    Standardise,
    absent,
    hidden_keys,
    look_up,
    neighbour_weights,
)
from hlorank_training.models.kernel_batch import KernelBatch, batches
from hlorank_training.models.kernel_work import AMOUNTS, KernelWork, Work
from hlorank_training.models.segment_model import FEATURES, OPCODES

_NANOSECONDS = 1e-9
_NODE_EXTRAS = 16
_CLIP = 5.0
"""Standardized amounts are clipped at this many deviations."""
_COSTS = (0.15, 0.025, 0.02)
"""Nanoseconds of an evaluation, a byte and a multiplication before training."""
CALL = 55.0
"""Nanoseconds of a kernel before training."""


@dataclass(frozen=True)
class KernelTimeSettings:
    """Sizes and parts of the model."""

    task: str = "fusion"
    hidden: int = 64
    opcode: int = 32
    """Width of the embedding of opcodes."""
    sage_layers: int = 3
    attention_layers: int = 1
    heads: int = 4
    dropout: float = 0.1


class KernelTimeEncoder(nn.Module):
    """Maps the five inputs of ``encoder.onnx`` to seconds, one embedding of width 1 per row."""

    def __init__(self, settings: KernelTimeSettings):
        super().__init__()
        hidden = settings.hidden
        self.kernel_work = KernelWork()
        self.standardise = Standardise(FEATURES)
        self.opcode = nn.Embedding(OPCODES, settings.opcode)
        self.input = nn.Linear(FEATURES + settings.opcode + _NODE_EXTRAS, hidden)
        self.dropout = nn.Dropout(settings.dropout)
        self.sage = nn.ModuleList(
            Sage(hidden, settings.dropout) for _ in range(settings.sage_layers)
        )
        self.norms = nn.ModuleList(RootMeanSquareNorm(hidden) for _ in self.sage)
        self.attention = nn.ModuleList(
            Attention(hidden, settings.heads, settings.dropout)
            for _ in range(settings.attention_layers)
        )
        self.register_buffer("amount_mean", torch.zeros(AMOUNTS))
        self.register_buffer("amount_scale", torch.ones(AMOUNTS))
        self.cost = network(hidden, hidden, settings.dropout, np.log(_COSTS).tolist())
        before_training = [0.0, float(np.log(CALL))]
        self.kernel = network(3 * hidden + AMOUNTS, hidden, settings.dropout, before_training)

    def fit(self, kernels: Sequence[MeasuredKernel]) -> None:
        """Computes the statistics of the training kernels, which scale the inputs."""
        rows = np.concatenate([kernel.features for kernel in kernels])
        self.standardise.fit(torch.from_numpy(rows))
        amounts = torch.cat([torch.log1p(self.work(one).amounts) for one in batches(kernels)])
        self.amount_mean.copy_(amounts.mean(0))
        self.amount_scale.copy_(1 / amounts.std(0).clamp(min=1e-3))

    def work(self, batch: KernelBatch) -> Work:
        """Returns the work of the kernels of a batch, which has nothing to train."""
        with torch.no_grad():
            return self.kernel_work(batch.opcode, batch.features, batch.operands, batch.mask)

    def forward(
        self, opcode: Tensor, features: Tensor, operands: Tensor, mask: Tensor, segment: Tensor
    ) -> Tensor:
        """Maps opcode i64 [S,N], features f32 [S,N,140], operands f32 [S,N,N], mask f32 [S,N] and
        segment i64 [B] to seconds f32 [B,1]."""
        edges = operands * mask.unsqueeze(-1) * mask.unsqueeze(-2)
        batch = KernelBatch(opcode.clamp(0, OPCODES - 1), features, edges, mask)
        logarithms = self.log_nanoseconds(batch, self.work(batch), segment)
        return (torch.exp(logarithms) * _NANOSECONDS).unsqueeze(-1)

    def log_nanoseconds(
        self, batch: KernelBatch, work: Work, segment: Tensor | None = None
    ) -> Tensor:
        """Returns the natural logarithm of nanoseconds of every kernel, or of every row of
        ``segment``: [B].

        What has one number per kernel is computed per row: the server pads rows to a multiple of
        four, without which ONNX Runtime rounds the last numbers of an array differently.
        """
        nodes = self.nodes(batch, work)
        costs = self.cost(nodes).clamp(-9.0, 5.0)
        real = batch.mask.unsqueeze(-1)
        share = work.work / work.work.sum(-1, keepdim=True).clamp(min=1)
        pooled = [
            (nodes * real).sum(1) / real.sum(1),
            (nodes + absent(real)).amax(1),
            (nodes * share.unsqueeze(-1)).sum(1),
        ]
        of_kernel = torch.cat(pooled, -1)
        amounts = torch.log1p(every_row(work.amounts, segment)) - self.amount_mean
        known = [
            every_row(of_kernel, segment),
            (amounts * self.amount_scale).clamp(-_CLIP, _CLIP),
        ]
        factor, call = self.kernel(torch.cat(known, -1)).unbind(-1)
        evaluation, byte, product = costs.exp().unbind(-1)
        times = work.work * evaluation + work.bytes * byte + work.products * product
        total = every_row((times * batch.mask).sum(-1), segment)
        return torch.log(total + call.clamp(-5.0, 8.0).exp()) + factor

    def nodes(self, batch: KernelBatch, work: Work) -> Tensor:
        """Returns what the network knows of every node: [S,N,H]."""
        edges = batch.operands
        mask = batch.mask
        elements = torch.log1p(work.elements)
        evaluations = torch.log1p(work.evaluations)
        extras = [
            elements / 5 - 2,
            evaluations / 5 - 2,
            torch.log1p(work.work) / 5 - 2,
            (evaluations - elements) / 2,
            torch.log1p(work.rows) / 5 - 2,
            torch.log((work.evaluations + 1) / (work.rows + 1)) / 3,
            torch.log(work.access.minor) / 3 - 1,
            torch.log1p(work.access.operand_minor) / 3 - 1,
            work.access.changes,
            work.walk.along,
            work.walk.across,
            work.walk.reduced_along,
            work.walk.reduced_across,
            work.walk.distance / 5,
            work.root,
            work.parameter,
        ]
        known = [self.standardise(batch.features), look_up(self.opcode.weight, batch.opcode)]
        given = torch.cat([*known, torch.stack(extras, -1)], -1)
        nodes = self.dropout(torch.relu(self.input(given)))
        shape = nodes.shape
        neighbours = neighbour_weights(edges)
        nodes = nodes.flatten(0, 1)
        for layer, norm in zip(self.sage, self.norms, strict=True):
            nodes = norm(layer(nodes, neighbours))
        hidden = hidden_keys(mask)
        for layer in self.attention:
            nodes = layer(nodes, hidden)
        return nodes.view(shape)


class Total(nn.Module):
    """The head: the sum of the kernels' seconds is the score."""

    def forward(self, sum: Tensor) -> Tensor:
        """Maps sums f32 [C,1] to scores f32 [C]."""
        return sum.squeeze(-1)


class KernelTimeModel(nn.Module):
    """Predicts seconds of kernels."""

    kind = "segment"
    architecture = "graphsage-transformer-kernel-time"
    embedding = 1

    def __init__(self, settings: KernelTimeSettings):
        super().__init__()
        self.settings = settings
        self.encoder = KernelTimeEncoder(settings)
        self.head = Total()

    def forward(self, batch: KernelBatch, work: Work) -> Tensor:
        """Returns the natural logarithm of nanoseconds of the kernels of a batch: [S]."""
        return self.encoder.log_nanoseconds(batch, work)

    def nanoseconds(self, kernels: Sequence[MeasuredKernel]) -> np.ndarray:
        """Returns the predicted nanoseconds of kernels: f64 [k]."""
        self.eval()
        predicted = np.zeros(len(kernels))
        with torch.no_grad():
            for batch in batches(kernels):
                logarithms = self(batch, self.encoder.work(batch))
                predicted[batch.numbers] = logarithms.double().exp().numpy()
        return predicted


def every_row(static: Tensor, segment: Tensor | None) -> Tensor:
    """Maps what every kernel has to what every row of ``segment`` has, if there are rows."""
    return static if segment is None else look_up(static, segment)


def network(inputs: int, hidden: int, dropout: float, bias: list[float]) -> nn.Sequential:
    """Returns a network whose outputs are close to ``bias`` before training."""
    last = nn.Linear(hidden, len(bias))
    with torch.no_grad():
        last.weight.mul_(0.2)
        last.bias.copy_(torch.tensor(bias))
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Dropout(dropout), last)
