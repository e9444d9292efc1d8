//! Spans are sent over TLS to a collector that the server trusts, and the variables of OpenTelemetry name it.

use hlorank_tests::prelude::*;

use super::{calls::program, collector::Collector};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const AUTHORITIES: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// A collector over TLS, and the file of its authority in a folder.
async fn secured(folder: &tempfile::TempDir) -> (Collector, String) {
    let authority = Authority::new();
    let file = folder.path().join("ca.pem");
    fs::write(&file, &authority.pem).unwrap();
    (
        Collector::start_secured(authority.issue().identity()).await,
        file.to_str().unwrap().to_owned(),
    )
}

/// Starts a server that sends spans without delay, with these variables.
fn start(variables: &[(&str, &str)]) -> ServerProcess {
    let mut program: Command = program(&[]);
    program
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .envs(variables.iter().copied());
    ServerProcess::run(program)
}

async fn call(server: &ServerProcess) {
    server
        .models()
        .await
        .list_models(ListModelsRequest {})
        .await
        .unwrap();
}

#[tokio::test]
async fn a_collector_with_a_certificate_of_a_given_authority_receives_spans() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, authority) = secured(&folder).await;
    let server = start(&[(ENDPOINT, collector.endpoint()), (AUTHORITIES, &authority)]);
    call(&server).await;
    collector.calls(1).await;
    let for_traces = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.endpoint()),
        ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", &authority),
        (ENDPOINT, "http://127.0.0.1:9"),
        ("OTEL_SDK_DISABLED", "true"),
    ];
    let server = start(&for_traces);
    call(&server).await;
    collector.calls(2).await;
    let names_it = |line: &Value| {
        let message = line["fields"]["message"].as_str();
        message.is_some_and(|message| message.contains("OTEL_SDK_DISABLED is ignored"))
    };
    server.lines(1, names_it).await;
}

#[tokio::test]
async fn the_authorities_of_the_system_are_trusted_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, authority) = secured(&folder).await;
    // The variable makes this file the authorities of the system.
    let server = start(&[
        (ENDPOINT, collector.endpoint()),
        ("SSL_CERT_FILE", &authority),
    ]);
    call(&server).await;
    collector.calls(1).await;
}

#[tokio::test]
async fn a_collector_of_another_authority_receives_nothing_and_the_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, authority) = secured(&folder).await;
    fs::write(&authority, Authority::new().pem).unwrap();
    let server = start(&[(ENDPOINT, collector.endpoint()), (AUTHORITIES, &authority)]);
    call(&server).await;
    server
        .lines(1, |line| {
            line["fields"]["message"]
                .as_str()
                .unwrap()
                .contains("spans were lost")
        })
        .await;
    assert!(collector.spans().is_empty());
}

/// Returns standard error of a server that must not start.
fn refusal(variables: &[(&str, &str)]) -> String {
    let output = program(&["--listen=127.0.0.1:0", "--metrics-listen=off"])
        .env(ENDPOINT, "https://127.0.0.1:4317")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn authorities_that_cannot_be_read_are_reported_when_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    fs::write(&empty, "no certificate").unwrap();
    for (file, reason) in [
        ("no/such.pem", "there is no file"),
        (empty.to_str().unwrap(), "no certificate in PEM"),
    ] {
        let refusal = refusal(&[(AUTHORITIES, file)]);
        says!(refusal, file, reason, AUTHORITIES);
    }
}

#[test]
fn a_system_without_authorities_is_reported_when_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().to_str().unwrap();
    let refusal = refusal(&[("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", nothing)]);
    says!(refusal, "native certs", AUTHORITIES);
}

#[test]
fn an_address_that_cannot_be_read_is_reported_when_the_server_starts() {
    let refusal = refusal(&[(ENDPOINT, "collector:4317")]);
    says!(
        refusal,
        "`collector:4317`",
        ENDPOINT,
        "expected http:// or https://"
    );
}
