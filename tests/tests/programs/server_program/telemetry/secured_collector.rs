//! Spans are sent over TLS to a collector that the server trusts, and the variables of OpenTelemetry name it.

use hlorank_tests::prelude::*;

use super::{calls::program, collector::Collector};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const AUTHORITIES: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// A collector over TLS, and the file of its authority in a folder.
async fn secured(folder: &TempDir) -> (Collector, String) {
    let authority = Authority::new();
    let file = folder.path().join("ca.pem");
    fs::write(&file, &authority.pem).unwrap();
    (
        Collector::start_secured(authority.issue().identity()).await,
        file.to_str().unwrap().to_owned(),
    )
}

/// Calls a server that sends spans without delay, with these variables.
async fn call(variables: &[(&str, &str)]) -> ServerProcess {
    let mut program = program(&[]);
    program
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .envs(variables.iter().copied());
    let server = ServerProcess::run(program);
    let mut models = server.models().await;
    models.list_models(ListModelsRequest {}).await.unwrap();
    server
}

#[tokio::test]
async fn a_collector_whose_authority_is_trusted_receives_spans() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, authority) = secured(&folder).await;
    let for_traces = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.endpoint()),
        ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", &authority),
        (ENDPOINT, "http://127.0.0.1:9"),
    ];
    let for_all = [(ENDPOINT, collector.endpoint()), (AUTHORITIES, &authority)];
    // This variable makes the file the authorities of the system, which are trusted by default.
    let of_system = [
        (ENDPOINT, collector.endpoint()),
        ("SSL_CERT_FILE", &authority),
    ];
    for (calls, variables) in (1..).zip([&for_all[..], &for_traces, &of_system]) {
        let _server = call(variables).await;
        collector.calls(calls).await;
    }
}

#[tokio::test]
async fn a_collector_of_another_authority_receives_nothing_and_the_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, authority) = secured(&folder).await;
    fs::write(&authority, Authority::new().pem).unwrap();
    let server = call(&[(ENDPOINT, collector.endpoint()), (AUTHORITIES, &authority)]).await;
    server.lines(1, with_message("spans were lost")).await;
    assert!(collector.spans().is_empty());
}

#[test]
fn a_collector_or_an_authority_that_cannot_be_used_is_reported_when_the_server_starts() {
    let (folder, nothing) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let empty = folder.path().join("empty.pem");
    fs::write(&empty, "no certificate").unwrap();
    let (empty, nothing) = (empty.to_str().unwrap(), nothing.path().to_str().unwrap());
    for (variables, words) in [
        (
            &[(AUTHORITIES, "no/such.pem")][..],
            &["no/such.pem", "there is no file", AUTHORITIES][..],
        ),
        (
            &[(AUTHORITIES, empty)],
            &[empty, "no certificate in PEM", AUTHORITIES],
        ),
        (
            &[("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", nothing)],
            &["native certs", AUTHORITIES],
        ),
        (
            &[(ENDPOINT, "collector:4317")],
            &["`collector:4317`", ENDPOINT, "expected http:// or https://"],
        ),
    ] {
        let mut server = program(&[]);
        server
            .env(ENDPOINT, "https://127.0.0.1:4317")
            .envs(variables.iter().copied());
        let refusal = refused_start(&mut server);
        for word in words {
            says!(refusal, word);
        }
    }
}
