"""``hlorank.v1.CostModelService/RankConfigs`` in Python: grpcio, numpy, ONNX Runtime.

Prints ``serving PORT`` once it accepts calls.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
from hlorank.v1 import configuration_pb2, cost_model_service_pb2, cost_model_service_pb2_grpc

from configurations import Configurations, layouts, tiles
from graphs import Scorer
from scoring import best

MAX_MESSAGE_BYTES = 64 << 20


class CostModelService(cost_model_service_pb2_grpc.CostModelServiceServicer):
    """Ranks packed configurations of graphs that are named by hash."""

    def __init__(self, scorer: Scorer):
        self._scorer = scorer

    def RankConfigs(
        self, request: cost_model_service_pb2.RankConfigsRequest, context: grpc.ServicerContext
    ) -> cost_model_service_pb2.RankConfigsResponse:
        """Scores, and the ranking of the best ``top_k``."""
        try:
            scores = self._scorer.score(request.graph.graph_hash, _configurations(request))
        except KeyError:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the graph is not known")
        ranking = best(scores, request.top_k)
        return cost_model_service_pb2.RankConfigsResponse(
            ranking=ranking.tolist(),
            ranking_scores=scores[ranking].tolist(),
            graph_hash=request.graph.graph_hash,
        )


def _configurations(request: cost_model_service_pb2.RankConfigsRequest) -> Configurations:
    batch = request.batch
    if batch.WhichOneof("configs") == "packed_tile_configs":
        return _tiles(batch.packed_tile_configs)
    return _layouts(batch.packed_layout_configs)


def _layouts(packed: configuration_pb2.PackedLayoutConfigs) -> Configurations:
    tables = [np.array(table.entries, np.int64) for table in packed.tables]
    sizes = np.array([len(table) // 3 for table in tables])
    return layouts(sizes, np.concatenate(tables), packed.indices)


def _tiles(packed: configuration_pb2.PackedTileConfigs) -> Configurations:
    counts = (packed.kernel_bound_count, packed.output_bound_count, packed.input_bound_count)
    return tiles(counts, packed.bounds)


def main() -> None:
    """Serves until it is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--registry", type=Path, required=True)
    parser.add_argument("--graphs", type=Path, required=True)
    parser.add_argument("--mode", choices=("plain", "deduplicated"), required=True)
    parser.add_argument("--calls", type=int, default=2, help="calls that are worked on at once")
    parser.add_argument("--threads", type=int, default=1, help="threads of one ONNX Runtime call")
    arguments = parser.parse_args()
    options = [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ]
    server = grpc.server(ThreadPoolExecutor(arguments.calls), options=options)
    scorer = Scorer(arguments.registry, arguments.graphs, arguments.mode, arguments.threads)
    service = CostModelService(scorer)
    cost_model_service_pb2_grpc.add_CostModelServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"serving {port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
