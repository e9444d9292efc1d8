//! Streams whose client sends batches and reads no scores.

use hlorank_proto::v1::config_batch::Configs;
use prost::Message as _;
use tokio::time::{Duration, sleep};

use crate::{
    graph_of_module, kernel_graph, module::two_dots, repeated_tiles, stream_batch, stream_start,
};

use super::{
    attack::{Aim, Attack},
    calls::{NO_WINDOW, RANK_STREAM},
    messages::framed,
};

/// Tiles of a batch, about 1 MiB.
const TILES: usize = 64 << 10;
const DIMENSIONS: usize = 4;

/// Opens this number of streams on each connection, sends as many batches as the server takes, and reads nothing.
pub fn unread_streams(aim: &Aim, connections: usize, streams: usize) -> Attack {
    let graph = kernel_graph(graph_of_module(two_dots()));
    let start = framed(&stream_start(graph).encode_to_vec(), false);
    let batch = stream_batch(Configs::PackedTileConfigs(repeated_tiles(
        TILES, DIMENSIONS,
    )));
    let batch = framed(&batch.encode_to_vec(), false);
    Attack::start(aim, connections, move |attacker| {
        let (start, batch) = (start.clone(), batch.clone());
        async move {
            let (mut client, mut begun) = (attacker.client(NO_WINDOW).await?, Vec::new());
            for _ in 0..streams {
                let (response, mut body) = client.begin(RANK_STREAM, "identity").await?;
                body.send_data(start.clone(), false)?;
                body.reserve_capacity(batch.len());
                begun.push((response, body));
            }
            // Sends to every stream that takes a batch until the server closes all of them.
            while !begun.is_empty() {
                begun.retain_mut(|(_, body)| {
                    let is_open = body.capacity() < batch.len()
                        || body.send_data(batch.clone(), false).is_ok();
                    body.reserve_capacity(batch.len());
                    is_open
                });
                sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        }
    })
}
