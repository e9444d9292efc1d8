"""The cost model of Halide's Adams2019 autoscheduler, as it ships and trained again."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from hlorank_training.data.feature_graphs import FeatureGraph
from hlorank_training.measuring.halide.features import CONFIG_FEATURES
from hlorank_training.measuring.halide.weights import shipped_weights

_FLAGS = 7
"""First columns of the nodes, which the cost model does not read."""
_CACHE_LINES = 4096.0
_NANO = 1e-9
_LEARNING_RATE = 1e-3
_NEGATIVE = 1e-5


class HalideCostModel(nn.Module):
    """27 terms of a stage's work, each times a coefficient that a small network gives."""

    def __init__(self, cores: int = 1):
        super().__init__()
        self._cores = cores
        arrays = (torch.from_numpy(array.copy()) for array in shipped_weights())
        self.weights = nn.ParameterList(nn.Parameter(array) for array in arrays)

    def forward(self, nodes: Tensor, configs: Tensor) -> tuple[Tensor, Tensor]:
        """Maps nodes [n, 287] and configs [c, n, 39] to milliseconds [c], and to the coefficients
        [c, n, 32] before they are made positive."""
        first, first_bias, second, second_bias, joined, bias = self.weights
        histogram = nodes[:, _FLAGS:].unflatten(1, (40, 7))
        static = torch.einsum("kxy,nxy->nk", torch.sigmoid(first), histogram) + first_bias
        dynamic = torch.relu(torch.log1p(configs) @ second.T + second_bias)
        coefficients = static @ joined[:, :8].T + dynamic @ joined[:, 8:].T + bias
        known = dict(zip(CONFIG_FEATURES, configs.unbind(-1), strict=True))
        cost = _cost(known, torch.relu(coefficients), self._cores)
        return cost.sum(-1) * _NANO, coefficients

    def scores(self, graph: FeatureGraph) -> np.ndarray:
        """Returns the predicted milliseconds of a graph's configurations: f64 [c]."""
        with torch.no_grad():
            milliseconds, _ = self(*_tensors(graph))
        return milliseconds.double().numpy()


def trained_again(graphs: Sequence[FeatureGraph], epochs: int) -> HalideCostModel:
    """Trains from the shipped weights on the squared error of relative throughput, as Halide's
    ``retrain_cost_model`` does."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = HalideCostModel()
    random = np.random.default_rng(1)
    optimizer = torch.optim.Adam(model.parameters(), _LEARNING_RATE)
    for _ in tqdm(range(epochs), desc="Halide's cost model"):
        for number in random.permutation(len(graphs)):
            graph = graphs[number]
            milliseconds, coefficients = model(*_tensors(graph))
            measured = torch.from_numpy(graph.nanoseconds / 1e6).float()
            best = measured.min()
            errors = best / milliseconds.clamp(min=1e-10) - best / measured
            negative = torch.relu(-coefficients).sum(1).mean()
            loss = (errors**2).mean() + _NEGATIVE * negative
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return model.eval()


def _tensors(graph: FeatureGraph) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(graph.node_features), torch.from_numpy(graph.config_features)


def _cost(known: Mapping[str, Tensor], coefficients: Tensor, cores: int) -> Tensor:
    """Returns the cost of every stage in nanoseconds: [c, n]."""
    c = coefficients.unbind(-1)
    vectors = known["num_vectors"]
    scalars = known["num_scalars"]
    inner = known["inner_parallelism"]
    outer = known["outer_parallelism"]
    tasks = (inner * outer).clamp(min=1)
    innermost = known["innermost_bytes_at_task"].clamp(min=1)
    is_parallel = inner > 1

    in_vectors = known["vector_size"] * vectors
    compute = torch.where(
        known["inlined_calls"] == 0,
        in_vectors * c[0] + scalars * c[1],
        in_vectors * c[2] + scalars * c[3],
    )
    compute = compute * torch.ceil(tasks / cores) / (tasks / cores).clamp(min=1)
    load = (
        known["num_realizations"]
        * (
            known["unique_lines_read_per_realization"] * c[5]
            + known["unique_bytes_read_per_realization"] * c[6]
        )
        + vectors * known["scalar_loads_per_vector"] * c[7]
        + scalars * known["scalar_loads_per_scalar"] * c[8]
        + vectors * known["vector_loads_per_vector"] * c[9]
        + known["unique_bytes_read_per_vector"] * (scalars * c[10] + vectors * c[11])
        + known["unique_lines_read_per_vector"] * (scalars * c[12] + vectors * c[13])
        + tasks
        * (
            known["unique_bytes_read_per_task"] * c[14]
            + known["unique_lines_read_per_task"] * c[15]
        )
    )
    is_output = torch.arange(vectors.shape[-1]) == 0
    per_line = torch.where(is_parallel, c[16], torch.where(is_output, c[17], c[18]))
    per_byte = torch.where(is_parallel, c[19], torch.where(is_output, c[20], c[21]))
    lines = inner * known["bytes_at_task"] / innermost
    stored = lines * per_line + known["bytes_at_realization"] * per_byte
    store = known["num_realizations"] * stored
    store = store + torch.where(is_parallel, c[22] * (vectors + scalars) / innermost, 0.0)
    shared = torch.minimum(inner, _CACHE_LINES / innermost)
    store = store + known["bytes_at_production"] * shared * inner * outer * c[23]
    allocation = c[24] * known["num_realizations"]
    per_task = torch.where(is_parallel, c[25], 0.0) + (inner - 1) * c[26]
    start = known["num_productions"] * per_task
    return compute + 2 * store + load + allocation + start + known["working_set"] * c[27]
