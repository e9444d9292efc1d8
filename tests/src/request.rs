//! Messages as they are on the wire, for requests that the client library would not send.

use hlorank_graph::{Digest, TileBatch};
use hlorank_proto::v1::{
    ConfigBatch, DeleteMeasurementsRequest, Graph, ModelSelector, PackedTileConfigs,
    RankConfigsRequest, RankConfigsStart, RankConfigsStreamRequest, Task, config_batch::Configs,
    graph::Source, rank_configs_stream_request::Part,
};
use prost::bytes::Bytes;
use tonic::{
    Request,
    metadata::{AsciiMetadataKey, AsciiMetadataValue},
};

/// Returns a request to delete the measurements of a target, or those of one of its graphs.
pub fn deletion(target: &str, graph: Option<Digest>) -> DeleteMeasurementsRequest {
    DeleteMeasurementsRequest {
        target: target.to_owned(),
        graph_hash: graph.map_or_else(Bytes::new, |graph| graph.0.to_vec().into()),
        ..DeleteMeasurementsRequest::default()
    }
}

/// Returns a request for the whole ranking of some configurations, by the default model of their task and without
/// scores. [`RankRequestBuilder`] changes it.
pub fn rank_request(graph: Graph, configs: Configs) -> RankConfigsRequest {
    RankConfigsRequest {
        graph: Some(graph),
        batch: Some(config_batch(configs)),
        ..RankConfigsRequest::default()
    }
}

/// Sets the fields of a `RankConfigsRequest`.
pub trait RankRequestBuilder {
    /// Sets the configurations.
    fn with_configs(self, configs: Configs) -> Self;
    /// Sets the name of the model that scores.
    fn with_model(self, name: &str) -> Self;
    /// Asks for the scores in the order sent, too.
    fn with_scores(self) -> Self;
    /// Accepts a partial ranking.
    fn allowing_partial(self) -> Self;
}

impl RankRequestBuilder for RankConfigsRequest {
    fn with_configs(self, configs: Configs) -> Self {
        Self {
            batch: Some(config_batch(configs)),
            ..self
        }
    }

    fn with_model(self, name: &str) -> Self {
        Self {
            model: Some(model_named(name)),
            ..self
        }
    }

    fn with_scores(self) -> Self {
        Self {
            include_scores: true,
            ..self
        }
    }

    fn allowing_partial(self) -> Self {
        Self {
            allow_partial: true,
            ..self
        }
    }
}

/// Returns a batch of configurations.
pub fn config_batch(configs: Configs) -> ConfigBatch {
    ConfigBatch {
        configs: Some(configs),
    }
}

/// Returns a selector of whatever serves the model of this name.
pub fn model_named(name: &str) -> ModelSelector {
    ModelSelector {
        name: name.to_owned(),
        ..ModelSelector::default()
    }
}

/// Returns a graph whose task its configurations settle.
pub fn graph_of(source: Source) -> Graph {
    Graph {
        source: Some(source),
        ..Graph::default()
    }
}

/// Returns a serialized module as a graph.
pub fn graph_of_module(module: impl Into<Bytes>) -> Graph {
    graph_of(Source::HloModule(module.into()))
}

/// Returns HLO text as a graph.
pub fn graph_of_text(text: impl Into<String>) -> Graph {
    graph_of(Source::HloText(text.into()))
}

/// Returns a graph that was sent before.
pub fn graph_by_hash(hash: impl Into<Bytes>) -> Graph {
    graph_of(Source::GraphHash(hash.into()))
}

/// Returns the graph as a kernel, whose configurations are tiles.
pub fn kernel_graph(graph: Graph) -> Graph {
    Graph {
        task: Task::Tile.into(),
        ..graph
    }
}

/// Returns the first message of a stream about a graph.
pub fn stream_start(graph: Graph) -> RankConfigsStreamRequest {
    stream_start_with(RankConfigsStart {
        graph: Some(graph),
        ..RankConfigsStart::default()
    })
}

/// Returns the first message of a stream.
pub fn stream_start_with(start: RankConfigsStart) -> RankConfigsStreamRequest {
    RankConfigsStreamRequest {
        part: Some(Part::Start(start)),
    }
}

/// Returns a message of a stream with a batch.
pub fn stream_batch(configs: Configs) -> RankConfigsStreamRequest {
    RankConfigsStreamRequest {
        part: Some(Part::Batch(config_batch(configs))),
    }
}

/// Returns tiles in the packed form.
pub fn packed_tiles(tiles: &TileBatch) -> Configs {
    Configs::PackedTileConfigs(tiles.to_packed().expect("equal numbers of small bounds"))
}

/// Returns tiles with this number of dimensions, all but two of size 1, of which there are 64 different ones. A tile takes
/// 4 bytes a dimension.
pub fn repeated_tiles(count: usize, dimensions: usize) -> PackedTileConfigs {
    let bound = |config: usize| i32::try_from(config % 64 + 1).expect("at most 64");
    let bounds = |config| {
        [bound(config); 2]
            .into_iter()
            .chain(std::iter::repeat(1))
            .take(dimensions)
    };
    let bounds = (0..count).flat_map(bounds);
    PackedTileConfigs {
        config_count: u32::try_from(count).expect("a count of 32 bits"),
        output_bound_count: u32::try_from(dimensions).expect("a count of 32 bits"),
        bounds: bounds
            .flat_map(i32::to_le_bytes)
            .collect::<Vec<u8>>()
            .into(),
        ..PackedTileConfigs::default()
    }
}

/// Returns a request with these headers, whose values may be invalid.
pub fn with_headers<T>(message: T, headers: &[(&str, &str)]) -> Request<T> {
    let mut request = Request::new(message);
    for (name, value) in headers {
        let name: AsciiMetadataKey = name.parse().expect("the name of a header");
        let value = AsciiMetadataValue::try_from(value.as_bytes()).expect("no control characters");
        request.metadata_mut().append(name, value);
    }
    request
}
