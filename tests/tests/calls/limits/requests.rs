//! Limits of the requests in progress, of all clients and of each, and of health watches.

use hlorank_client::{RankStream, Token};
use hlorank_tests::prelude::*;

use crate::limits::request::Past;
use crate::limits::request::{kernel, tiles};

#[tokio::test]
async fn requests_in_progress() {
    let server = TestServer::start_with(&["--max-requests=3"]).await;
    let client = server.client_without_retries().await;
    let graph = GraphHandle::features(&kernel_of(3));
    let tiles_of_client = grid_configurations(4);
    let rank = async || {
        client
            .rank(&RankRequest::new(&graph, &tiles_of_client))
            .await
    };
    let stream = async || {
        client
            .rank_stream(&StreamRequest::new(&graph))
            .await
            .unwrap()
    };
    let (first, second) = (stream().await, stream().await);
    assert_eq!(rank().await.expect("it is the third").best.len(), 4);

    let third = stream().await;
    let past = Past {
        code: Code::ResourceExhausted,
        ..Past::setting("OVERLOADED", "--max-requests", None, 3)
    };
    past.refuses(server.cost_model().await, rank_request(kernel(), tiles(4)))
        .await;
    // The client receives the rejection before it has sent everything.
    past.refuses(
        server.cost_model().await,
        rank_request(kernel(), tiles(2_000_000)),
    )
    .await;
    let error: ClientError = rank().await.unwrap_err();
    let delay = error.refusal().unwrap().retry_after().unwrap();
    assert!(delay >= Duration::from_millis(200), "{delay:?}");

    drop(first);
    while rank().await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop((second, third));
}

/// Client that makes calls one after the other, without retries.
struct Caller(Client, GraphHandle);

impl Caller {
    async fn connect(server: &TestServer, token: Option<&str>) -> Self {
        let token = token.map(|token| token.parse::<Token>().unwrap());
        let connection = Connection {
            token,
            retries: 0,
            ..Connection::default()
        };
        let client = server.client_with(connection).await;
        Self(client, GraphHandle::features(&kernel_of(3)))
    }

    /// Starts a request that is in progress until it is dropped.
    async fn stream(&self) -> RankStream {
        self.0
            .rank_stream(&StreamRequest::new(&self.1))
            .await
            .unwrap()
    }

    async fn rank(&self) -> Result<(), ClientError> {
        let tiles = grid_configurations(4);
        self.0
            .rank(&RankRequest::new(&self.1, &tiles))
            .await
            .map(drop)
    }

    async fn rank_once_there_is_room(&self) {
        while self.rank().await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn assert_refused(ranked: Result<(), ClientError>, limit: &str) {
    let error = ranked.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(
        (refusal.code(), refusal.reason()),
        (Code::ResourceExhausted, Some("CLIENT_LIMIT")),
        "{error}"
    );
    assert!(
        refusal.message().contains(limit) && refusal.message().contains("--max-client-requests"),
        "{error}"
    );
    assert!(refusal.retry_after().is_some(), "{error}");
}

#[tokio::test]
async fn an_address_has_so_many_requests_at_a_time_whatever_its_connections() {
    let server = TestServer::start_with(&["--max-client-requests=2"]).await;
    let (one, other) = (
        Caller::connect(&server, None).await,
        Caller::connect(&server, None).await,
    );
    let first = one.stream().await;
    one.rank().await.expect("it is the second");
    let second = other.stream().await;
    assert_refused(one.rank().await, "2 requests");
    let past = Past::setting("CLIENT_LIMIT", "--max-client-requests", None, 2);
    let past = Past {
        code: Code::ResourceExhausted,
        ..past
    };
    past.refuses(server.cost_model().await, rank_request(kernel(), tiles(4)))
        .await;
    drop(first);
    one.rank_once_there_is_room().await;
    drop(second);
}

#[tokio::test]
async fn a_token_has_so_many_requests_at_a_time_and_others_have_theirs() {
    let files = Files::new();
    let lines = ["one", "two"].map(|name| token_line(name, "read", name));
    let tokens = files.write("tokens", &lines.concat());
    let server = TestServer::start_with(&[
        "--max-client-requests=1",
        &format!("--tokens={}", tokens.display()),
    ])
    .await;
    let (one, again) = (
        Caller::connect(&server, Some("one")).await,
        Caller::connect(&server, Some("one")).await,
    );
    let two = Caller::connect(&server, Some("two")).await;
    let stream = one.stream().await;
    assert_refused(again.rank().await, "1 requests");
    two.rank().await.expect("another token has its own share");
    drop(stream);
    again.rank_once_there_is_room().await;
}

/// Makes a call that a proxy forwards for these addresses.
async fn forwarded(server: &TestServer, addresses: &str) -> Result<(), Status> {
    let request = with_headers(
        rank_request(kernel(), tiles(4)),
        &[("x-forwarded-for", addresses)],
    );
    server.rank(request).await.map(drop)
}

/// Starts a request that is in progress until it is dropped, for an address that a proxy names.
async fn forwarded_stream(server: &TestServer, address: &str) -> impl Sized {
    let (requests, received) = futures::channel::mpsc::unbounded();
    requests.unbounded_send(stream_start(kernel())).unwrap();
    let request = with_headers(received, &[("x-forwarded-for", address)]);
    let mut answers = server
        .cost_model()
        .await
        .rank_configs_stream(request)
        .await
        .unwrap()
        .into_inner();
    answers
        .message()
        .await
        .unwrap()
        .expect("the stream has started");
    (requests, answers)
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_have_limits_of_their_own() {
    let server = TestServer::start_with(&[
        "--max-client-requests=1",
        "--trusted-proxies=127.0.0.0/8,10.0.0.0/8",
    ])
    .await;
    let stream = forwarded_stream(&server, "192.0.2.1").await;
    for full in [
        "192.0.2.1",
        "192.0.2.1:4000",
        "192.0.2.9, 192.0.2.1",
        "192.0.2.1, 10.0.0.1",
    ] {
        let status = forwarded(&server, full).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{full}: {status}");
    }
    for other in ["192.0.2.2", "192.0.2.1, 192.0.2.2", "2001:db8::1"] {
        forwarded(&server, other).await.expect(other);
    }
    drop(stream);
    while forwarded(&server, "192.0.2.1").await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn nobody_else_can_name_another_client() {
    for proxies in ["off", "10.0.0.0/8"] {
        let flags = [
            "--max-client-requests=1",
            &format!("--trusted-proxies={proxies}"),
        ];
        let server = TestServer::start_with(&flags).await;
        let _stream = forwarded_stream(&server, "192.0.2.1").await;
        let status = forwarded(&server, "192.0.2.2").await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_of_a_client() {
    let server = TestServer::start_with(&["--max-client-requests=2"]).await;
    let mut health = HealthClient::new(server.channel().await);
    let watch = HealthCheckRequest::default;
    let mut first = health.watch(watch()).await.unwrap().into_inner();
    let second = health.watch(watch()).await.unwrap().into_inner();
    assert!(first.message().await.unwrap().is_some());
    let refused = health.watch(watch()).await.unwrap_err();
    let info = refused.get_details_error_info().unwrap();
    assert_eq!(
        (refused.code(), info.reason.as_str()),
        (Code::ResourceExhausted, "CLIENT_LIMIT")
    );

    health
        .check(watch())
        .await
        .expect("checks are never refused");
    let answer = server.rank(rank_request(kernel(), tiles(3))).await.unwrap();
    assert_eq!(answer.ranking.len(), 3, "watches take no place of requests");
    drop(second);
    while health.watch(watch()).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
