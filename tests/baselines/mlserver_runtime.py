"""The same scoring as a custom runtime of MLServer."""

from pathlib import Path

import numpy as np
from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, RequestInput, ResponseOutput

from configurations import Configurations, layouts, tiles
from graphs import Scorer
from scoring import best


class RankingModel(MLModel):
    """Ranks packed configurations of graphs that are named by hash.

    Inputs are tensors of one BYTES element each: MLServer hands those on as they are, and turns a
    tensor of numbers into a Python list, number by number.
    """

    async def load(self) -> bool:
        """Loads models and graphs, as the extra parameters of the settings say."""
        extra = self.settings.parameters.extra
        registry, graphs = Path(extra["registry"]), Path(extra["graphs"])
        self._scorer = Scorer(registry, graphs, extra["mode"], extra["threads"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """The ranking of the best ``top_k``, and their scores."""
        inputs = {tensor.name: _bytes(tensor) for tensor in payload.inputs}
        scores = self._scorer.score(inputs["graph_hash"], _configurations(inputs))
        ranking = best(scores, int.from_bytes(inputs["top_k"], "little"))
        outputs = [
            _output("ranking", "UINT32", ranking),
            _output("ranking_scores", "FP32", scores[ranking]),
        ]
        return InferenceResponse(model_name=self.name, outputs=outputs)


def _bytes(tensor: RequestInput) -> bytes:
    return tensor.data[0]


def _configurations(inputs: dict[str, bytes]) -> Configurations:
    if "bounds" in inputs:
        kernel, output, inner = np.frombuffer(inputs["bound_counts"], "<u4").tolist()
        return tiles((kernel, output, inner), inputs["bounds"])
    sizes = np.frombuffer(inputs["table_sizes"], "<u4").astype(np.int64)
    entries = np.frombuffer(inputs["tables"], "<u4").astype(np.int64)
    return layouts(sizes, entries, inputs["indices"])


def _output(name: str, datatype: str, values: np.ndarray) -> ResponseOutput:
    return ResponseOutput(name=name, shape=[len(values)], datatype=datatype, data=values.tolist())
