//! Limits of the requests in progress, of all clients and of each, and of health watches. That each token has its own limit
//! is tested with clients that do not read, in `programs`.

use futures::{StreamExt as _, stream};
use hlorank_client::RankStream;
use hlorank_tests::prelude::*;

use crate::limits::request::{Past, kernel, tiles};

/// Client that makes calls one after the other, without retries.
struct Caller(Client, GraphHandle);

impl Caller {
    async fn connect(server: &TestServer) -> Self {
        Self(
            server.client_without_retries().await,
            GraphHandle::features(&kernel_of(3)),
        )
    }

    /// Starts a request that is in progress until it is dropped.
    async fn stream(&self) -> RankStream {
        let request = StreamRequest::new(&self.1);
        self.0.rank_stream(&request).await.unwrap()
    }

    async fn rank(&self) -> Result<Ranking, ClientError> {
        let tiles = grid_configurations(4);
        self.0.rank(&RankRequest::new(&self.1, &tiles)).await
    }

    async fn rank_once_there_is_room(&self) {
        while self.rank().await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn requests_in_progress() {
    let server = TestServer::start_with(&["--max-requests=3"]).await;
    let caller = Caller::connect(&server).await;
    let (first, _second) = (caller.stream().await, caller.stream().await);
    caller.rank().await.expect("it is the third");

    let _third = caller.stream().await;
    let past = Past::setting("OVERLOADED", "--max-requests", None, 3);
    // The client receives the rejection before it has sent everything.
    for count in [4, 2_000_000] {
        past.refuses(&server, rank_request(kernel(), tiles(count)))
            .await;
    }
    let error = caller.rank().await.unwrap_err();
    let delay = error.refusal().unwrap().retry_after().unwrap();
    assert!(delay >= Duration::from_millis(200), "{delay:?}");

    drop(first);
    caller.rank_once_there_is_room().await;
}

#[tokio::test]
async fn an_address_has_so_many_requests_at_a_time_whatever_its_connections() {
    let server = TestServer::start_with(&["--max-client-requests=2"]).await;
    let one = Caller::connect(&server).await;
    let other = Caller::connect(&server).await;
    let first = one.stream().await;
    one.rank().await.expect("it is the second");
    let _second = other.stream().await;
    Past::setting("CLIENT_LIMIT", "--max-client-requests", None, 2)
        .refuses(&server, rank_request(kernel(), tiles(4)))
        .await;
    let error = one.rank().await.unwrap_err();
    assert_reason(&error, "CLIENT_LIMIT");
    assert!(error.refusal().unwrap().retry_after().is_some(), "{error}");
    drop(first);
    one.rank_once_there_is_room().await;
}

/// Starts a request that is in progress until it is dropped, for an address that a proxy names.
async fn forwarded_stream(server: &TestServer, address: &str) -> impl Sized {
    let messages = stream::iter([stream_start(kernel())]).chain(stream::pending());
    let request = with_headers(messages, &[("x-forwarded-for", address)]);
    let mut service = server.cost_model().await;
    let answers = service.rank_configs_stream(request).await;
    let mut answers = answers.unwrap().into_inner();
    let started = answers.message().await.unwrap();
    assert!(started.is_some(), "the stream has started");
    answers
}

#[tokio::test]
async fn a_trusted_proxy_alone_names_the_client_that_a_limit_is_of() {
    for (proxies, is_trusted) in [("127.0.0.0/8", true), ("10.0.0.0/8", false), ("off", false)] {
        let proxies = format!("--trusted-proxies={proxies}");
        let server = TestServer::start_with(&["--max-client-requests=1", &proxies]).await;
        let _stream = forwarded_stream(&server, "192.0.2.1").await;
        let rank = async |address| {
            let request = rank_request(kernel(), tiles(4));
            let request = with_headers(request, &[("x-forwarded-for", address)]);
            server.rank(request).await
        };
        let full = rank("192.0.2.1").await.unwrap_err();
        assert_eq!(reason(&full), "CLIENT_LIMIT", "{proxies}: {full}");
        let other = rank("192.0.2.2").await;
        assert_eq!(other.is_ok(), is_trusted, "{proxies}: {other:?}");
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
    assert_eq!(reason(&refused), "CLIENT_LIMIT", "{refused}");

    let checked = health.check(watch()).await;
    checked.expect("checks are never refused");
    let answer = server.rank(rank_request(kernel(), tiles(3))).await;
    answer.expect("watches take no place of requests");
    drop(second);
    while health.watch(watch()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
