//! What a well-behaved client and the server have of an attack.

use std::time::Duration;

use hlorank_tests::{
    attackers::{Bystander, Seen},
    peak_bytes, reset_peak,
};
use tokio::time::sleep;

use crate::{attacks::Running, policies::Changes, site::Site};

/// Pause between two calls of the well-behaved client, in an open loop.
const PAUSE: Duration = Duration::from_millis(10);

/// Measurements of one attack.
pub(crate) struct Measured {
    pub(crate) connections: u64,
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    pub(crate) seen: Seen,
    /// Highest resident memory; `None` if the server was killed.
    pub(crate) peak_bytes: Option<usize>,
    /// Time until the server was ready after the attack.
    pub(crate) ready: Option<Duration>,
    /// Changes of policies, if they were a part of the attack.
    pub(crate) changes: Option<Changes>,
}

/// Attacks for a while beside a well-behaved client.
pub(crate) async fn measure(
    site: &Site,
    time: Duration,
    attack: impl FnOnce() -> Vec<Running>,
) -> Measured {
    reset_peak(site.server.id());
    let bystander = Bystander::start(&site.server.endpoint, PAUSE).await;
    let attacks = attack();
    sleep(time).await;
    let seen = bystander.finish().await;
    let peak = site.is_running().then(|| peak_bytes(site.server.id()));
    let [mut connections, mut calls, mut bytes] = [0; 3];
    let mut changes = None;
    for attack in &attacks {
        match attack {
            Running::Clients(attack) => {
                let sent = attack.sent();
                connections += sent.connections();
                calls += sent.calls();
                bytes += sent.bytes();
            }
            Running::Policies(policies) => changes = Some(policies.changes()),
            Running::Version { .. } => {}
        }
    }
    drop(attacks);
    let ready = site.until_ready().await;
    Measured {
        connections,
        calls,
        bytes,
        seen,
        peak_bytes: peak,
        ready,
        changes,
    }
}
