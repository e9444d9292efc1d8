//! Input of a client that no computation fits.

use hlorank_tests::attackers::huge_graphs;
use hlorank_tests::prelude::*;

use crate::attacked::{Attacked, until_sent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_numbers_delay_nobody_and_are_no_error_of_the_server() {
    let attacked = Attacked::start(&[]).await;
    let attack = || huge_graphs(&attacked.aim(), 2, Duration::from_millis(5));
    attacked
        .endures("huge graphs", attack, async |attack| {
            until_sent(attack, |sent| sent.calls() >= 200).await;
        })
        .await;
    let mut errors = attacked.server.stop().await.lines();
    errors.retain(|line| line["level"] == "ERROR");
    assert!(errors.is_empty(), "{errors:?}");
}
