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
    inputs::{Described, GRAPHS, OUTPUTS},
    service::{Inference, read_version},
    tensor::Tensors,
};
use crate::{
    admission::Place,
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
        let inputs = Inputs::read(&request.inputs, request.raw_input_contents)?;
        let place = call.place.clone();
        let (graph, batch) = self.encode(inputs, &place).await?;
        let ranking = RankConfigsRequest {
            graph: Some(graph.into()),
            batch: Some(batch.into()),
            model: Some(model),
            include_scores: true,
            ..RankConfigsRequest::default()
        };
        let answer = self.cost_model.rank(ranking, call).await?;
        // The call already holds the answer, which the outputs are made of before it is dropped.
        let output_bytes = answer.ranking.len() * OUTPUT_BYTES;
        place.hold(output_bytes).map_err(CallError::from)?;
        Ok(response(request.id, answer))
    }

    /// Encodes inputs as the graph and the batch of a call of `RankConfigs`.
    async fn encode(
        &self,
        Inputs { graph, batch }: Inputs,
        place: &Place,
    ) -> Result<(Vec<u8>, Vec<u8>), ServiceError> {
        let bytes = graph.content.len() + batch.bytes_to_pack();
        place.hold(bytes).map_err(CallError::from)?;
        let limits = self.cost_model.bounds.limits;
        // What is encoded here is read within the limits of every call.
        let encode = move || Ok((graph.encode(), encode_batch(&batch, &limits)?));
        let (graph, batch) = self.cost_model.decoder.run(bytes, encode).await?;
        place.release(bytes.saturating_sub(graph.len() + batch.len()));
        Ok((graph, batch))
    }
}

/// The inputs of a call, all of which are known.
struct Inputs {
    graph: GraphInput,
    batch: Batch,
}

impl Inputs {
    fn read(described: &[Bytes], values: Vec<Bytes>) -> Result<Self, ServiceError> {
        let mut tensors = Tensors::read(described, values)?;
        let graph = take_graph(&mut tensors)?;
        let batch = Batch::take(&mut tensors)?;
        // An input that is not known is not ignored, because the client expects it to matter.
        tensors.check_rest()?;
        Ok(Self { graph, batch })
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
    // The numbers are those of the fields of `hlorank.v1.Graph`.
    let (field, input) = match (hash?, module?, text?) {
        (Some(hash), None, None) => (1, hash),
        (None, Some(module), None) => (2, module),
        (None, None, Some(text)) => (6, text),
        _ => {
            let hint = "the graph is one of graph_hash, hlo_module and hlo_text";
            return Err(ServiceError::missing("inputs", hint));
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

/// Describes an output of one dimension.
fn sized(output: &Described, size: usize) -> TensorMetadata {
    TensorMetadata {
        shape: vec![i64::try_from(size).unwrap_or(i64::MAX)],
        ..TensorMetadata::from(output)
    }
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
    let outputs = outputs.map(|(output, size)| sized(output, size));
    ModelInferResponse {
        model_name: model.name,
        model_version: model.version.to_string(),
        id,
        outputs: outputs.collect(),
        raw_output_contents: contents.into(),
    }
}
