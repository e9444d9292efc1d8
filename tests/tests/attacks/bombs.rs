//! Small messages that a decoder would turn into gigabytes.

use std::time::Duration;

use hlorank_tests::attackers::{Bomb, Shape, bombs, slow_bombs};

use crate::attacked::{Attacked, until_calls};

/// Size of a bomb once it is decompressed: the default of `--max-message-bytes`.
const BYTES: usize = (64 << 20) - 1024;

/// Pause of an attacker after each answer.
const PAUSE: Duration = Duration::from_millis(20);

/// Number of attackers who send compressed bombs, and memory that their bombs may take together.
const ATTACKERS: usize = 2;
const COMPRESSED_BYTES: usize = ATTACKERS * BYTES + (64 << 20);

/// Memory that a bomb of [`BYTES`] may take that is not compressed: four times its size.
const PLAIN_BYTES: usize = 4 * BYTES;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_messages_that_decompress_to_empty_elements_take_little_memory() {
    let attacked = Attacked::start(&[]).await;
    let sent: Vec<Bomb> = Shape::ALL.map(|shape| Bomb::gzip(shape, BYTES)).into();
    let calls = 2 * sent.len() as u64;
    let attack = || bombs(&attacked.aim(), ATTACKERS, sent, PAUSE);
    let outcome = attacked
        .endures("gzip", attack, async |attack| {
            until_calls(attack, calls).await;
        })
        .await;
    assert!(outcome.bytes < COMPRESSED_BYTES, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_sender_of_small_messages_delays_nobody() {
    let attacked = Attacked::start(&[]).await;
    let bomb = Bomb::gzip(Shape::EmptyTiles, BYTES);
    let attack = || slow_bombs(&attacked.aim().from_addresses(2), 2, bomb, 4 << 10);
    attacked
        .endures("slow gzip", attack, async |attack| {
            until_calls(attack, 6).await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_messages_of_empty_elements_take_four_times_their_size() {
    let attacked = Attacked::start(&[]).await;
    for shape in [Shape::EmptyTiles, Shape::EmptyNodes, Shape::SmallBounds] {
        let sent = vec![Bomb::plain(shape, BYTES)];
        let attack = || bombs(&attacked.aim(), 1, sent, PAUSE);
        let name = format!("plain {shape:?}");
        let outcome = attacked
            .endures(&name, attack, async |attack| until_calls(attack, 3).await)
            .await;
        assert!(outcome.bytes < PLAIN_BYTES, "{name}: {outcome:?}");
    }
}
