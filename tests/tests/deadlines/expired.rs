use std::time::{Duration, Instant};

use hlorank_tests::{TestServer, kernel_of};

use crate::request::{MODEL, assert_refused, count, of_tiles, put, put_kernel, within};

/// Less than it takes for [`LARGE`].
const ALLOWED: Duration = Duration::from_millis(300);

/// Tiles that keep every worker busy for seconds.
const LARGE: i64 = 45_000;

#[tokio::test]
async fn a_call_that_is_no_stream_is_told_that_its_time_is_up() {
    let server = TestServer::start().await;
    let hash = put(&server, &kernel_of(40)).await;
    let started = Instant::now();
    let expired = server.patient().rank_configs(within(ALLOWED, of_tiles(hash, LARGE))).await.unwrap_err();
    let took = started.elapsed();
    assert_refused(&expired, "DEADLINE_EXCEEDED");
    assert!(expired.message().contains("300ms"), "{expired}");
    assert!((ALLOWED.mul_f64(0.9)..2 * ALLOWED).contains(&took), "{took:?}");
    let scrape = server.scrape().await;
    assert_eq!(count(&scrape, "hlorank_requests_total", ("code", "DEADLINE_EXCEEDED")), 1.0);
    assert_eq!(count(&scrape, "hlorank_requests_total", ("code", "CANCELLED")), 0.0);
    assert_eq!(count(&scrape, "hlorank_errors_total", ("reason", "DEADLINE_EXCEEDED")), 1.0);
    assert_eq!(count(&scrape, "hlorank_configs_total", ("model", MODEL)), 0.0, "nothing counts as scored");
}

#[tokio::test]
async fn a_call_without_any_time_is_refused_and_begins_nothing() {
    let server = TestServer::start().await;
    let hash = put(&server, &kernel_of(40)).await;
    let mut service = server.patient();
    for _ in 0..20 {
        let ranked = service.rank_configs(within(Duration::ZERO, of_tiles(hash, 10))).await;
        assert_refused(&ranked.unwrap_err(), "DEADLINE_EXCEEDED");
        assert_refused(
            &service.put_graph(within(Duration::ZERO, put_kernel(7))).await.unwrap_err(),
            "DEADLINE_EXCEEDED",
        );
    }
    let scrape = server.scrape().await;
    assert_eq!(count(&scrape, "hlorank_rows_evaluated_total", ("model", MODEL)), 0.0);
    assert_eq!(count(&scrape, "hlorank_embedding_cache_requests_total", ("result", "miss")), 0.0);
    assert_eq!(count(&scrape, "hlorank_graph_cache_entries", ("index", "source")), 1.0);
    service.rank_configs(within(Duration::from_secs(30), of_tiles(hash, 10))).await.unwrap();
}
