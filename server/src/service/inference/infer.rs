//! `ModelInfer`: a graph and its configurations as tensors, ranked.

use bytes::Bytes;
use hlorank_graph::Limits;
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
        let graph = take_graph(&mut inputs)?;
        let batch = Batch::take(&mut inputs)?;
        inputs.check_rest()?;
        let place = call.place.clone();
        let bytes = graph.content.len() + batch.bytes_to_pack();
        place.hold(bytes).map_err(CallError::from)?;
        let limits = self.cost_model.bounds.limits;
        // What is encoded here is read within the limits of every call.
        let encode = move || Ok((graph.encode(), encode_batch(&batch, &limits)?));
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
        let output_bytes = answer.ranking.len() * OUTPUT_BYTES;
        place.hold(output_bytes).map_err(CallError::from)?;
        Ok(response(request.id, answer))
    }
}

/// The input that is the graph.
struct GraphInput {
    /// Number of its field of `hlorank.v1.Graph`.
    field: u32,
    content: Bytes,
}

impl GraphInput {
    /// Encodes a `hlorank.v1.Graph`.
    fn encode(&self) -> Vec<u8> {
        let mut graph = Vec::new();
        // Texts and bytes are encoded alike.
        encoding::bytes::encode(self.field, &self.content, &mut graph);
        graph
    }
}

/// Takes the input that is the graph.
fn take_graph(inputs: &mut Tensors) -> Result<GraphInput, ServiceError> {
    let [hash, module, text] = GRAPHS.map(|described| inputs.take(&described));
    let (field, input) = match (hash?, module?, text?) {
        (Some(hash), None, None) => (1, hash),
        (None, Some(module), None) => (2, module),
        (None, None, Some(text)) => (6, text),
        _ => {
            return Err(ServiceError::Missing {
                field: "inputs",
                hint: "the graph is one of graph_hash, hlo_module and hlo_text",
            });
        }
    };
    Ok(GraphInput {
        field,
        content: input.values,
    })
}

fn encode_batch(batch: &Batch, limits: &Limits) -> Result<Vec<u8>, CallError> {
    let configs = batch.pack(limits);
    let configs = configs.map_err(|source| CallError::Configuration {
        field: "inputs",
        source,
    })?;
    let batch = ConfigBatch {
        configs: Some(configs),
    };
    Ok(batch.encode_to_vec())
}

/// Writes the outputs in the order of [`OUTPUTS`].
fn response(id: String, answer: RankConfigsResponse) -> ModelInferResponse {
    let model = answer.model.unwrap_or_default();
    let scores = answer.scores.iter().flat_map(|score| score.to_le_bytes());
    let ranking = answer.ranking.iter();
    let ranking = ranking.flat_map(|config| config.to_le_bytes());
    let contents: [Bytes; 3] = [scores.collect(), ranking.collect(), answer.graph_hash];
    let sizes = [answer.scores.len(), answer.ranking.len(), contents[2].len()];
    let outputs = OUTPUTS.iter().zip(sizes);
    let outputs = outputs.map(|(output, size)| TensorMetadata {
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
