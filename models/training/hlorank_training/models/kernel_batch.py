"""Packs kernels into the inputs of a model of their run time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from hlorank_training.data.batch import bucket_of
from hlorank_training.data.kernels import MeasuredKernel

KERNEL_INPUTS = ("opcode", "features", "operands", "mask", "segment")
_BLOCK_NODES = 4096


@dataclass(frozen=True)
class KernelBatch:
    """Kernels that are padded to one number of nodes."""

    opcode: Tensor
    """i64 [S,N]"""
    features: Tensor
    """f32 [S,N,140], raw"""
    operands: Tensor
    """f32 [S,N,N]: 1 where the row consumes the column"""
    mask: Tensor
    """f32 [S,N]: 1 for a real node"""
    numbers: np.ndarray = field(default_factory=partial(np.zeros, 0, np.int64))
    """i64 [S]: which of the kernels they are, if they are measured ones"""


def make_batch(kernels: Sequence[MeasuredKernel], numbers: np.ndarray) -> KernelBatch:
    """Packs the kernels of these numbers."""
    chosen = [kernels[number] for number in numbers]
    rows = len(chosen)
    nodes = max(bucket_of(len(kernel.opcode)) for kernel in chosen)
    opcode = np.zeros((rows, nodes), np.int64)
    features = np.zeros((rows, nodes, chosen[0].features.shape[1]), np.float32)
    operands = np.zeros((rows, nodes, nodes), np.float32)
    mask = np.zeros((rows, nodes), np.float32)
    for row, kernel in enumerate(chosen):
        size = len(kernel.opcode)
        opcode[row, :size] = kernel.opcode
        features[row, :size] = kernel.features
        mask[row, :size] = 1
        operands[row, kernel.edges[:, 0], kernel.edges[:, 1]] = 1
    arrays = (torch.from_numpy(array) for array in (opcode, features, operands, mask))
    return KernelBatch(*arrays, np.asarray(numbers))


def batches(kernels: Sequence[MeasuredKernel]) -> Iterator[KernelBatch]:
    """Packs all kernels, those of similar sizes together."""
    every = np.arange(len(kernels))
    yield from (make_batch(kernels, some) for some in blocks(kernels, every, _BLOCK_NODES))


def blocks(
    kernels: Sequence[MeasuredKernel], order: np.ndarray, nodes: int
) -> Iterator[np.ndarray]:
    """Yields numbers of kernels of one padded size, in order, with about ``nodes`` nodes."""
    waiting: dict[int, list[int]] = {}
    for number in order:
        size = bucket_of(len(kernels[number].opcode))
        queue = waiting.setdefault(size, [])
        queue.append(number)
        if len(queue) * size >= nodes:
            yield np.array(waiting.pop(size))
    yield from (np.array(queue) for queue in waiting.values())
