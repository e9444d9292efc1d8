//! Clients disappear suddenly in the middle of calls and streams: their work stops, their places are free, and other
//! clients notice nothing.

use std::future::pending;

use futures::{StreamExt as _, future::join_all, stream};
use hlorank_tests::prelude::*;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::oneshot};
use tonic::transport::Uri;
use tower::service_fn;

use crate::under_load::requests::{alone, kernels, of_tiles, rows_evaluated, scores};

/// Enough tiles to keep every worker busy much longer than the clients live.
const TILES: i64 = 45_000;

/// Rows of a block of 40 nodes.
const CHUNK_ROWS: f64 = 24.0;

/// Number of clients, each of which makes a call and a stream.
const CLIENTS: u16 = 4;

/// Client with its own runtime, which stops abruptly without ending its calls.
struct Victim {
    kill: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Victim {
    fn start(client: impl Future<Output = ()> + Send + 'static) -> Self {
        let (kill, killed) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = Runtime::new().unwrap();
            runtime.spawn(client);
            let _ = killed.blocking_recv();
            runtime.shutdown_background();
        });
        Self { kill, thread }
    }

    fn kill(self) {
        drop(self.kill);
        self.thread.join().unwrap();
    }
}

/// Opens a connection that is reset when it is dropped, whatever data is in flight.
async fn reset_when_dropped(endpoint: String) -> CostModelServiceClient<Channel> {
    let connect = async |uri: Uri| {
        let stream = TcpStream::connect(uri.authority().unwrap().as_str()).await?;
        stream.set_zero_linger()?;
        Ok::<_, std::io::Error>(TokioIo::new(stream))
    };
    let endpoint = Channel::from_shared(endpoint).unwrap();
    let channel = endpoint.connect_with_connector(service_fn(connect)).await;
    CostModelServiceClient::new(channel.unwrap())
}

/// Ranks tiles of two cached graphs over one connection, one of them in a stream that never ends.
async fn call_and_stream(endpoint: String, graphs: [Digest; 2]) {
    let mut calling = reset_when_dropped(endpoint).await;
    let mut streaming = calling.clone();
    let messages = [
        stream_start(graph_by_hash(graphs[0].0.to_vec())),
        stream_batch(packed_tiles(&grid_tiles(TILES))),
    ];
    let messages = stream::iter(messages).chain(stream::pending());
    let call = calling.rank_configs(of_tiles(graphs[1], TILES));
    let (_stream, _answer) = tokio::join!(streaming.rank_configs_stream(messages), call);
    pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn their_work_stops_their_places_are_free_and_others_notice_nothing() {
    let _alone = alone().await;
    let places = 2 * CLIENTS + 1;
    let server = TestServer::start_with(&[&format!("--max-client-requests={places}")]).await;
    let client = server.client_without_retries().await;
    let graphs = kernels(places);
    let (own, small) = (&graphs[0], grid_configurations(10));
    let expected = scores(&client, own, &small).await;

    let mut hashes = Vec::new();
    for graph in &graphs[1..] {
        hashes.push(client.put_graph(graph).await.unwrap().hash);
    }
    let mut victims = Vec::new();
    for pair in hashes.chunks_exact(2) {
        let endpoint = server.endpoint().to_owned();
        victims.push(Victim::start(call_and_stream(endpoint, [pair[0], pair[1]])));
    }
    server
        .until_metrics(|scrape| {
            scrape.value("hlorank_requests_in_progress", &[]) >= f64::from(2 * CLIENTS)
                && scrape.value("hlorank_waiting_rows", &[]) > 0.0
        })
        .await;
    for victim in victims {
        victim.kill();
        assert_eq!(scores(&client, own, &small).await, expected);
    }
    let none_left = |scrape: &Scrape| scrape.value("hlorank_requests_in_progress", &[]) == 0.0;
    server.until_metrics(none_left).await;
    let evaluated = rows_evaluated(&server).await;
    server.until_idle().await;
    sleep(Duration::from_millis(200)).await;
    let more = rows_evaluated(&server).await - evaluated;
    let workers = server.scrape().await.value("hlorank_compute_threads", &[]);
    assert!(
        more <= workers * CHUNK_ROWS,
        "{more} rows were evaluated for the dead"
    );
    let in_all_places = (0..places).map(|_| scores(&client, own, &small));
    for found in join_all(in_all_places).await {
        assert_eq!(found, expected);
    }
}
