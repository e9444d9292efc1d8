//! Floods of frames that cost the server an answer or a call each.

use hlorank_tests::attackers::{Flood, flood};

use crate::attacked::{Attacked, until_calls};

/// Frames per second on each connection.
const PER_SECOND: u32 = 2_000;
const CONNECTIONS: usize = 4;

/// Memory that a flood may take.
const MAX_BYTES: usize = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_resets_pings_and_settings_delay_nobody() {
    let attacked = Attacked::start(&[]).await;
    for kind in [Flood::Resets, Flood::Pings, Flood::Settings] {
        let attack = || flood(&attacked.aim(), CONNECTIONS, kind, PER_SECOND);
        let outcome = attacked
            .endures(&format!("{kind:?}"), attack, async |attack| match kind {
                Flood::Resets => until_calls(attack, 1_000).await,
                Flood::Pings | Flood::Settings => {
                    crate::attacked::until_bytes(attack, 64 << 10).await;
                }
            })
            .await;
        assert!(outcome.bytes < MAX_BYTES, "{kind:?}: {outcome:?}");
    }
}
