//! A call has an id in its answer, in each of its log lines, and in the details of its error.

use hlorank_tests::prelude::*;
use tonic::metadata::MetadataMap;

use super::calls::{KERNEL, MODEL, ranking, start, streamed};

const HEADER: &str = "x-request-id";

/// Opcode for which a modified model returns no finite score.
const SPOILED: u8 = 120;

fn with_id<T>(id: &str, message: T) -> Request<T> {
    with_headers(message, &[(HEADER, id)])
}

fn returned_id(metadata: &MetadataMap) -> &str {
    metadata.get(HEADER).expect("an id").to_str().unwrap()
}

fn explained(status: &Status) -> String {
    status.get_details_request_info().expect("an id").request_id
}

#[tokio::test]
async fn an_id_is_echoed_or_made_and_stands_in_the_log_and_in_errors() {
    let server = start(&[]);
    let mut models = server.models().await;
    let given = models
        .list_models(with_id("tune-17", ListModelsRequest {}))
        .await
        .unwrap();
    assert_eq!(returned_id(given.metadata()), "tune-17");
    let made = models.list_models(ListModelsRequest {}).await.unwrap();
    let made = returned_id(made.metadata());
    assert_eq!((made.len(), made.matches('-').count()), (36, 4), "{made}");
    let lines = server.lines(2, is_access).await;
    let ids: Vec<&Value> = lines
        .iter()
        .map(|line| &line["span"]["request_id"])
        .collect();
    assert_eq!(ids, ["tune-17", made]);

    let mut health = HealthClient::new(server.channel().await);
    let healthy = health
        .check(with_id("probe", HealthCheckRequest::default()))
        .await
        .unwrap();
    assert_eq!(returned_id(healthy.metadata()), "probe");
    let nobody = HealthCheckRequest {
        service: "nobody".to_owned(),
    };
    let unknown = health.check(with_id("probe", nobody)).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert_eq!(returned_id(unknown.metadata()), "probe");
    assert_eq!(explained(&unknown), "probe");

    let messages = tokio_stream::iter(streamed("no HLO", &[]));
    let mut cost_model = server.cost_model().await;
    let answer = cost_model
        .rank_configs_stream(with_id("tune-19", messages))
        .await
        .unwrap();
    assert_eq!(returned_id(answer.metadata()), "tune-19");
    let refused = answer.into_inner().message().await.unwrap_err();
    assert_eq!(explained(&refused), "tune-19", "in the trailers");
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
    let spoiled = KERNEL.replace("negate", hlorank_graph::opcode_name(SPOILED));
    let request = with_id("tune-20", ranking(&spoiled, 3));
    server.rank(request).await.unwrap_err();
    let lines = server
        .lines(2, |line| line["span"]["request_id"] == "tune-20")
        .await;
    let messages: Vec<&Value> = lines
        .iter()
        .map(|line| &line["fields"]["message"])
        .collect();
    assert_eq!(messages, ["internal error", "call ended"]);
    assert_eq!(lines[0]["span"]["trace_id"], lines[1]["span"]["trace_id"]);
    assert_eq!(lines[1]["fields"]["reason"], "MODEL_OUTPUT_INVALID");
}
