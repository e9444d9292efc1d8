//! `ModelInfer`: a graph and its configurations as tensors, ranked.

use bytes::Bytes;
use hlorank_proto::{
    inference::{ModelInferResponse, TensorMetadata, received::ModelInferRequest},
    received::RankConfigsRequest,
    v1::{ConfigBatch, ModelSelector, RankConfigsResponse},
};
use prost::{Message as _, encoding};

use super::{
    batch::Batch,
    inputs::{GRAPHS, OUTPUTS},
    service::{Inference, read_version},
    tensor::Tensors,
};
use crate::{
    call::{Call, CallError},
    service::ServiceError,
};

/// Number of bytes of the outputs for a configuration: a score and a number.
const OUTPUT_BYTES: usize = 8;

impl Inference {
    pub(super) async fn infer(
        &self,
        request: ModelInferRequest,
        call: Call,
    ) -> Result<ModelInferResponse, ServiceError> {
        let model = ModelSelector {
            name: request.model_name,
            version: read_version(&request.model_version)?,
            ..ModelSelector::default()
        };
        let mut inputs = Tensors::read(&request.inputs, request.raw_input_contents)?;
        let (field, source) = take_graph(&mut inputs)?;
        let batch = Batch::take(&mut inputs)?;
        inputs.check_rest()?;
        let place = call.place.clone();
        let bytes = source.len() + batch.bytes_to_pack();
        place.hold(bytes).map_err(CallError::from)?;
        let limits = self.cost_model.bounds.limits;
        // What is encoded here is read within the limits of every call.
        let encode = move || {
            let mut graph = Vec::new();
            // Texts and bytes are encoded alike.
            encoding::bytes::encode(field, &source, &mut graph);
            let configs = batch.pack(&limits).map_err(|source| {
                let field = "inputs";
                CallError::Configuration { field, source }
            })?;
            let batch = ConfigBatch {
                configs: Some(configs),
            };
            Ok((graph, batch.encode_to_vec()))
        };
        let (graph, batch) = self.cost_model.decoder.run(bytes, encode).await?;
        place.release(bytes.saturating_sub(graph.len() + batch.len()));
        let ranking = RankConfigsRequest {
            graph: Some(graph.into()),
            batch: Some(batch.into()),
            model: Some(model),
            include_scores: true,
            ..RankConfigsRequest::default()
        };
        let answer = self.cost_model.rank(ranking, call).await?;
        let bytes = answer.ranking.len() * OUTPUT_BYTES;
        place.hold(bytes).map_err(CallError::from)?;
        Ok(response(request.id, answer))
    }
}

/// Takes the input that is the graph, and returns its field of `hlorank.v1.Graph`.
fn take_graph(inputs: &mut Tensors) -> Result<(u32, Bytes), ServiceError> {
    let [hash, module, text] = GRAPHS.map(|described| inputs.take(&described));
    match (hash?, module?, text?) {
        (Some(hash), None, None) => Ok((1, hash.values)),
        (None, Some(module), None) => Ok((2, module.values)),
        (None, None, Some(text)) => Ok((6, text.values)),
        _ => Err(ServiceError::Missing {
            field: "inputs",
            hint: "the graph is one of graph_hash, hlo_module and hlo_text",
        }),
    }
}

/// Writes the outputs in the order of [`OUTPUTS`].
fn response(id: String, answer: RankConfigsResponse) -> ModelInferResponse {
    let model = answer.model.unwrap_or_default();
    let scores = answer.scores.iter().flat_map(|score| score.to_le_bytes());
    let ranking = answer
        .ranking
        .iter()
        .flat_map(|config| config.to_le_bytes());
    let contents: [Bytes; 3] = [scores.collect(), ranking.collect(), answer.graph_hash];
    let sizes = [answer.scores.len(), answer.ranking.len(), contents[2].len()];
    let outputs = OUTPUTS
        .iter()
        .zip(sizes)
        .map(|(output, size)| TensorMetadata {
            shape: vec![i64::try_from(size).unwrap_or(i64::MAX)],
            ..TensorMetadata::from(output)
        });
    ModelInferResponse {
        model_name: model.name,
        model_version: model.version.to_string(),
        id,
        outputs: outputs.collect(),
        raw_output_contents: contents.into(),
    }
}
