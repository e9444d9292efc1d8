//! A server, and calls of it with headers of their own.

use std::process::Command;

use hlorank_proto::v1::{
    ConfigBatch, Graph, PackedTileConfigs, PutGraphRequest, RankConfigsRequest, RankConfigsStart,
    RankConfigsStreamRequest, Task, config_batch, cost_model_service_client::CostModelServiceClient,
    graph::Source, model_service_client::ModelServiceClient, rank_configs_request::Configs,
    rank_configs_stream_request::Part,
};
use hlorank_tests::{ServerProcess, grid_tiles, onnxruntime};
use serde_json::Value;
use tonic::{
    Request,
    metadata::{AsciiMetadataKey, AsciiMetadataValue},
    transport::Channel,
};

/// A kernel of two nodes.
pub(crate) const KERNEL: &str = "HloModule kernel\n\nENTRY %entry {\n  %input = f32[16,8] parameter(0)\n  \
                                 ROOT %result = f32[16,8] negate(%input)\n}\n";

pub(crate) const MODEL: &str = "tile-xla-cpu";

/// This program with these flags.
pub(crate) fn program(flags: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_hlorank-server"));
    program.args(flags).env("HLORANK_ONNXRUNTIME", onnxruntime());
    program
}

pub(crate) fn start(flags: &[&str]) -> ServerProcess {
    ServerProcess::run(program(flags))
}

pub(crate) async fn channel(server: &ServerProcess) -> Channel {
    Channel::from_shared(server.endpoint.clone()).unwrap().connect().await.unwrap()
}

pub(crate) async fn cost_model(server: &ServerProcess) -> CostModelServiceClient<Channel> {
    CostModelServiceClient::new(channel(server).await)
}

pub(crate) async fn models(server: &ServerProcess) -> ModelServiceClient<Channel> {
    ModelServiceClient::new(channel(server).await)
}

/// A request with these headers.
pub(crate) fn with<T>(message: T, headers: &[(&str, &str)]) -> Request<T> {
    let mut request = Request::new(message);
    for (name, value) in headers {
        let name: AsciiMetadataKey = name.parse().unwrap();
        // As bytes, since what a client may not send is sent, too.
        request.metadata_mut().append(name, AsciiMetadataValue::try_from(value.as_bytes()).unwrap());
    }
    request
}

pub(crate) fn by_text(text: &str) -> Graph {
    Graph { source: Some(Source::HloText(text.to_owned())), task: Task::Tile.into(), ..Graph::default() }
}

/// Ranks tiles of a kernel.
pub(crate) fn ranking(text: &str, tiles: i64) -> RankConfigsRequest {
    let configs = Some(Configs::PackedTileConfigs(packed(tiles)));
    RankConfigsRequest { graph: Some(by_text(text)), configs, ..RankConfigsRequest::default() }
}

pub(crate) fn putting(text: &str) -> PutGraphRequest {
    PutGraphRequest { graph: Some(by_text(text)) }
}

/// A graph, then batches of tiles.
pub(crate) fn streamed(text: &str, batches: &[i64]) -> Vec<RankConfigsStreamRequest> {
    let start = RankConfigsStart { graph: Some(by_text(text)), ..RankConfigsStart::default() };
    let batches = batches.iter().map(|&tiles| {
        let configs = config_batch::Configs::PackedTileConfigs(packed(tiles));
        Part::Batch(ConfigBatch { configs: Some(configs) })
    });
    let parts = [Part::Start(start)].into_iter().chain(batches);
    parts.map(|part| RankConfigsStreamRequest { part: Some(part) }).collect()
}

fn packed(tiles: i64) -> PackedTileConfigs {
    grid_tiles(tiles).to_packed().unwrap()
}

pub(crate) fn is_access(line: &Value) -> bool {
    line["target"] == "access"
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from_digit(digit.into(), 16).unwrap()).collect()
}
