//! Clients that are killed while they make calls.

use std::env;

use hlorank_tests::prelude::*;
use tokio::sync::watch;

use crate::connect;

/// Running clients, each a process.
pub(crate) struct Clients {
    endpoint: String,
    running: Vec<Process>,
    started: usize,
    random: Rng,
}

/// Client process, killed when it is dropped.
struct Process(Child);

const CLIENTS: usize = 3;

/// Maximum time between two kills, in seconds.
const SPARED: f64 = 3.0;

/// Maximum pause of a client between two calls, in seconds.
const PAUSE: f64 = 0.2;

/// More tiles than the calls of the soak itself have.
const OTHER_NUMBERS: usize = 1 << 30;

impl Clients {
    /// Starts the clients.
    pub(crate) fn start(endpoint: &str) -> Self {
        let mut clients = Self {
            endpoint: endpoint.to_owned(),
            running: Vec::new(),
            started: 0,
            random: Rng::with_seed(1),
        };
        for _ in 0..CLIENTS {
            let client = clients.next();
            clients.running.push(client);
        }
        clients
    }

    fn next(&mut self) -> Process {
        self.started += 1;
        let program = env::current_exe().expect("this program has a path");
        let client = Command::new(program)
            .args(["client", &self.endpoint, &self.started.to_string()])
            .spawn();
        Process(client.expect("a client starts"))
    }

    /// Kills one client after the other and replaces it. Returns the number of kills.
    pub(crate) async fn kill_until(mut self, mut stopped: watch::Receiver<()>) -> usize {
        loop {
            let spared = Duration::from_secs_f64(self.random.f64() * SPARED);
            tokio::select! {
                () = sleep(spared) => {}
                _ = stopped.changed() => return self.started,
            }
            let victim = self.random.usize(..self.running.len());
            let ended = self.running[victim].0.try_wait().expect("a child");
            assert!(ended.is_none(), "a client ended by itself: {ended:?}");
            self.running[victim] = self.next();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a client, which calls and streams until it is killed or the server is gone.
pub(crate) fn run(endpoint: &str, seed: u64) {
    Runtime::new().expect("a runtime").block_on(async {
        let client = connect(endpoint).await;
        let mut random = Rng::with_seed(seed);
        let ended = loop {
            if let Err(error) = call(&client, &mut random).await {
                break error;
            }
            tokio::time::sleep(Duration::from_secs_f64(random.f64() * PAUSE)).await;
        };
        eprintln!("client {seed}: {ended}");
    });
}

async fn call(client: &Client, random: &mut Rng) -> Result<(), ClientError> {
    let (graph, configurations) = varying(OTHER_NUMBERS + random.usize(..OTHER_NUMBERS));
    let graph = GraphHandle::features(&graph);
    if random.bool() {
        client
            .rank(&RankRequest::new(&graph, &configurations))
            .await?;
        return Ok(());
    }
    let mut stream = client.rank_stream(&StreamRequest::new(&graph)).await?;
    for _ in 0..random.usize(1..10) {
        stream.send(&configurations).await?;
        stream.scores().await?;
    }
    // Some calls are cancelled before their end.
    if random.bool() {
        stream.finish().await?;
    }
    Ok(())
}
