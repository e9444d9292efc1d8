//! Clients that report what they never measured: neither the store nor the rankings of others are theirs.

use hlorank_proto::v1::Adapt;
use hlorank_tests::attackers::{REPORTED_KERNEL, false_reports, report_of};
use hlorank_tests::prelude::*;

use crate::attacked::{Attacked, until_sent};

const TARGET: &str = "a board";
const TILES: u32 = 30;

/// Bytes of the store.
const LIMIT: f64 = 2_000_000.0;

async fn start() -> (Attacked, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = store_flag(folder.path());
    let attacked = Attacked::start(&[&file, &format!("--max-measurements-bytes={LIMIT}")]).await;
    (attacked, folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_fills_the_store_leaves_room_for_others() {
    let (attacked, _folder) = start().await;
    let bytes = |scrape: &Scrape| scrape.value("hlorank_measurements_bytes", &[]);
    let attack = || {
        let elsewhere = attacked.aim().from_addresses(1);
        false_reports(&elsewhere, 2, "a full board", 100, Duration::from_millis(5))
    };
    let is_full = async |attack: &_| {
        let has_its_share = |scrape: &Scrape| bytes(scrape) > 0.7 * LIMIT;
        attacked.server.until_metrics(has_its_share).await;
        until_sent(attack, |sent| sent.calls() >= 100).await;
    };
    attacked.endures("filled store", attack, is_full).await;
    let before = bytes(&attacked.server.scrape().await);
    assert!(before <= 0.75 * LIMIT, "{before}");
    let report = report_of(TARGET, (1..=TILES).map(f64::from).collect());
    let mut calls = attacked.server.cost_model().await;
    let reported = calls.report_measurements(report).await.unwrap();
    assert_eq!(reported.into_inner().accepted, TILES);
    assert!(bytes(&attacked.server.scrape().await) > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_times_of_a_stranger_do_not_change_what_a_client_learns_from_its_own() {
    let (attacked, _folder) = start().await;
    let tiles = (1..=TILES).rev();
    let falling = tiles.map(|tile| 1e-6 * f64::from(tile)).collect();
    let report = report_of(TARGET, falling);
    // Nothing may remain after the attack, and a connection would.
    let mut calls = attacked.server.cost_model().await;
    calls.report_measurements(report).await.unwrap();
    drop(calls);
    let rank = |own_only| {
        let graph = kernel_graph(graph_of_text(REPORTED_KERNEL));
        let adapt = Adapt {
            target: TARGET.to_owned(),
            use_stored: true,
            own_only,
            ..Adapt::default()
        };
        RankConfigsRequest {
            adapt: Some(adapt),
            ..rank_request(graph, packed_tiles(&grid_tiles(TILES.into()))).with_scores()
        }
    };
    let before = attacked.server.rank(rank(true)).await.unwrap();
    let attack = || {
        let elsewhere = attacked.aim().from_addresses(1);
        false_reports(&elsewhere, 1, TARGET, TILES, Duration::from_millis(5))
    };
    attacked
        .endures("false times", attack, async |attack| {
            until_sent(attack, |sent| sent.calls() >= 50).await;
        })
        .await;
    let after = attacked.server.rank(rank(true)).await.unwrap();
    let with_all = attacked.server.rank(rank(false)).await.unwrap();
    for (whose, ranking) in [
        ("the client", &after),
        (
            "everybody, though the client measured every configuration itself",
            &with_all,
        ),
    ] {
        assert_eq!(ranking.scores, before.scores, "by the times of {whose}");
        assert_eq!(ranking.ranking, before.ranking, "by the times of {whose}");
    }
    let reporters = &with_all.adaptation.unwrap().reporters;
    let names: Vec<&str> = reporters
        .iter()
        .map(|each| each.reporter.as_str())
        .collect();
    assert_eq!(names, ["127.0.0.1", "127.0.0.2"]);
    assert!(reporters[0].times_differ_by > 2.0, "{reporters:?}");
}
