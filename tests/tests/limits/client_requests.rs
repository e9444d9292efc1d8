//! Limit of the requests in progress per client.

use std::time::Duration;

use hlorank_client::{
    Client, ClientError, Connection, GraphHandle, RankRequest, RankStream, StreamRequest, Token,
};
use hlorank_graph::Configurations;
use hlorank_tests::{
    TestServer, grid_tiles, kernel_of, rank_request,
    security::{Files, token_line},
};
use tonic::Code;

use crate::{
    request::{kernel, tiles},
    servers::Past,
};

/// Client that makes calls one after the other, without retries.
struct Caller(Client, GraphHandle);

impl Caller {
    async fn connect(server: &TestServer, token: Option<&str>) -> Self {
        let token = token.map(|token| token.parse::<Token>().unwrap());
        let connection = Connection { token, retries: 0, ..Connection::default() };
        let client = Client::connect(server.endpoint(), connection).await.unwrap();
        Self(client, GraphHandle::features(&kernel_of(3)))
    }

    /// Starts a request that is in progress until it is dropped.
    async fn stream(&self) -> RankStream {
        self.0.rank_stream(&StreamRequest::new(&self.1)).await.unwrap()
    }

    async fn rank(&self) -> Result<(), ClientError> {
        let tiles = Configurations::Tile(grid_tiles(4));
        self.0.rank(&RankRequest::new(&self.1, &tiles)).await.map(drop)
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
    let (one, other) = (Caller::connect(&server, None).await, Caller::connect(&server, None).await);
    let first = one.stream().await;
    one.rank().await.expect("it is the second");
    let second = other.stream().await;
    assert_refused(one.rank().await, "2 requests");
    let past = Past::setting("CLIENT_LIMIT", "--max-client-requests", None, 2);
    let past = Past { code: Code::ResourceExhausted, ..past };
    past.refuses(server.cost_model().await, rank_request(kernel(), tiles(4))).await;
    drop(first);
    one.rank_once_there_is_room().await;
    drop(second);
}

#[tokio::test]
async fn a_token_has_so_many_requests_at_a_time_and_others_have_theirs() {
    let files = Files::new();
    let lines = ["one", "two"].map(|name| token_line(name, "read", name));
    let tokens = files.write("tokens", &lines.concat());
    let server =
        TestServer::start_with(&["--max-client-requests=1", &format!("--tokens={}", tokens.display())]).await;
    let (one, again) =
        (Caller::connect(&server, Some("one")).await, Caller::connect(&server, Some("one")).await);
    let two = Caller::connect(&server, Some("two")).await;
    let stream = one.stream().await;
    assert_refused(again.rank().await, "1 requests");
    two.rank().await.expect("another token has its own share");
    drop(stream);
    again.rank_once_there_is_room().await;
}
