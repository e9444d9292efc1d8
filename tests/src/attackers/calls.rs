//! Calls that take a place and do not move, and calls that cost the server more than they should.

use std::{future::pending, time::Duration};

use prost::{Message as _, bytes::Bytes};
use tokio::{task::JoinSet, time::sleep};
use tonic_health::pb::HealthCheckRequest;

use super::{
    attack::{Aim, Attack},
    attacker::{Attacker, Broken, Client, WINDOW_BYTES, status},
    messages::{self, framed},
};

/// Paths of calls.
pub const RANK: &str = "/hlorank.v1.CostModelService/RankConfigs";
/// Like [`RANK`].
pub const RANK_STREAM: &str = "/hlorank.v1.CostModelService/RankConfigsStream";
const HEALTH_WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Window in which no answer fits.
pub(super) const NO_WINDOW: u32 = 0;

/// Pause before a call that was refused is made again.
const PAUSE: Duration = Duration::from_millis(200);

/// Begins calls whose messages never arrive, this number on each connection, and begins each again when the server has
/// ended it.
pub fn silent_calls(aim: &Aim, connections: usize, calls: usize, path: &'static str) -> Attack {
    Attack::start(aim, connections, move |attacker| async move {
        let (client, mut silent) = (attacker.client(WINDOW_BYTES).await?, JoinSet::new());
        for _ in 0..calls {
            silent.spawn(be_silent(client.clone(), path));
        }
        silent.join_next().await.unwrap_or(Ok(Ok(())))?
    })
}

async fn be_silent(mut client: Client, path: &'static str) -> Result<(), Broken> {
    loop {
        let (response, _body) = client.begin(path, "identity").await?;
        // The place is free again.
        let _ = status(response).await;
        sleep(PAUSE).await;
    }
}

/// Sends the message of each call a byte at a time, this number of calls on each connection.
pub fn slow_calls(aim: &Aim, connections: usize, calls: usize, pause: Duration) -> Attack {
    Attack::start(aim, connections, move |attacker| async move {
        let (mut client, mut begun) = (attacker.client(WINDOW_BYTES).await?, Vec::new());
        for _ in 0..calls {
            begun.push(client.begin(RANK, "identity").await?.1);
        }
        // The length of the message that is said to follow.
        let head = Bytes::from_static(&[0, 0, 16, 0, 0]);
        for byte in (0..).map(|at| head.slice(at.min(head.len() - 1)..).slice(..1)) {
            begun.retain_mut(|body| body.send_data(byte.clone(), false).is_ok());
            if begun.is_empty() {
                return Ok(());
            }
            sleep(pause).await;
        }
        Ok(())
    })
}

/// Watches the health of the server, this number of times on each connection, without reading what it reports.
pub fn health_watches(aim: &Aim, connections: usize, calls: usize) -> Attack {
    let message = framed(&HealthCheckRequest::default().encode_to_vec(), false);
    Attack::start(aim, connections, move |attacker| {
        watch(attacker, calls, message.clone())
    })
}

async fn watch(attacker: Attacker, calls: usize, message: Bytes) -> Result<(), Broken> {
    let (mut client, mut watches) = (attacker.client(NO_WINDOW).await?, Vec::new());
    for _ in 0..calls {
        let (response, mut body) = client.begin(HEALTH_WATCH, "identity").await?;
        body.send_data(message.clone(), true)?;
        watches.push(response.await?);
    }
    pending().await
}

/// Sends requests about graphs whose numbers no computation fits.
pub fn huge_graphs(aim: &Aim, attackers: usize, pause: Duration) -> Attack {
    let huge: Vec<Bytes> = messages::huge_graphs()
        .iter()
        .map(|request| framed(request, false))
        .collect();
    Attack::start(aim, attackers, move |attacker| {
        let huge = huge.clone();
        async move {
            let mut client = attacker.client(WINDOW_BYTES).await?;
            for message in huge.into_iter().cycle() {
                client.call(RANK, "identity", message).await?;
                sleep(pause).await;
            }
            Ok(())
        }
    })
}
