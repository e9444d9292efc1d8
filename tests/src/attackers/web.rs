//! What a web page, or a client that breaks, sends over HTTP/1.1.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::sleep,
};

use super::{
    attack::{Aim, Attack},
    attacker::{Attacker, Broken},
};

/// Calls under the name of a web page that points at the server, each on a connection of its own.
#[must_use]
pub fn rebound_names(aim: &Aim, attackers: usize, pause: Duration) -> Attack {
    let head = "host: evil.example\r\ncontent-length: 2\r\n\r\n{}";
    Attack::start(aim, attackers, move |attacker| again(attacker, head, pause))
}

/// Uploads that break off in the middle of a chunk, or have a chunk without a length.
#[must_use]
pub fn broken_uploads(aim: &Aim, attackers: usize, pause: Duration) -> Attack {
    let chunks = "host: localhost\r\ntransfer-encoding: chunked\r\n\r\n10\r\n{broken, without an end\r\nxyz\r\n";
    Attack::start(aim, attackers, move |attacker| {
        again(attacker, chunks, pause)
    })
}

/// Sends a request with this end again and again.
async fn again(attacker: Attacker, end: &'static str, pause: Duration) -> Result<(), Broken> {
    let begin = "POST /hlorank.v1.CostModelService/RankConfigs HTTP/1.1\r\ncontent-type: application/json\r\n";
    loop {
        let mut stream = attacker.connect().await?;
        stream.write_all(format!("{begin}{end}").as_bytes()).await?;
        attacker.count_calls(1);
        // The first bytes of the answer, if there is one.
        let _ = stream.read(&mut [0; 16]).await;
        sleep(pause).await;
    }
}
