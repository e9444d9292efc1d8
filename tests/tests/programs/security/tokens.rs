//! Bearer tokens and their scopes.

use hlorank_tests::prelude::*;
use hlorank_tests::security::token_line as line;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest,
};

use crate::security::secured::until_reloads;

/// Makes an empty call, and returns why it is refused: for its fields if its token is accepted.
async fn rank(server: &TestServer, headers: &[(&str, &str)]) -> String {
    let request = with_headers(RankConfigsRequest::default(), headers);
    reason(&server.rank(request).await.unwrap_err())
}

/// Asserts that a call was answered, or refused for a reason.
fn check<T>(answer: Result<T, Status>, expected: Option<&str>) {
    let refused = answer.err().map(|status| {
        let info = status.get_details_error_info().unwrap();
        assert_eq!(info.domain, "hlorank");
        info.reason
    });
    assert_eq!(refused.as_deref(), expected);
}

#[tokio::test]
async fn a_token_is_good_for_its_scopes() {
    let files = Files::new();
    let lines = [
        line("ci", "read", "r"),
        line("operator", "admin", "a"),
        line("both", "admin,read", "b"),
    ];
    files.write("tokens", &lines.concat());
    let server = files.start_with(&["--admin-listen=127.0.0.1:0"]).await;
    let admin = Channel::from_shared(server.admin_endpoint().unwrap()).unwrap();
    let listeners = [server.channel().await, admin.connect().await.unwrap()];
    let [missing, unknown, scope] = ["TOKEN_MISSING", "TOKEN_UNKNOWN", "SCOPE_MISSING"];
    for (authorization, read, admin) in [
        (None, Some(missing), Some(missing)),
        (Some("Basic r"), Some(missing), Some(missing)),
        (Some("Bearer x"), Some(unknown), Some(unknown)),
        (Some("Bearer r"), None, Some(scope)),
        (Some("Bearer a"), Some(scope), None),
        (Some("Bearer b"), None, None),
    ] {
        let header = authorization.map(|value| ("authorization", value));
        let headers = header.as_slice();
        assert_eq!(
            rank(&server, headers).await,
            read.unwrap_or("FIELD_MISSING"),
            "{authorization:?}"
        );
        let reload = with_headers(ReloadRequest {}, headers);
        check(server.admin_calls().await.reload(reload).await, admin);
        for listener in &listeners {
            let health = with_headers(HealthCheckRequest::default(), headers);
            let mut client = HealthClient::new(listener.clone());
            check(client.check(health).await, None);
            let list = ServerReflectionRequest {
                host: String::new(),
                message_request: Some(MessageRequest::ListServices(String::new())),
            };
            let list = with_headers(tokio_stream::once(list), headers);
            let mut client = ServerReflectionClient::new(listener.clone());
            check(client.server_reflection_info(list).await, read);
        }
    }
    let scrape = server.scrape().await;
    for (method, code, calls) in [
        ("RankConfigs", "UNAUTHENTICATED", 3.0),
        ("RankConfigs", "PERMISSION_DENIED", 1.0),
        ("Reload", "PERMISSION_DENIED", 1.0),
    ] {
        let labels = [("method", method), ("model", "none"), ("code", code)];
        assert_eq!(scrape.value("hlorank_requests_total", &labels), calls);
    }
    for (reason, calls) in [(missing, 4.0), (unknown, 2.0), (scope, 2.0)] {
        let errors = scrape.value("hlorank_errors_total", &[("reason", reason)]);
        assert_eq!(errors, calls, "{reason}");
    }
}

#[tokio::test]
async fn tokens_are_rotated_without_a_failed_call() {
    let files = Files::new();
    files.write("tokens", &line("ci", "read", "old"));
    let server = files.start().await;
    let [old, new] = ["Bearer old", "Bearer new"].map(|value| [("authorization", value)]);
    assert_eq!(rank(&server, &new).await, "TOKEN_UNKNOWN");

    // The file has the new token beside the old one until all clients use it.
    files.write(
        "tokens",
        &[line("ci", "read", "old"), line("ci", "read", "new")].concat(),
    );
    until_reloads(&server, "tokens", "loaded", 1.0).await;
    assert_eq!(rank(&server, &old).await, "FIELD_MISSING");
    assert_eq!(rank(&server, &new).await, "FIELD_MISSING");

    files.write("tokens", &line("ci", "read", "new"));
    until_reloads(&server, "tokens", "loaded", 2.0).await;
    assert_eq!(rank(&server, &old).await, "TOKEN_UNKNOWN");

    for (refused, bad) in [(1.0, ""), (2.0, "ci read")] {
        files.write("tokens", bad);
        until_reloads(&server, "tokens", "refused", refused).await;
        assert_eq!(rank(&server, &new).await, "FIELD_MISSING");
    }
}
