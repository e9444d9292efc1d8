//! A proxy that can stall.

use std::time::Duration;

use hlorank_tests::TestServer;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::sleep,
};

/// Forwards bytes in both directions unless it is stalled. Dropping it closes it.
pub(crate) struct Proxy {
    endpoint: String,
    is_stalled: watch::Sender<bool>,
    bytes: watch::Receiver<usize>,
}

/// More bytes than it takes to connect and to send a graph of the repository.
const FIRST_CALL_BYTES: usize = 8 << 10;

impl Proxy {
    /// Starts a proxy in front of a server.
    pub(crate) async fn to(server: &TestServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = server.endpoint().trim_start_matches("http://").to_owned();
        let (is_stalled, stalled) = watch::channel(false);
        let (passed, bytes) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                client
                    .set_nodelay(true)
                    .and_then(|()| server.set_nodelay(true))
                    .unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(pass(
                    from_client,
                    to_server,
                    stalled.clone(),
                    passed.clone(),
                ));
                tokio::spawn(pass(
                    from_server,
                    to_client,
                    stalled.clone(),
                    passed.clone(),
                ));
            }
        });
        Self {
            endpoint,
            is_stalled,
            bytes,
        }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Waits until calls are made.
    pub(crate) async fn first_call(&self) {
        self.bytes
            .clone()
            .wait_for(|bytes| *bytes > FIRST_CALL_BYTES)
            .await
            .unwrap();
    }

    /// Forwards nothing for this time.
    pub(crate) async fn stall(&self, time: Duration) {
        self.is_stalled.send_replace(true);
        sleep(time).await;
        self.is_stalled.send_replace(false);
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut stalled: watch::Receiver<bool>,
    passed: watch::Sender<usize>,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        passed.send_modify(|bytes| *bytes += count);
        let continues = stalled.wait_for(|stalled| !stalled).await.is_ok();
        if !continues || to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
}
