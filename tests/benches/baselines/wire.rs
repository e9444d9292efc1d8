//! Requests in both protocols, and the scores of their answers.

use hlorank_tests::prelude::*;
use tonic::codegen::http::uri::PathAndQuery;

use crate::v2::{ModelInferRequest, ModelInferResponse, Tensor};

/// The name of the model in `MLServer`.
pub(crate) const MODEL: &str = "ranking";

/// Protocol of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// `hlorank.v1.CostModelService/RankConfigs`.
    Hlorank,
    /// `inference.GRPCInferenceService/ModelInfer`.
    V2,
}

impl Wire {
    pub(crate) fn path(self) -> PathAndQuery {
        PathAndQuery::from_static(match self {
            Self::Hlorank => "/hlorank.v1.CostModelService/RankConfigs",
            Self::V2 => "/inference.GRPCInferenceService/ModelInfer",
        })
    }

    /// Returns the body of a request for the `top_k` (0: all) best of packed configurations.
    pub(crate) fn body(self, graph: Digest, configs: Configs, top_k: u32) -> Bytes {
        let graph_hash = Bytes::from(graph.0.to_vec());
        match self {
            Self::Hlorank => {
                // The models that `baselines/graphs.py` loads.
                let model = match configs {
                    Configs::PackedLayoutConfigs(_) => "layout-xla-cpu",
                    _ => TILE_MODEL,
                };
                RankConfigsRequest {
                    top_k,
                    ..rank_request(graph_by_hash(graph_hash), configs).with_model(model)
                }
                .encode_to_vec()
            }
            Self::V2 => {
                let mut inputs = vec![
                    Tensor::of_bytes("graph_hash", graph_hash),
                    Tensor::of_bytes("top_k", top_k.to_le_bytes().to_vec()),
                ];
                inputs.extend(match configs {
                    Configs::PackedLayoutConfigs(packed) => layout_tensors(&packed),
                    Configs::PackedTileConfigs(packed) => tile_tensors(&packed),
                    other => panic!("{other:?} is not packed"),
                });
                ModelInferRequest {
                    model_name: MODEL.to_owned(),
                    inputs,
                }
                .encode_to_vec()
            }
        }
        .into()
    }

    /// Returns the score of every configuration from the answer to a request for all.
    pub(crate) fn scores(self, answer: Bytes) -> Vec<f32> {
        let (ranking, ranking_scores) = match self {
            Self::Hlorank => {
                let answer = RankConfigsResponse::decode(answer).expect("an answer of hlorank.v1");
                (answer.ranking, answer.ranking_scores)
            }
            Self::V2 => {
                let answer =
                    ModelInferResponse::decode(answer).expect("an answer of the V2 protocol");
                let mut contents = answer
                    .outputs
                    .into_iter()
                    .map(|tensor| tensor.contents.unwrap_or_default());
                let mut next = || contents.next().expect("two outputs");
                (next().numbers, next().floats)
            }
        };
        let mut scores = vec![f32::NAN; ranking.len()];
        ranking
            .iter()
            .zip(ranking_scores)
            .for_each(|(&config, score)| scores[config as usize] = score);
        scores
    }
}

fn layout_tensors(packed: &PackedLayoutConfigs) -> Vec<Tensor> {
    let sizes = packed
        .tables
        .iter()
        .map(|table| u32::try_from(table.entries.len() / 3).expect("a small table"));
    let entries = packed
        .tables
        .iter()
        .flat_map(|table| &table.entries)
        .copied();
    vec![
        Tensor::of_bytes("table_sizes", little_endian(sizes)),
        Tensor::of_bytes("tables", little_endian(entries)),
        Tensor::of_bytes("indices", packed.indices.clone()),
    ]
}

fn tile_tensors(packed: &PackedTileConfigs) -> Vec<Tensor> {
    let counts = [
        packed.kernel_bound_count,
        packed.output_bound_count,
        packed.input_bound_count,
    ];
    vec![
        Tensor::of_bytes("bound_counts", little_endian(counts)),
        Tensor::of_bytes("bounds", packed.bounds.clone()),
    ]
}

fn little_endian(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}
