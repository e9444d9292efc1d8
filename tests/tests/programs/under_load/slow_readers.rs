//! Clients request large answers and do not read them: others are served meanwhile, and memory is bounded.

use std::process;

use hlorank_tests::{attackers::messages::framed, prelude::*};
use http_body_util::Full;
use tokio::time::Instant;
use tonic::body::Body;
use tower::{Service as _, ServiceExt as _};

use crate::under_load::requests::{
    PATIENCE, alone, bits, connect_with, kernels, of_tiles, rank, requests,
};

/// Number of tiles of the small kernel in each request. Their rows are evaluated once.
const TILES: i64 = 20_000;
const NODES: usize = 4;

/// Calls per connection, and bytes that each may have in flight.
const ON_ONE: usize = 50;
const WINDOW_BYTES: u32 = 100;

/// Maximum time of calls that take milliseconds, generous for a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// Bytes that all calls may hold, as a flag and as a number: enough for the answers that nobody reads.
const CALLS: &str = "--max-call-bytes=134217728";
const CALL_BYTES: usize = 128 << 20;

/// Answers that are not read until they are dropped.
#[derive(Default)]
struct Unread(Vec<http::Response<Body>>);

struct Fixture {
    server: TestServer,
    /// Client that reads its answers.
    other: Client,
    slow: SlowReader,
    _files: Files,
}

/// Client that does not read its answers.
struct SlowReader {
    endpoint: String,
    request: Bytes,
}

impl SlowReader {
    fn new(server: &TestServer, request: &RankConfigsRequest) -> Self {
        Self {
            endpoint: server.endpoint().to_owned(),
            request: framed(&request.encode_to_vec(), false),
        }
    }

    async fn connect(&self) -> Channel {
        let endpoint = Channel::from_shared(self.endpoint.clone()).unwrap();
        endpoint
            .initial_stream_window_size(WINDOW_BYTES)
            .connect()
            .await
            .unwrap()
    }

    /// Makes a call, and returns the answer with an unread body, or the error.
    async fn ask(&self, channel: &mut Channel) -> Result<http::Response<Body>, Status> {
        let request = http::Request::post("/hlorank.v1.CostModelService/RankConfigs")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("authorization", "Bearer slow")
            .body(Body::new(Full::new(self.request.clone())))
            .unwrap();
        let response = channel.ready().await.unwrap().call(request).await.unwrap();
        match Status::from_header_map(response.headers()) {
            Some(refusal) => Err(refusal),
            None => Ok(response),
        }
    }

    /// Makes this number of calls.
    async fn ask_often(&self, calls: usize) -> (Unread, Vec<Status>) {
        let (mut unread, mut refused) = (Unread::default(), Vec::new());
        let mut channel = self.connect().await;
        for call in 1..=calls {
            match self.ask(&mut channel).await {
                Ok(answer) => unread.0.push(answer),
                Err(refusal) => refused.push(refusal),
            }
            if call.is_multiple_of(ON_ONE) {
                channel = self.connect().await;
            }
        }
        (unread, refused)
    }
}

impl Fixture {
    async fn start(flag: &str) -> Self {
        let files = Files::new();
        let lines = ["slow", "other"].map(|name| token_line(name, "read", name));
        let tokens = files.write("tokens", &lines.concat());
        let server =
            TestServer::start_with(&[flag, CALLS, &format!("--tokens={}", tokens.display())]).await;
        let token = Some("other".parse().unwrap());
        let other = connect_with(
            &server,
            Connection {
                token,
                ..Connection::default()
            },
        )
        .await;
        let graph = crate::under_load::requests::kernels_of(NODES, 1).remove(0);
        let hash = other.put_graph(&graph).await.unwrap().hash;
        rank(&other, &graph, &grid_configurations(TILES)).await;
        let slow = SlowReader::new(&server, &wanted(hash));
        Self {
            server,
            other,
            slow,
            _files: files,
        }
    }

    /// Makes several calls with the reading client, asserts that their answers are equal, and returns the longest time.
    async fn served(&self) -> Duration {
        let (graph, tiles) = (kernels(1).remove(0), grid_configurations(10));
        let expected = bits(&rank(&self.other, &graph, &tiles).await);
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            let started = Instant::now();
            let found = timeout(PATIENCE, rank(&self.other, &graph, &tiles))
                .await
                .expect("it is served");
            assert_eq!(bits(&found), expected);
            longest = longest.max(started.elapsed());
        }
        longest
    }
}

fn wanted(hash: Digest) -> RankConfigsRequest {
    of_tiles(hash, TILES)
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_do_not_read_keep_nobody_waiting() {
    const ASKED: usize = 100;
    let _alone = alone().await;
    let fixture = Fixture::start("--max-client-requests=512").await;
    let before = resident_bytes(process::id());
    let (unread, refused) = fixture.slow.ask_often(ASKED).await;
    assert_eq!(
        (unread.0.len(), refused.len()),
        (ASKED, 0),
        "there is room for all"
    );
    let longest = fixture.served().await;
    assert!(longest < SOON, "{longest:?}");
    let most = resident_bytes(process::id());
    println!(
        "{} MiB before, {} MiB with {ASKED} answers that nobody reads",
        before >> 20,
        most >> 20
    );
    assert!(
        most < before + with_fragments(CALL_BYTES),
        "from {before} to {most} bytes"
    );
    drop(unread);
    fixture.server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_keeps_its_place_until_it_was_read() {
    const PLACES: usize = 16;
    const ASKED: usize = 100;
    let _alone = alone().await;
    let fixture = Fixture::start(&format!("--max-client-requests={PLACES}")).await;
    let before = resident_bytes(process::id());
    let (unread, refused) = fixture.slow.ask_often(ASKED).await;
    assert_eq!((unread.0.len(), refused.len()), (PLACES, ASKED - PLACES));
    for refusal in refused {
        assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
        let details = refusal.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "CLIENT_LIMIT");
        assert!(details.retry_info().is_some());
    }
    assert_eq!(requests(&fixture.server).await, PLACES as f64);
    let longest = fixture.served().await;
    assert!(longest < SOON, "{longest:?}");
    let most = resident_bytes(process::id());
    assert!(
        most < before + with_fragments(CALL_BYTES),
        "from {before} to {most} bytes"
    );
    drop(unread);
    fixture.server.until_idle().await;
    let (unread, refused) = fixture.slow.ask_often(PLACES).await;
    assert_eq!(
        (unread.0.len(), refused.len()),
        (PLACES, 0),
        "the places are free again"
    );
}
