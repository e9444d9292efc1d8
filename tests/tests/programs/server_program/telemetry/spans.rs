//! Spans reach a collector with their parent, name and attributes, and never delay a call.

use hlorank_tests::prelude::*;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};

use super::{
    calls::{KERNEL, MODEL, hex, putting, ranking, stream},
    collector::{Collector, Manner, attributes},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// Maximum time to stop on a busy machine, less than the drain time.
const SOON: Duration = Duration::from_secs(20);

/// Asserts that a server ends well, whatever became of its spans.
fn assert_ended_soon(stopped: &Stopped) {
    assert!(
        stopped.status.success() && stopped.took < SOON,
        "{stopped:?}"
    );
}

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

/// Makes a call that belongs to a trace.
async fn call_within(trace: &str, models: &mut ModelServiceClient<Channel>) {
    let request = with_headers(ListModelsRequest {}, &[("traceparent", trace)]);
    models.list_models(request).await.unwrap();
}

#[tokio::test]
async fn a_call_is_a_span_with_its_stages_below_it() {
    let collector = Collector::start(Manner::Takes).await;
    let server = ServerProcess::run(collector.program(&[]));
    let headers = [
        ("traceparent", &*traceparent("01")),
        ("tracestate", "vendor=7"),
        ("x-request-id", "tune-21"),
    ];
    // So many that a compute thread reads them, and the call waits for one.
    let request = with_headers(ranking(KERNEL, 600), &headers);
    let ranked = server.rank(request).await.unwrap();

    let call = collector.calls(1).await.remove(0);
    assert_eq!(call.name, "hlorank.v1.CostModelService/RankConfigs");
    assert_eq!(call.kind(), SpanKind::Server);
    assert_eq!(hex(&call.trace_id), TRACE);
    assert_eq!(hex(&call.parent_span_id), CALLER);
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
        assert_eq!(found[name], value, "{name}");
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
        let times = [
            call.start_time_unix_nano,
            stage.start_time_unix_nano,
            stage.end_time_unix_nano,
            call.end_time_unix_nano,
        ];
        assert!(times.is_sorted(), "{}: {times:?}", stage.name);
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
    let server = ServerProcess::run(collector.program(&[]));
    let mut cost_model = server.cost_model().await;
    cost_model.put_graph(putting("no HLO")).await.unwrap_err();
    let call = collector.calls(1).await.remove(0);
    let found = attributes(&call.attributes);
    let status = call.status.unwrap_or_default().code();
    assert_eq!(status, StatusCode::Unset, "the client is to blame");
    assert_eq!(found["rpc.response.status_code"], "INVALID_ARGUMENT");
    assert_eq!(found["hlorank.reason"], "HLO_MALFORMED");
    assert!(!found.contains_key("error.type"), "{found:?}");

    let late = with_headers(putting(KERNEL), &[("connect-timeout-ms", "1")]);
    cost_model.put_graph(late).await.unwrap_err();
    let call = collector.calls(2).await.remove(1);
    let found = attributes(&call.attributes);
    assert_eq!(call.status.unwrap_or_default().code(), StatusCode::Error);
    assert_eq!(found["rpc.response.status_code"], "DEADLINE_EXCEEDED");
    assert_eq!(found["error.type"], "DEADLINE_EXCEEDED");

    stream(&mut cost_model, KERNEL, &[2, 3]).await.unwrap();
    let call = collector.calls(3).await.remove(2);
    let found = attributes(&call.attributes);
    assert_eq!(found["hlorank.batches"], "2");
    assert_eq!(found["hlorank.configs"], "5");
    let mut encoded = collector.spans();
    encoded.retain(|span| span.parent_span_id == call.span_id && span.name == "encode");
    assert_eq!(encoded.len(), 2);
}

#[tokio::test]
async fn a_trace_that_no_header_tells_begins_here() {
    let collector = Collector::start(Manner::Takes).await;
    let server = ServerProcess::run(collector.program(&[]));
    let mut models = server.models().await;
    let malformed = traceparent("1");
    call_within(&malformed, &mut models).await;
    models.list_models(ListModelsRequest {}).await.unwrap();
    let calls = collector.calls(2).await;
    for call in &calls {
        assert!(call.parent_span_id.is_empty(), "{call:?}");
        assert_ne!(hex(&call.trace_id), TRACE);
    }
    assert_ne!(calls[0].trace_id, calls[1].trace_id);
}

#[tokio::test]
async fn callers_decide_which_of_their_traces_are_sent_and_the_last_are_sent_while_the_server_stops()
 {
    let collector = Collector::start(Manner::Takes).await;
    let mut program = collector.program(&[]);
    program
        .env("OTEL_BSP_SCHEDULE_DELAY", "600000")
        .env("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
        .env("OTEL_TRACES_SAMPLER_ARG", "0");
    let server = ServerProcess::run(program);
    let mut models = server.models().await;
    for _ in 0..5 {
        models.list_models(ListModelsRequest {}).await.unwrap();
    }
    for flags in ["00", "01"] {
        call_within(&traceparent(flags), &mut models).await;
    }
    assert_ended_soon(&server.stop().await);
    let spans = collector.spans();
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!(hex(&spans[0].trace_id), TRACE);
}

#[tokio::test]
async fn variables_of_opentelemetry_describe_the_server_and_others_are_reported() {
    let collector = Collector::start(Manner::Takes).await;
    let mut program = collector.program(&[]);
    program
        .env("OTEL_SERVICE_NAME", "ranking")
        .env(
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=other,service.instance.id=7,deployment.environment.name=test",
        )
        .env("OTEL_SDK_DISABLED", "true");
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
    let unread = with_message("OTEL_SDK_DISABLED is ignored");
    server.lines(1, unread).await;
}

#[tokio::test]
async fn a_collector_that_goes_away_costs_a_line() {
    let collector = Collector::start(Manner::Takes).await;
    let server = ServerProcess::run(collector.program(&[]));
    let mut models = server.models().await;
    models.list_models(ListModelsRequest {}).await.unwrap();
    collector.calls(1).await;
    drop(collector);
    for _ in 0..40 {
        let started = Instant::now();
        models.list_models(ListModelsRequest {}).await.unwrap();
        let waited = started.elapsed();
        assert!(waited < Duration::from_secs(2), "a call waited: {waited:?}");
        sleep(Duration::from_millis(20)).await;
    }
    server.lines(1, with_message("spans were lost")).await;
    let stopped = server.stop().await;
    assert_ended_soon(&stopped);
    let mut warnings = stopped.lines();
    warnings.retain(|line| line["level"] != "INFO");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[tokio::test]
async fn a_collector_that_freezes_holds_nothing_up() {
    let collector = Collector::start(Manner::Freezes).await;
    let server = ServerProcess::run(collector.program(&["--drain-seconds=1"]));
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
