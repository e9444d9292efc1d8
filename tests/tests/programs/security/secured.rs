//! Clients of a server with certificates and tokens.

use hlorank_tests::prelude::*;
use tonic::transport::{ClientTlsConfig, Error};

/// Returns a TLS configuration for a server on loopback whose certificate these authorities issued.
pub(crate) fn trusting(authorities: &[&Authority]) -> ClientTlsConfig {
    ClientTlsConfig::new()
        .domain_name("localhost")
        .ca_certificates(authorities.iter().map(|authority| authority.certificate()))
}

/// Connects over TLS to a test server that reports an `http://` address.
pub(crate) async fn connect(endpoint: &str, tls: ClientTlsConfig) -> Result<Channel, Error> {
    let endpoint = Endpoint::from_shared(over_tls(endpoint))?;
    endpoint.tls_config(tls)?.connect().await
}

/// Lists the models over a connection.
pub(crate) async fn list_models(channel: Channel) -> Result<usize, Status> {
    let answer = ModelServiceClient::new(channel)
        .list_models(ListModelsRequest {})
        .await;
    answer.map(|answer| answer.into_inner().models.len())
}

/// Returns the number of connections to the gRPC listener with this result.
pub(crate) fn connections(scrape: &Scrape, result: &str) -> f64 {
    scrape.value(
        "hlorank_connections_total",
        &[("listener", "calls"), ("result", result)],
    )
}

/// Returns the number of file reloads with this result.
pub(crate) fn reloads(scrape: &Scrape, credential: &str, result: &str) -> f64 {
    scrape.value(
        "hlorank_credential_reloads_total",
        &[("credential", credential), ("result", result)],
    )
}

/// Waits until this number of file reloads had this result.
pub(crate) async fn until_reloads(server: &TestServer, credential: &str, result: &str, count: f64) {
    server
        .until_metrics(|scrape| reloads(scrape, credential, result) >= count)
        .await;
}
