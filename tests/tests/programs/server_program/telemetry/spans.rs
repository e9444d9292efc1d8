//! Spans reach a collector with their parent, name and attributes, and never delay a call.

use hlorank_tests::prelude::*;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};

use super::{
    calls::{KERNEL, MODEL, hex, is_access, putting, ranking, streamed},
    collector::{Collector, Manner, attributes},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// Maximum time to stop on a busy machine, less than the drain time.
const SOON: Duration = Duration::from_secs(20);

/// Starts a server that exports spans without delay.
fn start_sending(collector: &Collector, flags: &[&str]) -> ServerProcess {
    ServerProcess::run(sending(collector, flags))
}

fn sending(collector: &Collector, flags: &[&str]) -> Command {
    let mut program = collector.sending(flags);
    program.env("OTEL_BSP_SCHEDULE_DELAY", "50");
    program
}

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

#[tokio::test]
async fn a_call_is_a_span_with_its_stages_below_it() {
    let collector = Collector::start(Manner::Takes).await;
    let server = start_sending(&collector, &[]);
    let mut cost_model = server.cost_model().await;
    let headers = [
        ("traceparent", &*traceparent("01")),
        ("tracestate", "vendor=7"),
        ("x-request-id", "tune-21"),
    ];
    let ranked = cost_model
        // So many that a compute thread reads them, and the call waits for one.
        .rank_configs(with_headers(ranking(KERNEL, 600), &headers))
        .await
        .unwrap()
        .into_inner();

    let call = collector.calls(1).await.remove(0);
    assert_eq!(call.name, "hlorank.v1.CostModelService/RankConfigs");
    assert_eq!(call.kind(), SpanKind::Server);
    assert_eq!(
        (hex(&call.trace_id), hex(&call.parent_span_id)),
        (TRACE.into(), CALLER.into())
    );
    assert_eq!(call.trace_state, "vendor=7");
    assert_eq!(call.status.unwrap_or_default().code(), StatusCode::Unset);
    let found = attributes(&call.attributes);
    for (name, value) in [
        ("rpc.system.name", "grpc"),
        ("rpc.method", "hlorank.v1.CostModelService/RankConfigs"),
        ("rpc.response.status_code", "OK"),
        ("server.address", "127.0.0.1"),
        ("server.port", server.endpoint().rsplit(':').next().unwrap()),
        ("network.peer.address", "127.0.0.1"),
        ("hlorank.request_id", "tune-21"),
        ("hlorank.model", MODEL),
        ("hlorank.graph", &hex(&ranked.graph_hash)),
        ("hlorank.cached", "false"),
        ("hlorank.configs", "600"),
    ] {
        assert_eq!(
            found.get(name).map(String::as_str),
            Some(value),
            "{name}: {found:?}"
        );
    }

    let spans = collector.spans();
    let mut stages: Vec<&Span> = spans
        .iter()
        .filter(|span| span.parent_span_id == call.span_id)
        .collect();
    stages.sort_by_key(|stage| stage.start_time_unix_nano);
    let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(
        names,
        ["featurize", "queue", "parse", "encode", "head", "rank"]
    );
    for stage in stages {
        assert_eq!(stage.trace_id, call.trace_id);
        assert!(
            call.start_time_unix_nano <= stage.start_time_unix_nano,
            "{}",
            stage.name
        );
        assert!(
            stage.start_time_unix_nano <= stage.end_time_unix_nano,
            "{}",
            stage.name
        );
        assert!(
            stage.end_time_unix_nano <= call.end_time_unix_nano,
            "{}",
            stage.name
        );
    }

    let sender = collector.sender();
    assert_eq!(sender["service.name"], "hlorank-server");
    assert_eq!(sender["service.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(sender["service.instance.id"].len(), 36);
    let line = server.lines(1, is_access).await.remove(0);
    assert_eq!(line["span"]["trace_id"], TRACE);
}

#[tokio::test]
async fn failures_and_streams_are_spans_too() {
    let collector = Collector::start(Manner::Takes).await;
    let server = start_sending(&collector, &[]);
    let mut cost_model = server.cost_model().await;
    cost_model.put_graph(putting("no HLO")).await.unwrap_err();
    let call = collector.calls(1).await.remove(0);
    assert_eq!(
        call.status.clone().unwrap_or_default().code(),
        StatusCode::Unset,
        "the client is to blame"
    );
    let found = attributes(&call.attributes);
    assert_eq!(
        (
            found["rpc.response.status_code"].as_str(),
            found["hlorank.reason"].as_str()
        ),
        ("INVALID_ARGUMENT", "HLO_MALFORMED")
    );
    assert!(!found.contains_key("error.type"), "{found:?}");

    let late = with_headers(putting(KERNEL), &[("connect-timeout-ms", "1")]);
    cost_model.put_graph(late).await.unwrap_err();
    let call = collector.calls(2).await.remove(1);
    let found = attributes(&call.attributes);
    assert_eq!(call.status.unwrap_or_default().code(), StatusCode::Error);
    assert_eq!(found["rpc.response.status_code"], "DEADLINE_EXCEEDED");
    assert_eq!(found["error.type"], "DEADLINE_EXCEEDED");

    let messages = tokio_stream::iter(streamed(KERNEL, &[2, 3]));
    let mut answers = cost_model
        .rank_configs_stream(messages)
        .await
        .unwrap()
        .into_inner();
    while answers.message().await.unwrap().is_some() {}
    let call = collector.calls(3).await.remove(2);
    let found = attributes(&call.attributes);
    assert_eq!(
        (
            found["hlorank.batches"].as_str(),
            found["hlorank.configs"].as_str()
        ),
        ("2", "5")
    );
    let encoded = collector.spans();
    let encoded = encoded
        .iter()
        .filter(|span| span.parent_span_id == call.span_id && span.name == "encode");
    assert_eq!(encoded.count(), 2);
}

#[tokio::test]
async fn a_trace_that_no_header_tells_begins_here() {
    let collector = Collector::start(Manner::Takes).await;
    let server = start_sending(&collector, &[]);
    let mut models = server.models().await;
    let malformed = format!("00-{TRACE}-{CALLER}-1");
    models
        .list_models(with_headers(
            ListModelsRequest {},
            &[("traceparent", &malformed)],
        ))
        .await
        .unwrap();
    models.list_models(ListModelsRequest {}).await.unwrap();
    let calls = collector.calls(2).await;
    assert!(
        calls
            .iter()
            .all(|call| call.parent_span_id.is_empty() && hex(&call.trace_id) != TRACE)
    );
    assert_ne!(calls[0].trace_id, calls[1].trace_id);
}

#[tokio::test]
async fn callers_decide_which_of_their_traces_are_sent() {
    let collector = Collector::start(Manner::Takes).await;
    let mut program = sending(&collector, &[]);
    program
        .env("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
        .env("OTEL_TRACES_SAMPLER_ARG", "0");
    let server = ServerProcess::run(program);
    let mut models = server.models().await;
    for _ in 0..5 {
        models.list_models(ListModelsRequest {}).await.unwrap();
    }
    for flags in ["00", "01"] {
        let headers = [("traceparent", &*traceparent(flags))];
        models
            .list_models(with_headers(ListModelsRequest {}, &headers))
            .await
            .unwrap();
    }
    let stopped = server.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    let spans = collector.spans();
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!(hex(&spans[0].trace_id), TRACE);
}

#[tokio::test]
async fn variables_of_opentelemetry_describe_the_server() {
    let collector = Collector::start(Manner::Takes).await;
    let mut program = sending(&collector, &[]);
    program.env("OTEL_SERVICE_NAME", "ranking").env(
        "OTEL_RESOURCE_ATTRIBUTES",
        "service.name=other,service.instance.id=7,deployment.environment.name=test",
    );
    let server = ServerProcess::run(program);
    let mut models = server.models().await;
    models.list_models(ListModelsRequest {}).await.unwrap();
    collector.calls(1).await;
    let sender = collector.sender();
    for (name, value) in [
        ("service.name", "ranking"),
        ("service.instance.id", "7"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("deployment.environment.name", "test"),
    ] {
        assert_eq!(sender[name], value, "{name}");
    }
}

#[tokio::test]
async fn the_last_spans_are_sent_while_the_server_stops() {
    let collector = Collector::start(Manner::Takes).await;
    let mut seldom = collector.sending(&[]);
    seldom.env("OTEL_BSP_SCHEDULE_DELAY", "600000");
    let server = ServerProcess::run(seldom);
    server
        .models()
        .await
        .list_models(ListModelsRequest {})
        .await
        .unwrap();
    let stopped = server.stop().await;
    assert!(
        stopped.status.success() && stopped.took < SOON,
        "{stopped:?}"
    );
    assert_eq!(collector.spans().len(), 1);
}

#[tokio::test]
async fn a_collector_that_goes_away_costs_a_line() {
    let collector = Collector::start(Manner::Takes).await;
    let server = start_sending(&collector, &[]);
    let mut models = server.models().await;
    models.list_models(ListModelsRequest {}).await.unwrap();
    collector.calls(1).await;
    drop(collector);
    for _ in 0..40 {
        let started = Instant::now();
        models.list_models(ListModelsRequest {}).await.unwrap();
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "a call waited: {:?}",
            started.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server
        .lines(1, |line| {
            line["fields"]["message"]
                .as_str()
                .unwrap()
                .contains("spans were lost")
        })
        .await;
    let stopped = server.stop().await;
    assert!(
        stopped.status.success() && stopped.took < SOON,
        "{stopped:?}"
    );
    let lines = stopped.lines();
    let warnings: Vec<_> = lines
        .iter()
        .filter(|line| line["level"] != "INFO")
        .collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[tokio::test]
async fn a_collector_that_freezes_holds_nothing_up() {
    let collector = Collector::start(Manner::Freezes).await;
    let server = start_sending(&collector, &["--drain-seconds=1"]);
    let mut models = server.models().await;
    for _ in 0..100 {
        models.list_models(ListModelsRequest {}).await.unwrap();
    }
    let stopped = server.stop().await;
    // A batch of spans that is being exported has five seconds.
    assert!(
        stopped.status.success() && stopped.took < Duration::from_secs(5),
        "{stopped:?}"
    );
}
