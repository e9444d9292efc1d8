//! A second SIGTERM or SIGINT ends the server at once.

use std::time::{Duration, Instant};

use hlorank_tests::ServerProcess;

use crate::{
    asking::{Question, ask, cost_model, scrape, start, until},
    frozen::Frozen,
};

/// Of a drain of a minute.
const AT_ONCE: Duration = Duration::from_secs(3);

async fn stop_twice(first: &str, second: &str) -> (Option<i32>, Duration, String) {
    let server = start(&["--drain-seconds=60"]);
    let _frozen = Frozen::in_a_stream(&server);
    busy(&server).await;
    server.signal(first);
    server.lines(1, |line| line["fields"]["message"] == "stopping").await;
    let told = Instant::now();
    server.signal(second);
    let stopped = server.stopped(told).await;
    (stopped.status.code(), stopped.took, stopped.log)
}

/// Has the compute threads in the middle of something.
async fn busy(server: &ServerProcess) {
    for _ in 0..2 {
        let mut client = cost_model(server).await;
        tokio::spawn(async move { ask(&mut client, Question { nodes: 90, tiles: 20_000 }).await });
    }
    until("calls", async || scrape(server).await.value("hlorank_requests_in_progress", &[]) >= 3.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_server_at_once_and_says_so() {
    for (first, second, code) in [("TERM", "TERM", 143), ("INT", "INT", 130), ("TERM", "INT", 130)] {
        let (status, took, log) = stop_twice(first, second).await;
        assert_eq!(status, Some(code), "{log}");
        assert!(took < AT_ONCE, "{took:?}");
        assert!(log.contains("stopping at once, for a second signal"), "{log}");
    }
}
