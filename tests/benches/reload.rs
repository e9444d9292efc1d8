//! Cost of a reload: latency of concurrent calls, memory, and the time until a new version serves.

use hlorank_tests::prelude::*;
use tokio::time::Instant;

const MODEL: &str = TILE_MODEL;
const RELOADS: u64 = 100;
/// Reloads after which caches and allocators have settled.
const SETTLED: u64 = 10;
/// Load as a fraction of the capacity.
const LOAD: f64 = 0.7;
/// Duration of the load without reloads, before each round with reloads.
const STEADY: Duration = Duration::from_secs(5);
/// Time in which an unused version is unloaded.
const UNLOADED: Duration = Duration::from_millis(500);
/// Concurrent requests when the capacity is measured.
const CALLERS: usize = 4;
const CALLS: usize = 1_000;

fn main() {
    Runtime::new().expect("a runtime").block_on(measure());
}

async fn measure() {
    let artifacts = Artifacts::copy();
    // Without a cache, every request is as much work as the one before.
    let server = ServerProcess::start(&[&artifacts.flag(), "--embedding-cache-bytes=0"]);
    let client = Client::connect(server.endpoint(), Connection::default())
        .await
        .expect("a server");
    let pause = Duration::from_secs_f64(1.0 / (LOAD * capacity(&client).await));
    println!("one request in every {pause:?}, {LOAD} of what the server can do");

    // Rounds alternate, so that other load of the machine affects both.
    let (mut steady, mut reloading, mut takes_over) = (Vec::new(), Vec::new(), Vec::new());
    let first = client
        .get_model(MODEL, None)
        .await
        .expect("a model")
        .version;
    let mut baseline = 0;
    for round in 0..RELOADS / SETTLED {
        let load = Load::start(client.clone(), vec![question()], pause);
        tokio::time::sleep(STEADY).await;
        steady.extend(load.finish().await);

        let load = Load::start(client.clone(), vec![question()], pause);
        let before = first + round * SETTLED;
        for version in before + 1..=before + SETTLED {
            takes_over.push(publish(&artifacts, &client, version).await);
        }
        reloading.extend(load.finish().await);
        // The previous version is unloaded by then.
        tokio::time::sleep(UNLOADED).await;
        println!(
            "{:>4} reloads, {:>6} KiB resident",
            (round + 1) * SETTLED,
            server.resident_bytes() >> 10
        );
        if round == 0 {
            baseline = server.resident_bytes();
        }
    }
    report(&steady, &reloading, takes_over);
    let how = format!("resident size after {RELOADS} reloads under load over that after {SETTLED}");
    figure(
        "reload_memory",
        server.resident_bytes() as f64 / baseline as f64,
        "x",
        1.05,
        how,
    );
    report_swaps(&server).await;
}

async fn report_swaps(server: &ServerProcess) {
    let scrape = Scrape::parse(&http_get(server.metrics_address(), "/metrics").await.1);
    let swaps = |part: &str, labels: &[_]| {
        scrape.value(
            &format!("hlorank_model_swap_duration_seconds_{part}"),
            labels,
        )
    };
    let (all, quick) = (swaps("count", &[]), swaps("bucket", &[("le", "0.001")]));
    let mean = swaps("sum", &[]) / all * 1e6;
    let how = format!(
        "of {all} swaps of what serves, those that took more than 1 ms; {mean:.0} us in the mean"
    );
    figure("reload_swap", all - quick, "swaps", 0.0, how);
}

fn figure(name: &str, value: f64, unit: &'static str, most: f64, how: String) {
    Figure {
        name: name.to_owned(),
        value,
        unit,
        target: Target::AtMost(most),
        how,
    }
    .write();
}

/// Measures the maximum requests per second.
async fn capacity(client: &Client) -> f64 {
    let callers = (0..CALLERS).map(|_| async {
        let Question {
            graph,
            configurations,
        } = question();
        let request = RankRequest::new(&graph, &configurations).with_scores();
        call_times(CALLS / CALLERS, async || {
            drop(client.rank(&request).await.expect("a ranking"));
        })
        .await;
    });
    let started = Instant::now();
    futures::future::join_all(callers).await;
    CALLS as f64 / started.elapsed().as_secs_f64()
}

fn question() -> Question {
    Question {
        graph: GraphHandle::features(&kernel_of(40)),
        configurations: Configurations::Tile(grid_tiles(26)),
    }
}

/// Publishes a version, and returns how long it took to serve.
async fn publish(artifacts: &Artifacts, client: &Client, version: u64) -> Duration {
    artifacts.publish(MODEL, version, |_| ());
    let published = Instant::now();
    let serves = async || {
        let model = client.get_model(MODEL, Some(version)).await;
        model.is_ok_and(|model| model.state() == ModelState::Serving)
    };
    while !serves().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    published.elapsed()
}

fn report(steady: &[Answer], reloading: &[Answer], mut takes_over: Vec<Duration>) {
    takes_over.sort_unstable();
    let slowest = takes_over.last().expect("a reload").as_secs_f64();
    let median = takes_over[takes_over.len() / 2].as_secs_f64();
    let failed = reloading
        .iter()
        .filter(|answer| answer.ranking.is_err())
        .count();
    let [steady_times, reloading_times] = [steady, reloading].map(quantiles);
    println!(
        "{:<12}{:>8}{:>10}{:>10}{:>10}",
        "", "calls", "p50, ms", "p99, ms", "max, ms"
    );
    for (name, answers, [p50, p99, max]) in [
        ("steady", steady, steady_times),
        ("reloading", reloading, reloading_times),
    ] {
        println!(
            "{name:<12}{:>8}{p50:>10.2}{p99:>10.2}{max:>10.2}",
            answers.len()
        );
    }
    let calls = reloading.len();
    let how = format!("failed calls of {calls} at {LOAD} load over {RELOADS} reloads");
    figure("reload_failed_calls", failed as f64, "calls", 0.0, how);
    let (during, alone) = (reloading_times[1], steady_times[1]);
    let how = format!(
        "p99 at {LOAD} load while versions are loaded all the time, {during:.1} ms, over {alone:.1} ms"
    );
    figure("reload_p99", during / alone, "x", 1.5, how);
    let how = format!(
        "slowest of {RELOADS} from manifest to serving at {LOAD} load; median {median:.2} s"
    );
    figure("reload_time", slowest, "s", 5.0, how);
}

/// Returns p50, p99 and maximum in milliseconds.
fn quantiles(answers: &[Answer]) -> [f64; 3] {
    let mut times: Vec<f64> = answers
        .iter()
        .map(|answer| answer.took.as_secs_f64() * 1e3)
        .collect();
    times.sort_by(f64::total_cmp);
    [
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1],
    ]
}
