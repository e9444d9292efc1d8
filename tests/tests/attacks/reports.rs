//! Clients that report what they never measured: neither the store nor the rankings of others are theirs.

use hlorank_proto::v1::Adapt;
use hlorank_tests::attackers::{REPORTED_KERNEL, false_reports, report_of};
use hlorank_tests::prelude::*;

use crate::attacked::{Attacked, until_calls};

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
    let bytes = || async {
        attacked
            .scrape()
            .await
            .value("hlorank_measurements_bytes", &[])
    };
    let attack = || {
        let elsewhere = attacked.aim().from_addresses(1);
        false_reports(&elsewhere, 2, "a full board", 100, Duration::from_millis(5))
    };
    let is_full = async |attack: &_| {
        attacked
            .until("its share is full", |scrape| {
                scrape.value("hlorank_measurements_bytes", &[]) > 0.7 * LIMIT
            })
            .await;
        until_calls(attack, 100).await;
    };
    attacked.endures("filled store", attack, is_full).await;
    let before = bytes().await;
    assert!(before <= 0.75 * LIMIT, "{before}");
    let mut calls = CostModelServiceClient::connect(attacked.endpoint().to_owned())
        .await
        .unwrap();
    let report = report_of(TARGET, (1..=TILES).map(f64::from).collect());
    let reported = calls
        .report_measurements(report)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(reported.accepted, TILES);
    assert!(bytes().await > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn false_times_of_a_stranger_do_not_change_what_a_client_learns_from_its_own() {
    let (attacked, _folder) = start().await;
    let mut calls = CostModelServiceClient::connect(attacked.endpoint().to_owned())
        .await
        .unwrap();
    let falling = (1..=TILES)
        .rev()
        .map(|tile| 1e-6 * f64::from(tile))
        .collect();
    calls
        .report_measurements(report_of(TARGET, falling))
        .await
        .unwrap();
    let rank = |own_only| {
        let graph = kernel_graph(graph_of_text(REPORTED_KERNEL));
        let adapt = Adapt {
            target: TARGET.to_owned(),
            use_stored: true,
            own_only,
            ..Adapt::default()
        };
        let request = rank_request(graph, packed_tiles(&grid_tiles(TILES.into()))).with_scores();
        RankConfigsRequest {
            adapt: Some(adapt),
            ..request
        }
    };
    let before = calls.rank_configs(rank(true)).await.unwrap().into_inner();
    // Nothing may remain after the attack, and this connection would.
    drop(calls);
    let attack = || {
        let elsewhere = attacked.aim().from_addresses(1);
        false_reports(&elsewhere, 1, TARGET, TILES, Duration::from_millis(5))
    };
    attacked
        .endures("false times", attack, async |attack| {
            until_calls(attack, 50).await;
        })
        .await;
    let mut calls = CostModelServiceClient::connect(attacked.endpoint().to_owned())
        .await
        .unwrap();
    let after = calls.rank_configs(rank(true)).await.unwrap().into_inner();
    assert_eq!(
        (&after.scores, &after.ranking),
        (&before.scores, &before.ranking)
    );
    let with_all = calls.rank_configs(rank(false)).await.unwrap().into_inner();
    assert_eq!(
        (&with_all.scores, &with_all.ranking),
        (&before.scores, &before.ranking),
        "the client measured every configuration itself"
    );
    let reporters = &with_all.adaptation.unwrap().reporters;
    let names: Vec<&str> = reporters
        .iter()
        .map(|each| each.reporter.as_str())
        .collect();
    assert_eq!(names, ["127.0.0.1", "127.0.0.2"]);
    assert!(reporters[0].times_differ_by > 2.0, "{reporters:?}");
}
