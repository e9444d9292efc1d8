//! A server process, and calls with custom headers.

use hlorank_tests::prelude::*;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};

/// Kernel of two nodes.
pub(crate) const KERNEL: &str = "HloModule kernel\n\nENTRY %entry {\n  %input = f32[16,8] parameter(0)\n  \
                                 ROOT %result = f32[16,8] negate(%input)\n}\n";

pub(crate) const MODEL: &str = TILE_MODEL;

/// Returns a command that runs the server with these flags.
pub(crate) fn program(flags: &[&str]) -> Command {
    let mut program = hlorank_tests::program("hlorank-server");
    program
        .args(flags)
        .env("HLORANK_ONNXRUNTIME", onnxruntime())
        .env("HLORANK_MODELS", hlorank_tests::models())
        .env("HLORANK_DEFAULT_MODELS", format!("tile={MODEL}"));
    program
}

pub(crate) fn start(flags: &[&str]) -> ServerProcess {
    ServerProcess::run(program(flags))
}

pub(crate) async fn channel(server: &ServerProcess) -> Channel {
    Channel::from_shared(server.endpoint.clone())
        .unwrap()
        .connect()
        .await
        .unwrap()
}

pub(crate) async fn cost_model(server: &ServerProcess) -> CostModelServiceClient<Channel> {
    CostModelServiceClient::new(channel(server).await)
}

pub(crate) async fn models(server: &ServerProcess) -> ModelServiceClient<Channel> {
    ModelServiceClient::new(channel(server).await)
}

/// Returns a request with these headers.
pub(crate) fn with<T>(message: T, headers: &[(&str, &str)]) -> Request<T> {
    let mut request = Request::new(message);
    for (name, value) in headers {
        let name: AsciiMetadataKey = name.parse().unwrap();
        // Values are set as bytes, because invalid ones are sent, too.
        request.metadata_mut().append(
            name,
            AsciiMetadataValue::try_from(value.as_bytes()).unwrap(),
        );
    }
    request
}

pub(crate) fn by_text(text: &str) -> Graph {
    kernel_graph(graph_of_text(text))
}

/// Returns a request to rank tiles of a kernel.
pub(crate) fn ranking(text: &str, tiles: i64) -> RankConfigsRequest {
    rank_request(by_text(text), packed_tiles(&grid_tiles(tiles)))
}

pub(crate) fn putting(text: &str) -> PutGraphRequest {
    PutGraphRequest {
        graph: Some(by_text(text)),
    }
}

/// Returns a stream of a graph and batches of tiles.
pub(crate) fn streamed(text: &str, batches: &[i64]) -> Vec<RankConfigsStreamRequest> {
    let batches = batches
        .iter()
        .map(|&tiles| stream_batch(packed_tiles(&grid_tiles(tiles))));
    [stream_start(by_text(text))]
        .into_iter()
        .chain(batches)
        .collect()
}

pub(crate) fn is_access(line: &Value) -> bool {
    line["target"] == "access"
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from_digit(digit.into(), 16).unwrap())
        .collect()
}
