//! Floods of frames that cost the server an answer or a call each.

use hlorank_tests::attackers::{Flood, flood};

use crate::attacked::{Attacked, until_sent};

/// Frames per second on each connection.
const PER_SECOND: u32 = 2_000;
const CONNECTIONS: usize = 4;

/// Memory that a flood may take.
const MAX_BYTES: usize = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_resets_pings_and_settings_delay_nobody() {
    let attacked = Attacked::start(&[]).await;
    // About a thousand resets, and more of the others, which are shorter.
    let is_enough = async |attack: &_| until_sent(attack, |sent| sent.bytes() >= 160 << 10).await;
    for kind in [Flood::Resets, Flood::Pings, Flood::Settings] {
        let attack = || flood(&attacked.aim(), CONNECTIONS, kind, PER_SECOND);
        let took = attacked
            .endures(&format!("{kind:?}"), attack, is_enough)
            .await;
        assert!(took < MAX_BYTES, "{kind:?}: {took} bytes");
    }
}
