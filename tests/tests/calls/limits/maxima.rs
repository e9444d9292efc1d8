//! Every documented maximum that one message can reach is accepted in one message: no limit makes another unreachable.

use hlorank_proto::v1::Adapt;
use hlorank_tests::prelude::*;

use crate::limits::{
    open_call::status_of,
    request::{kernel, tiles, wide_tiles},
};

const REPORT: &str = "/hlorank.v1.CostModelService/ReportMeasurements";

/// Enough for a report.
const STORE_BYTES: &str = "--max-measurements-bytes=1073741824";

/// Measurements of a report, and of a call.
const REPORTED: usize = 10_000;
const LEARNED: usize = 2_000;

/// Returns distinct ids of this number of digits.
fn ids(count: usize, digits: usize) -> Vec<Bytes> {
    (0..count)
        .map(|number| format!("{number:0digits$}").into())
        .collect()
}

/// Returns a report in which every list is as long, and every text as long, as it may be.
fn report() -> ReportMeasurementsRequest {
    ReportMeasurementsRequest {
        graph: Some(kernel()),
        target: "t".repeat(256),
        batch: Some(config_batch(wide_tiles(REPORTED, 64))),
        seconds: vec![0.5; REPORTED],
        repeats: vec![1_000_000; REPORTED],
        failures: vec![0; REPORTED],
        ids: ids(REPORTED, 64),
        reporter: "r".repeat(256),
        reported_at: vec![253_402_300_799; REPORTED],
        leases: ids(REPORTED, 16),
        search: "s".repeat(64),
        machine: "m".repeat(256),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_has_as_many_measurements_with_ids_as_documented() {
    let (_folder, server, _) = storing_server(&[STORE_BYTES]).await;
    let answer = server
        .cost_model()
        .await
        .report_measurements(report())
        .await;
    assert_eq!(answer.unwrap().into_inner().accepted as usize, REPORTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_a_client_sends_one_by_one_count_as_those_in_a_list() {
    let (_folder, server, _) = storing_server(&[STORE_BYTES]).await;
    let mut lists = report();
    let seconds = std::mem::take(&mut lists.seconds);
    lists.repeats.clear();
    lists.failures.clear();
    let mut message = lists.encode_to_vec();
    for number in seconds {
        // Fields 4 to 6 without a list: a double, and two numbers.
        message.push(4 << 3 | 1);
        message.extend(number.to_le_bytes());
        message.extend([5 << 3, 1, 6 << 3, 0]);
    }
    let status = status_of(&server.channel().await, REPORT, &message).await;
    assert_eq!(status.code(), Code::Ok, "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_as_many_measured_configurations_with_ids_as_documented() {
    let server = TestServer::start().await;
    let mut request = rank_request(kernel(), tiles(3));
    request.adapt = Some(Adapt {
        target: "t".repeat(256),
        batch: Some(config_batch(wide_tiles(LEARNED, 64))),
        seconds: vec![0.5; LEARNED],
        repeats: vec![1; LEARNED],
        failures: vec![0; LEARNED],
        ids: ids(LEARNED, 64),
        ..Adapt::default()
    });
    let answer = server.rank(request).await.unwrap();
    // 64 of the tiles are distinct.
    assert_eq!(answer.adaptation.unwrap().measured_configs, 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_as_many_configurations_as_documented() {
    let server = TestServer::start().await;
    let request = rank_request(kernel(), tiles(500_000));
    assert_eq!(server.rank(request).await.unwrap().ranking.len(), 500_000);
}
