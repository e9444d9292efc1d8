//! Clients request large answers and do not read them: others are served meanwhile, and memory is bounded.

use std::process;

use hlorank_tests::{attackers::messages::framed, prelude::*};
use http_body_util::Full;
use tokio::time::Instant;
use tonic::body::Body;
use tower::{Service as _, ServiceExt as _};

use crate::under_load::requests::{PATIENCE, alone, kernels, kernels_of, of_tiles, scores};

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

    /// Makes this number of calls, and returns the answers, which are not read until they are dropped, and the errors.
    async fn ask_often(&self, calls: usize) -> (Vec<http::Response<Body>>, Vec<Status>) {
        let (mut unread, mut refused) = (Vec::new(), Vec::new());
        let mut channel = self.connect().await;
        for call in 1..=calls {
            match self.ask(&mut channel).await {
                Ok(answer) => unread.push(answer),
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
        files.write("tokens", &lines.concat());
        let server = files.start_with(&[flag, CALLS]).await;
        let connection = Connection {
            token: Some("other".parse().unwrap()),
            retries: 0,
            ..Connection::default()
        };
        let other = server.client_with(connection).await;
        let graph = kernels_of(NODES, 1).remove(0);
        let hash = other.put_graph(&graph).await.unwrap().hash;
        scores(&other, &graph, &grid_configurations(TILES)).await;
        let slow = SlowReader {
            endpoint: server.endpoint().to_owned(),
            request: framed(&of_tiles(hash, TILES).encode_to_vec(), false),
        };
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
        let expected = scores(&self.other, &graph, &tiles).await;
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            let started = Instant::now();
            let found = timeout(PATIENCE, scores(&self.other, &graph, &tiles)).await;
            assert_eq!(found.expect("it is served"), expected);
            longest = longest.max(started.elapsed());
        }
        longest
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_keep_their_places_and_keep_nobody_waiting() {
    const ASKED: usize = 100;
    let _alone = alone().await;
    // There are places for all, or for a few.
    for places in [512, 16] {
        let fixture = Fixture::start(&format!("--max-client-requests={places}")).await;
        let before = resident_bytes(process::id());
        let (unread, refused) = fixture.slow.ask_often(ASKED).await;
        let held = places.min(ASKED);
        assert_eq!((unread.len(), refused.len()), (held, ASKED - held));
        for refusal in refused {
            assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
            assert_eq!(reason(&refusal), "CLIENT_LIMIT");
            assert!(refusal.get_details_retry_info().is_some());
        }
        let scrape = fixture.server.scrape().await;
        let in_progress = scrape.value("hlorank_requests_in_progress", &[]);
        assert_eq!(in_progress, held as f64);
        let longest = fixture.served().await;
        assert!(longest < SOON, "{longest:?}");
        let most = resident_bytes(process::id());
        println!(
            "{} MiB before, {} MiB with {held} answers that nobody reads",
            before >> 20,
            most >> 20
        );
        assert!(
            most < before + with_fragments(CALL_BYTES),
            "from {before} to {most} bytes"
        );
        drop(unread);
        fixture.server.until_idle().await;
        let (unread, refused) = fixture.slow.ask_often(held).await;
        assert_eq!(
            (unread.len(), refused.len()),
            (held, 0),
            "the places are free again"
        );
    }
}
