//! The audit log says who changed what the server serves and keeps, also what was refused, and nothing from outside forges a line.

use hlorank_proto::onnx::GraphProto;
use hlorank_proto::v1::{
    DecideRequest, DecisionKey, DeleteMeasurementsRequest, PinRequest, Proposal, RollbackRequest,
    SetCanaryRequest, UnpinRequest, decide_request::Step,
};
use hlorank_tests::{
    onnx::{append, node},
    prelude::*,
};

use super::calls::{KERNEL, MODEL, by_text, program, start};
use crate::server_program::log_file::start_logging_to;

/// A target, which clients name, and which would begin a line of its own and colour it.
const TARGET: &str = "cpu\n2026-01-01T00:00:00Z  INFO forged\u{1b}[31m\u{9b}2J\u{202e}";

/// Two versions of the model. The newer one serves unless the other is pinned.
const FIRST: u64 = 101;
const NEXT: u64 = 102;

/// Letters that control a terminal or begin a line.
const CONTROLS: [char; 3] = ['\u{1b}', '\u{9b}', '\u{202e}'];

fn is_audit(line: &Value) -> bool {
    line["target"] == "audit"
}

/// A message with a token, whose name is the token, and an id of its call.
fn by<T>(token: &str, id: &str, message: T) -> Request<T> {
    let bearer = format!("Bearer {token}");
    with_headers(message, &[("authorization", &bearer), ("x-request-id", id)])
}

fn report_of(reporter: &str) -> ReportMeasurementsRequest {
    ReportMeasurementsRequest {
        graph: Some(by_text(KERNEL)),
        target: TARGET.to_owned(),
        batch: Some(config_batch(packed_tiles(&grid_tiles(4)))),
        seconds: vec![1.0, 2.0, 3.0, 4.0],
        reporter: reporter.to_owned(),
        ..ReportMeasurementsRequest::default()
    }
}

/// Makes the changes of a day, one after the other, each with an id.
async fn make_changes(server: &ServerProcess) {
    let mut admin = server.admin_calls().await;
    let mut cost_model = server.cost_model().await;
    let name = MODEL.to_owned();
    let pin = |version| PinRequest {
        name: MODEL.to_owned(),
        version,
    };
    admin.pin(by("boss", "1", pin(FIRST))).await.unwrap();
    let canary = SetCanaryRequest {
        name: name.clone(),
        version: NEXT,
        percent: 10,
    };
    admin.set_canary(by("boss", "2", canary)).await.unwrap();
    let unpin = UnpinRequest { name: name.clone() };
    admin.unpin(by("boss", "3", unpin)).await.unwrap();
    let rollback = RollbackRequest { name };
    admin.rollback(by("boss", "4", rollback)).await.unwrap();
    let reload = by("boss", "5", ReloadRequest {});
    admin.reload(reload).await.unwrap();
    for (client, id, version) in [
        ("boss", "6", 99),
        ("ci", "7", FIRST),
        ("nobody", "8", FIRST),
    ] {
        let pin = by(client, id, pin(version));
        admin.pin(pin).await.unwrap_err();
    }
    let own = by("ci", "own", report_of(""));
    cost_model.report_measurements(own).await.unwrap();
    let import = by("boss", "9", report_of("ann"));
    cost_model.report_measurements(import).await.unwrap();
    let import = by("ci", "10", report_of("ann"));
    cost_model.report_measurements(import).await.unwrap_err();
    let delete = DeleteMeasurementsRequest {
        reporter: "ann".to_owned(),
        target: TARGET.to_owned(),
        ..DeleteMeasurementsRequest::default()
    };
    let refused = by("ci", "11", delete.clone());
    cost_model.delete_measurements(refused).await.unwrap_err();
    let delete = by("boss", "12", delete);
    cost_model.delete_measurements(delete).await.unwrap();
    let decide = |supersede| DecideRequest {
        key: Some(DecisionKey {
            namespace: "space".to_owned(),
            key: "gemm".into(),
            target: TARGET.to_owned(),
        }),
        step: Some(Step::Propose(Proposal {
            value: "{}".into(),
            supersede,
            ..Proposal::default()
        })),
        ..DecideRequest::default()
    };
    cost_model.decide(by("ci", "13", decide(0))).await.unwrap();
    // What was decided already changes nothing.
    cost_model.decide(by("ci", "-", decide(0))).await.unwrap();
    let supersede = by("ci", "14", decide(1));
    cost_model.decide(supersede).await.unwrap_err();
}

#[tokio::test]
async fn every_change_of_a_day_has_a_line_that_says_who_made_it_and_how_it_ended() {
    let (files, artifacts) = (Files::new(), Artifacts::copy());
    let tokens = [("boss", "read,admin"), ("ci", "read,report")];
    let lines = tokens.map(|(name, scopes)| token_line(name, scopes, name));
    files.write("tokens", &lines.concat());
    for version in [FIRST, NEXT] {
        artifacts.publish(MODEL, version, |_| ());
    }
    let mut program = program(&["--admin-listen=127.0.0.1:0", "--max-slowdown=1000"]);
    program
        .args(files.flags())
        .args([artifacts.flag(), store_flag(files.folder())]);
    let server = ServerProcess::run(program);
    make_changes(&server).await;
    server.signal("HUP");
    let by_signal = |line: &Value| is_audit(line) && line["fields"]["client"].is_null();
    let is_reload = |line: &Value| by_signal(line) && line["fields"]["action"] == "Reload";
    server.lines(1, is_reload).await;

    let stopped = server.stop().await;
    let mut asked = stopped.lines();
    asked.retain(|line| is_audit(line) && !by_signal(line));
    let asked = asked.iter_mut().map(|line| {
        let mut fields = line["fields"].take();
        let entry = fields.as_object_mut().unwrap();
        assert_eq!(entry.remove("message").unwrap(), "change ended");
        entry.remove("graph");
        entry.insert("id".to_owned(), line["span"]["request_id"].take());
        fields
    });
    let expected = [
        json!({"id": "1", "action": "Pin", "client": "boss", "model": MODEL, "version": FIRST, "code": "OK"}),
        json!({"id": "2", "action": "SetCanary", "client": "boss", "model": MODEL, "version": NEXT, "percent": 10, "code": "OK"}),
        json!({"id": "3", "action": "Unpin", "client": "boss", "model": MODEL, "version": NEXT, "code": "OK"}),
        json!({"id": "4", "action": "Rollback", "client": "boss", "model": MODEL, "version": FIRST, "code": "OK"}),
        json!({"id": "5", "action": "Reload", "client": "boss", "code": "OK"}),
        json!({"id": "6", "action": "Pin", "client": "boss", "model": MODEL, "version": 99,
               "code": "NOT_FOUND", "reason": "MODEL_NOT_FOUND"}),
        json!({"id": "7", "action": "Pin", "client": "ci", "code": "PERMISSION_DENIED", "reason": "SCOPE_MISSING"}),
        json!({"id": "8", "action": "Pin", "client": "127.0.0.1", "code": "UNAUTHENTICATED", "reason": "TOKEN_UNKNOWN"}),
        json!({"id": "9", "action": "ReportMeasurements", "client": "boss", "reporter": "ann", "target": TARGET, "measurements": 4,
               "code": "OK"}),
        json!({"id": "10", "action": "ReportMeasurements", "client": "ci", "reporter": "ann",
               "code": "PERMISSION_DENIED", "reason": "SCOPE_MISSING"}),
        json!({"id": "11", "action": "DeleteMeasurements", "client": "ci", "code": "PERMISSION_DENIED", "reason": "SCOPE_MISSING"}),
        json!({"id": "12", "action": "DeleteMeasurements", "client": "boss", "reporter": "ann", "target": TARGET, "measurements": 4,
               "code": "OK"}),
        json!({"id": "13", "action": "Decide", "client": "ci", "decision": "space gemm", "target": TARGET, "version": 1, "code": "OK"}),
        json!({"id": "14", "action": "Decide", "client": "ci", "decision": "space gemm", "target": TARGET, "version": 2,
               "code": "PERMISSION_DENIED", "reason": "SCOPE_MISSING"}),
    ];
    assert_eq!(asked.collect::<Vec<Value>>(), expected);
    let mut loads = stopped.lines();
    loads.retain(|line| line["fields"]["action"] == "Load" && line["fields"]["code"] == "OK");
    let loaded: BTreeSet<u64> = loads
        .iter()
        .filter(|line| line["fields"]["model"] == MODEL)
        .map(|line| line["fields"]["version"].as_u64().unwrap())
        .collect();
    assert_eq!(loaded, BTreeSet::from([FIRST, NEXT]));
    // The target is escaped in JSON, too.
    assert!(!stopped.log.contains(CONTROLS), "{}", stopped.log);

    let page = fs::read_to_string(repository("docs/logs-and-traces.md")).unwrap();
    let fields = expected
        .iter()
        .flat_map(|line| line.as_object().unwrap().keys());
    for field in fields.filter(|field| *field != "id") {
        says!(page, format!("`{field}`"));
    }
}

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_has_its_address_in_the_log() {
    let server = start(&["--trusted-proxies=127.0.0.1"]);
    let headers = [("x-forwarded-for", "192.0.2.7")];
    let request = with_headers(ListModelsRequest {}, &headers);
    server.models().await.list_models(request).await.unwrap();
    let line = server.lines(1, is_access).await.remove(0);
    assert_eq!(line["fields"]["client"], "192.0.2.7");
}

#[tokio::test]
async fn a_name_forges_no_line_of_a_log_in_text_and_no_label_of_a_metric() {
    let artifacts = Artifacts::copy();
    // The error of ONNX Runtime quotes the name of an operator.
    artifacts.publish(MODEL, NEXT, |version| {
        let unknown = GraphProto {
            node: vec![node(TARGET, &["segment"], "unknown", vec![])],
            ..GraphProto::default()
        };
        artifacts.edit_file(version, "encoder.onnx", |model| append(model, unknown));
    });
    let folder = tempfile::tempdir().unwrap();
    let store = store_flag(folder.path());
    let log = folder.path().join("log");
    let (mut server, serving) = start_logging_to(
        &log,
        &mut program(&[&artifacts.flag(), &store, "--log-format=text"]),
    );
    let value = |field: &str| {
        let (_, rest) = serving.split_once(field).unwrap();
        rest.split(' ').next().unwrap().to_owned()
    };
    let endpoint = format!("http://{}", value("address="));
    let mut cost_model = CostModelServiceClient::connect(endpoint).await.unwrap();
    cost_model
        .report_measurements(report_of("ann"))
        .await
        .unwrap();
    let metrics = value("metrics=").parse().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    let scrape = loop {
        let (_, text) = http_get(metrics, "/metrics").await;
        if text.contains("forged") || Instant::now() > deadline {
            break text;
        }
        sleep(Duration::from_millis(100)).await;
    };
    server.kill().unwrap();
    server.wait().unwrap();
    for text in [fs::read_to_string(log).unwrap(), scrape] {
        says!(text, "forged");
        assert!(!text.contains(CONTROLS), "{text}");
        let forged = text.lines().find(|line| line.starts_with("2026-01-01"));
        assert_eq!(forged, None, "{text}");
    }
}
