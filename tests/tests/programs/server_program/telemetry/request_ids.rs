//! A call has an id in its answer, in each of its log lines, and in the details of its error.

use hlorank_tests::prelude::*;
use tonic::metadata::MetadataMap;

use super::calls::{KERNEL, MODEL, is_access, ranking, start, streamed};

const HEADER: &str = "x-request-id";

/// Opcode for which a modified model returns no finite score.
const SPOILED: u8 = 120;

fn returned_id(metadata: &MetadataMap) -> &str {
    metadata.get(HEADER).expect("an id").to_str().unwrap()
}

fn explained(status: &Status) -> String {
    status.get_details_request_info().expect("an id").request_id
}

fn is_made(id: &str) -> bool {
    id.len() == 36 && id.bytes().filter(|&byte| byte == b'-').count() == 4
}

#[tokio::test]
async fn an_id_is_echoed_or_made_and_stands_in_the_log() {
    let server = start(&[]);
    let mut models = server.models().await;
    let given = models
        .list_models(with_headers(ListModelsRequest {}, &[(HEADER, "tune-17")]))
        .await
        .unwrap();
    assert_eq!(returned_id(given.metadata()), "tune-17");
    let made = models.list_models(ListModelsRequest {}).await.unwrap();
    assert!(is_made(returned_id(made.metadata())), "{made:?}");
    let lines = server.lines(2, is_access).await;
    let ids: Vec<&str> = lines
        .iter()
        .map(|line| line["span"]["request_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["tune-17", returned_id(made.metadata())]);
}

#[tokio::test]
async fn a_failure_tells_the_id() {
    let server = start(&[]);
    let mut cost_model = server.cost_model().await;
    let refused = cost_model
        .rank_configs(with_headers(ranking("no HLO", 3), &[(HEADER, "tune-18")]))
        .await;
    let refused = refused.unwrap_err();
    assert_eq!(
        (
            returned_id(refused.metadata()),
            explained(&refused).as_str()
        ),
        ("tune-18", "tune-18")
    );
    assert_eq!(reason(&refused), "HLO_MALFORMED");
    assert!(refused.get_details_bad_request().is_some(), "{refused:?}");

    let messages = tokio_stream::iter(streamed("no HLO", &[]));
    let answer = cost_model
        .rank_configs_stream(with_headers(messages, &[(HEADER, "tune-19")]))
        .await
        .unwrap();
    assert_eq!(returned_id(answer.metadata()), "tune-19");
    let refused = answer.into_inner().message().await.unwrap_err();
    assert_eq!(explained(&refused), "tune-19", "in the trailers");
    assert_eq!(reason(&refused), "HLO_MALFORMED");
}

#[tokio::test]
async fn calls_of_other_services_have_ids() {
    let server = start(&[]);
    let mut health = tonic_health::pb::health_client::HealthClient::new(server.channel().await);
    let check = |service: &str| tonic_health::pb::HealthCheckRequest {
        service: service.to_owned(),
    };
    let healthy = health
        .check(with_headers(check(""), &[(HEADER, "probe")]))
        .await
        .unwrap();
    assert_eq!(returned_id(healthy.metadata()), "probe");
    let unknown = health
        .check(with_headers(check("nobody"), &[(HEADER, "probe")]))
        .await
        .unwrap_err();
    assert_eq!(
        (unknown.code(), explained(&unknown).as_str()),
        (Code::NotFound, "probe")
    );
}

#[tokio::test]
async fn every_line_of_a_call_has_its_ids() {
    let artifacts = Artifacts::copy();
    artifacts.spoil_opcode(MODEL, SPOILED);
    let server = start(&[
        &artifacts.flag(),
        "--max-slowdown=1000",
        "--log=error,access=info,hlorank_server::serve=info",
    ]);
    let mut cost_model = server.cost_model().await;
    let spoiled = KERNEL.replace("negate", hlorank_graph::opcode_name(SPOILED));
    let failed = cost_model
        .rank_configs(with_headers(ranking(&spoiled, 3), &[(HEADER, "tune-20")]))
        .await
        .unwrap_err();
    assert_eq!(failed.code(), Code::Internal, "{failed}");
    let lines = server
        .lines(2, |line| line["span"]["request_id"] == "tune-20")
        .await;
    let messages: Vec<&str> = lines
        .iter()
        .map(|line| line["fields"]["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages, ["internal error", "call ended"]);
    assert_eq!(lines[0]["span"]["trace_id"], lines[1]["span"]["trace_id"]);
    assert_eq!(lines[1]["fields"]["reason"], "MODEL_OUTPUT_INVALID");
}
