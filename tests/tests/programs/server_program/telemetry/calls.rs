//! A server process, and calls with custom headers.

use hlorank_tests::prelude::*;

/// Kernel of two nodes.
pub(crate) const KERNEL: &str = "HloModule kernel\n\nENTRY %entry {\n  %input = f32[16,8] parameter(0)\n  \
                                 ROOT %result = f32[16,8] negate(%input)\n}\n";

pub(crate) const MODEL: &str = TILE_MODEL;

/// Returns a command that runs the server with these flags.
pub(crate) fn program(flags: &[&str]) -> Command {
    let mut program = server_program();
    program
        .args(flags)
        .env("HLORANK_DEFAULT_MODELS", format!("tile={MODEL}"));
    program
}

pub(crate) fn start(flags: &[&str]) -> ServerProcess {
    ServerProcess::run(program(flags))
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

/// Ranks batches of tiles of a kernel as a stream, and reads it to its end.
pub(crate) async fn stream(
    cost_model: &mut CostModelServiceClient<Channel>,
    text: &str,
    batches: &[i64],
) -> Result<(), Status> {
    let messages = tokio_stream::iter(streamed(text, batches));
    let mut answers = cost_model.rank_configs_stream(messages).await?.into_inner();
    while answers.message().await?.is_some() {}
    Ok(())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from_digit(digit.into(), 16).unwrap())
        .collect()
}
