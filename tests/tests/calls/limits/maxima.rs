//! Every documented maximum that one message can reach is accepted in one message: no limit makes another unreachable.

use hlorank_proto::v1::Adapt;
use hlorank_tests::prelude::*;

use crate::limits::{
    open_call::{OpenCall, framed},
    request::{kernel, tiles, wide_tiles},
};

const REPORT: &str = "/hlorank.v1.CostModelService/ReportMeasurements";

/// Measurements of a report, and of a call.
const REPORTED: usize = 10_000;
const LEARNED: usize = 2_000;

async fn with_store(folder: &Path) -> TestServer {
    let store = store_flag(folder);
    TestServer::start_with(&[&store, "--max-measurements-bytes=1073741824"]).await
}

/// Returns ids of the maximum length, each another.
fn ids(count: usize) -> Vec<prost::bytes::Bytes> {
    (0..count)
        .map(|number| format!("{number:064}").into_bytes().into())
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
        ids: ids(REPORTED),
        reporter: "r".repeat(256),
        reported_at: vec![253_402_300_799; REPORTED],
        leases: (0..REPORTED)
            .map(|number| format!("{number:016}").into_bytes().into())
            .collect(),
        search: "s".repeat(64),
        machine: "m".repeat(256),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_has_as_many_measurements_with_ids_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_store(folder.path()).await;
    let answer = server
        .cost_model()
        .await
        .report_measurements(report())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.accepted as usize, REPORTED);
    let mut past = report();
    past.ids.push(vec![1].into());
    let refused = server
        .cost_model()
        .await
        .report_measurements(past)
        .await
        .unwrap_err();
    says!(refused.message(), "ids");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_a_client_sends_one_by_one_count_as_those_in_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let server = with_store(folder.path()).await;
    let whole = report();
    let lists = ReportMeasurementsRequest {
        seconds: vec![],
        repeats: vec![],
        failures: vec![],
        ..whole.clone()
    };
    let mut message = lists.encode_to_vec();
    for number in 0..REPORTED {
        // Fields 4 to 6 without a list: a double, and two numbers.
        message.push(4 << 3 | 1);
        message.extend(whole.seconds[number].to_le_bytes());
        message.extend([5 << 3, 1, 6 << 3, 0]);
    }
    let call = OpenCall::open(&server.channel().await, REPORT);
    call.send(framed(0, &message));
    let status = call.ended().await;
    assert_eq!(status.code(), tonic::Code::Ok, "{status}");
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
        ids: ids(LEARNED),
        ..Adapt::default()
    });
    let answer = server.rank(request).await.unwrap();
    // 64 of the tiles are distinct.
    assert_eq!(answer.adaptation.unwrap().measured_configs, 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_as_many_configurations_as_documented() {
    let server = TestServer::start().await;
    let mut service = CostModelServiceClient::new(server.channel().await)
        .max_encoding_message_size(usize::MAX)
        .max_decoding_message_size(usize::MAX);
    let request = rank_request(kernel(), tiles(500_000));
    let answer = service.rank_configs(request).await.unwrap().into_inner();
    assert_eq!(answer.ranking.len(), 500_000);
}
