//! Streams that send many small batches and read no scores.

use hlorank_proto::v1::{Graph, TileConfig, TileConfigs, config_batch::Configs};
use prost::{Message as _, bytes::Bytes};

use super::{
    attacker::{Broken, Client},
    calls::RANK_STREAM,
    messages::framed,
};
use crate::request::{stream_batch, stream_start};

/// Opens a stream, sends this number of batches of one tile, each in a frame of its own, and leaves the scores unread. Returns the
/// stream with all of its batches sent, or as many as the server took.
///
/// # Errors
/// If the connection is closed.
pub async fn send_small_batches(
    client: &mut Client,
    batches: usize,
    graph: Graph,
) -> Result<(h2::client::ResponseFuture, h2::SendStream<Bytes>), Broken> {
    let (response, mut body) = client.begin(RANK_STREAM, "identity").await?;
    body.send_data(framed(&stream_start(graph).encode_to_vec(), false), false)?;
    let tile = TileConfig {
        output_bounds: vec![8, 8],
        ..TileConfig::default()
    };
    let batch = stream_batch(Configs::TileConfigs(TileConfigs {
        configs: vec![tile],
    }));
    let batch = framed(&batch.encode_to_vec(), false);
    // An error means that the server has ended the stream.
    (0..batches)
        .try_for_each(|_| body.send_data(batch.clone(), false))
        .unwrap_or_default();
    Ok((response, body))
}
