//! Bearer tokens and their scopes.

use hlorank_tests::prelude::*;
use hlorank_tests::security::token_line as line;
use tonic::metadata::{Ascii, MetadataValue};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest,
};

use crate::security::secured::{list_models, reloads};

/// Calls with or without a token.
struct Caller {
    calls: Channel,
    admin: Channel,
    authorization: Option<MetadataValue<Ascii>>,
}

impl Caller {
    async fn new(server: &TestServer, authorization: Option<&str>) -> Self {
        let admin = Channel::from_shared(server.admin_endpoint().unwrap())
            .unwrap()
            .connect()
            .await
            .unwrap();
        let authorization = authorization.map(|value| value.parse().unwrap());
        Self {
            calls: server.channel().await,
            admin,
            authorization,
        }
    }

    fn with_token<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(authorization) = &self.authorization {
            request
                .metadata_mut()
                .insert("authorization", authorization.clone());
        }
        request
    }

    /// Makes an empty call, which the service rejects if the token is accepted.
    async fn rank(&self) -> Status {
        let request = self.with_token(RankConfigsRequest::default());
        CostModelServiceClient::new(self.calls.clone())
            .rank_configs(request)
            .await
            .unwrap_err()
    }

    async fn reload(&self) -> Result<(), Status> {
        let request = self.with_token(ReloadRequest {});
        ModelAdminServiceClient::new(self.admin.clone())
            .reload(request)
            .await
            .map(drop)
    }

    async fn reflect(&self, channel: &Channel) -> Result<(), Status> {
        let list = MessageRequest::ListServices(String::new());
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(list),
        };
        let request = self.with_token(tokio_stream::once(request));
        ServerReflectionClient::new(channel.clone())
            .server_reflection_info(request)
            .await
            .map(drop)
    }

    async fn check_health(&self, channel: &Channel) -> Result<(), Status> {
        let request = self.with_token(HealthCheckRequest::default());
        HealthClient::new(channel.clone())
            .check(request)
            .await
            .map(drop)
    }
}

fn check(refused: &Status, code: Code, expected: &str) {
    assert_eq!(
        (refused.code(), reason(refused).as_str()),
        (code, expected),
        "{}",
        refused.message()
    );
    assert_eq!(refused.get_details_error_info().unwrap().domain, "hlorank");
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
    let (unauthenticated, denied) = (Code::Unauthenticated, Code::PermissionDenied);
    let cases = [
        (
            None,
            Some((unauthenticated, "TOKEN_MISSING")),
            Some((unauthenticated, "TOKEN_MISSING")),
        ),
        (
            Some("Basic r"),
            Some((unauthenticated, "TOKEN_MISSING")),
            Some((unauthenticated, "TOKEN_MISSING")),
        ),
        (
            Some("Bearer x"),
            Some((unauthenticated, "TOKEN_UNKNOWN")),
            Some((unauthenticated, "TOKEN_UNKNOWN")),
        ),
        (Some("Bearer r"), None, Some((denied, "SCOPE_MISSING"))),
        (Some("Bearer a"), Some((denied, "SCOPE_MISSING")), None),
        (Some("Bearer b"), None, None),
    ];
    for (authorization, read, admin) in cases {
        let caller = Caller::new(&server, authorization).await;
        caller.check_health(&caller.calls).await.unwrap();
        caller.check_health(&caller.admin).await.unwrap();
        if let Some((code, reason)) = read {
            check(&caller.rank().await, code, reason);
            check(
                &caller.reflect(&caller.calls).await.unwrap_err(),
                code,
                reason,
            );
            check(
                &caller.reflect(&caller.admin).await.unwrap_err(),
                code,
                reason,
            );
        } else {
            check(&caller.rank().await, Code::InvalidArgument, "FIELD_MISSING");
            caller.reflect(&caller.calls).await.unwrap();
            caller.reflect(&caller.admin).await.unwrap();
        }
        match admin {
            Some((code, reason)) => check(&caller.reload().await.unwrap_err(), code, reason),
            None => caller.reload().await.unwrap(),
        }
    }
    let scrape = server.scrape().await;
    let counted = |method, code| {
        scrape.value(
            "hlorank_requests_total",
            &[("method", method), ("model", "none"), ("code", code)],
        )
    };
    assert_eq!(counted("RankConfigs", "UNAUTHENTICATED"), 3.0);
    assert_eq!(counted("RankConfigs", "PERMISSION_DENIED"), 1.0);
    assert_eq!(counted("Reload", "PERMISSION_DENIED"), 1.0);
    let errors = |reason| scrape.value("hlorank_errors_total", &[("reason", reason)]);
    assert_eq!(
        [
            errors("TOKEN_MISSING"),
            errors("TOKEN_UNKNOWN"),
            errors("SCOPE_MISSING")
        ],
        [4.0, 2.0, 2.0]
    );
}

#[tokio::test]
async fn tokens_are_rotated_without_a_failed_call() {
    let files = Files::new();
    files.write("tokens", &line("ci", "read", "old"));
    let server = files
        .start_with(&["--admin-listen=127.0.0.1:0", "--poll-seconds=0.02"])
        .await;
    let (old, new) = (
        Caller::new(&server, Some("Bearer old")).await,
        Caller::new(&server, Some("Bearer new")).await,
    );
    check(&new.rank().await, Code::Unauthenticated, "TOKEN_UNKNOWN");

    // The file has the new token beside the old one until all clients use it.
    files.write(
        "tokens",
        &[line("ci", "read", "old"), line("ci", "read", "new")].concat(),
    );
    server
        .until_metrics(|scrape| reloads(scrape, "tokens", "loaded") >= 1.0)
        .await;
    check(&old.rank().await, Code::InvalidArgument, "FIELD_MISSING");
    check(&new.rank().await, Code::InvalidArgument, "FIELD_MISSING");

    files.write("tokens", &line("ci", "read", "new"));
    server
        .until_metrics(|scrape| reloads(scrape, "tokens", "loaded") >= 2.0)
        .await;
    check(&old.rank().await, Code::Unauthenticated, "TOKEN_UNKNOWN");

    for (refused, bad) in [(1.0, ""), (2.0, "ci read")] {
        files.write("tokens", bad);
        server
            .until_metrics(|scrape| reloads(scrape, "tokens", "refused") >= refused)
            .await;
        check(&new.rank().await, Code::InvalidArgument, "FIELD_MISSING");
    }
}

#[tokio::test]
async fn without_a_file_of_tokens_calls_need_none() {
    let server = TestServer::start().await;
    assert!(list_models(server.channel().await).await.unwrap() > 0);
}
