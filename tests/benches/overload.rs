//! Three times as many requests as the server can handle, with room for few at a time: it handles as many as without
//! the others, as fast, and rejects the rest immediately. Ratios are of one run.

use hlorank_tests::prelude::*;
use tokio::time::{Instant, sleep_until};

/// Tiles of a step of a search, about twenty milliseconds of a worker.
const TILES: i64 = 200;
const NODES: usize = 40;

/// Number of kernels, ranked in turn so that requests have no rows in common.
const KERNELS: u16 = 64;

/// Duration of each measurement.
const TIME: Duration = Duration::from_secs(10);

/// Concurrent requests per worker when the capacity is measured.
const CALLERS_PER_WORKER: usize = 2;

/// Accepted requests beyond one per worker, so that no worker idles between two requests.
const REQUESTS_BESIDE: usize = 1;

/// Without a cache, every request is as much work as the one before.
const NO_CACHE: &str = "--embedding-cache-bytes=0";

/// Result and duration of a request.
struct Ended {
    is_taken: bool,
    took: Duration,
}

/// Client that ranks one kernel after the other.
struct Caller {
    client: Client,
    kernels: Vec<GraphHandle>,
    tiles: Configurations,
}

impl Caller {
    async fn start(server: &TestServer) -> Self {
        let connection = Connection {
            retries: 0,
            ..Connection::default()
        };
        let client = Client::connect(server.endpoint(), connection)
            .await
            .expect("a connection");
        let opcodes: Vec<u8> = (1..).take(NODES).collect();
        let kernels: Vec<_> = (1..=KERNELS)
            .map(|size| GraphHandle::features(&chain_kernel(&opcodes, &[size, 64])))
            .collect();
        for kernel in &kernels {
            client.put_graph(kernel).await.expect("room for the graph");
        }
        Self {
            client,
            kernels,
            tiles: Configurations::Tile(grid_tiles(TILES)),
        }
    }

    async fn ask(&self, number: usize) -> Ended {
        let started = Instant::now();
        let kernel = &self.kernels[number % self.kernels.len()];
        let ranked = self
            .client
            .rank(&RankRequest::new(kernel, &self.tiles).top(1))
            .await;
        let took = started.elapsed();
        match ranked {
            Ok(_) => Ended {
                is_taken: true,
                took,
            },
            Err(error) => {
                assert_eq!(error.code(), Some(Code::ResourceExhausted), "{error}");
                Ended {
                    is_taken: false,
                    took,
                }
            }
        }
    }

    /// Keeps this number of requests in flight, in a closed loop.
    async fn one_after_the_other(&self, at_once: usize) -> Vec<Ended> {
        let end = Instant::now() + TIME;
        let calls = (0..at_once).map(async |first| {
            let mut ended = Vec::new();
            for number in (first..).step_by(at_once) {
                if Instant::now() >= end {
                    break;
                }
                ended.push(self.ask(number).await);
            }
            ended
        });
        futures::future::join_all(calls)
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    /// Sends this number of requests per second, in an open loop.
    async fn at_rate(self, rate: f64) -> Vec<Ended> {
        let caller = std::sync::Arc::new(self);
        let (start, mut asked, mut ended) = (Instant::now(), JoinSet::new(), Vec::new());
        for number in 0.. {
            let due = Duration::from_secs_f64(number as f64 / rate);
            if due > TIME {
                break;
            }
            sleep_until(start + due).await;
            let caller = std::sync::Arc::clone(&caller);
            asked.spawn(async move { caller.ask(number).await });
            while let Some(answer) = asked.try_join_next() {
                ended.push(answer.expect("requests do not panic"));
            }
        }
        ended.extend(asked.join_all().await);
        ended
    }
}

fn main() {
    Runtime::new().expect("a runtime").block_on(measure());
}

async fn measure() {
    let workers = std::thread::available_parallelism()
        .expect("a number of cores")
        .get();
    let server = TestServer::start_with(&[NO_CACHE]).await;
    let caller = Caller::start(&server).await;
    let alone = caller.one_after_the_other(1).await;
    let peak = caller
        .one_after_the_other(CALLERS_PER_WORKER * workers)
        .await;
    let capacity = taken(&peak) / TIME.as_secs_f64();
    let requests = workers + REQUESTS_BESIDE;
    let limited = TestServer::start_with(&[NO_CACHE, &format!("--max-requests={requests}")]).await;
    let overload = Caller::start(&limited).await.at_rate(3.0 * capacity).await;
    let goodput = taken(&overload) / TIME.as_secs_f64();
    let [p99, refused] = [true, false].map(|is_taken| percentile(&overload, is_taken));
    let uncontended = percentile(&alone, true);
    let sent = overload.len();
    write(
        "overload_goodput",
        goodput / capacity,
        "x",
        Target::AtLeast(0.9),
        format!(
            "{goodput:.0} requests of {TILES} tiles a second at three times the capacity, with room for {requests} at a \
             time, over {capacity:.0}; {sent} were sent"
        ),
    );
    write(
        "overload_p99",
        p99 / uncontended,
        "x",
        Target::AtMost(2.0),
        format!(
            "p99 of the requests that were taken, {p99:.1} ms, over that of requests one after the other, {uncontended:.1} ms"
        ),
    );
    write(
        "overload_refusals",
        refused,
        "ms",
        Target::AtMost(5.0),
        format!(
            "p99 of the {:.0} requests that were refused",
            sent as f64 - taken(&overload)
        ),
    );
}

fn write(name: &str, value: f64, unit: &'static str, target: Target, how: String) {
    Figure {
        name: name.to_owned(),
        value,
        unit,
        target,
        how,
    }
    .write();
}

fn taken(ended: &[Ended]) -> f64 {
    ended.iter().filter(|ended| ended.is_taken).count() as f64
}

/// Returns p99 in milliseconds.
fn percentile(ended: &[Ended], is_taken: bool) -> f64 {
    let chosen = ended.iter().filter(|ended| ended.is_taken == is_taken);
    let mut times: Vec<f64> = chosen.map(|ended| ended.took.as_secs_f64() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() * 99 / 100]
}
