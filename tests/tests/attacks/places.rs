//! Calls and connections that take a place and do not move. The calls come from the address of the well-behaved client, as
//! behind one proxy, and the connections from others: those of one address make room for each other.

use hlorank_tests::attackers::{
    RANK, RANK_STREAM, deaf_connections, health_watches, idle_connections, silent_calls,
    silent_connections, slow_calls,
};
use hlorank_tests::prelude::*;

use crate::attacked::{Attacked, until_sent};

/// More than fit the limit of the server that is attacked.
const CALLS: usize = 100;
const CONNECTIONS: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_take_a_place_lock_nobody_out() {
    let attacked = Attacked::start(&["--max-client-requests=32", "--max-requests=64"]).await;
    let aim = attacked.aim();
    for path in [RANK, RANK_STREAM] {
        let silent = || silent_calls(&aim, 2, CALLS / 2, path);
        attacked
            .endures(path, silent, async |attack| {
                until_sent(attack, |sent| sent.calls() >= CALLS as u64).await;
            })
            .await;
    }
    let slow = || slow_calls(&aim, 2, CALLS / 2, Duration::from_millis(20));
    attacked
        .endures("slow calls", slow, async |attack| {
            until_sent(attack, |sent| sent.bytes() >= 20 << 10).await;
        })
        .await;
    let watches = || health_watches(&aim, 2, CALLS / 2);
    attacked
        .endures("health watches", watches, async |attack| {
            until_sent(attack, |sent| sent.calls() >= 64).await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_calls_lock_nobody_out() {
    let attacked = Attacked::start(&["--max-connections=16"]).await;
    let aim = attacked.aim().from_addresses(2);
    let is_enough = async |attack: &_| {
        until_sent(attack, |sent| sent.connections() >= CONNECTIONS as u64).await;
    };
    let idle = || idle_connections(&aim, CONNECTIONS);
    attacked.endures("idle connections", idle, is_enough).await;
    let silent = || silent_connections(&aim, CONNECTIONS);
    attacked
        .endures("silent connections", silent, is_enough)
        .await;
    let deaf = || deaf_connections(&aim, CONNECTIONS);
    attacked.endures("deaf connections", deaf, is_enough).await;
}
