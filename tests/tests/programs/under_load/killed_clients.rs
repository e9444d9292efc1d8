//! Clients disappear suddenly in the middle of calls and streams: their work stops, their requests end, and other
//! clients notice nothing.

use std::future::pending;

use hlorank_tests::prelude::*;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::oneshot};
use tonic::transport::Uri;
use tower::service_fn;

use crate::under_load::requests::{
    alone, bits, connect, kernels, of_tiles, rank, requests, rows_evaluated,
};

/// Enough tiles to keep every worker busy much longer than the clients live.
const TILES: i64 = 45_000;

/// Rows of a block of 40 nodes.
const CHUNK_ROWS: f64 = 24.0;

/// Number of clients of each kind.
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

/// Connects a client, and leaves it in the middle of a stream.
async fn stream(endpoint: String, graph: Arc<GraphHandle>) {
    let client = Client::connect(&endpoint, Connection::default())
        .await
        .unwrap();
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    loop {
        stream.send(&grid_configurations(TILES)).await.unwrap();
    }
}

/// Connects a client, and leaves it in the middle of a call.
async fn call(endpoint: String, graph: Arc<GraphHandle>) {
    let endless = Connection {
        timeout: None,
        ..Connection::default()
    };
    let client = Client::connect(&endpoint, endless).await.unwrap();
    client
        .rank(&RankRequest::new(&graph, &grid_configurations(TILES)))
        .await
        .unwrap();
}

/// Opens a connection that is reset when it is dropped, whatever data is in flight.
async fn reset_when_dropped(endpoint: String) -> CostModelServiceClient<Channel> {
    let connect = async |uri: Uri| {
        let stream = TcpStream::connect(uri.authority().unwrap().as_str()).await?;
        stream.set_zero_linger()?;
        Ok::<_, std::io::Error>(TokioIo::new(stream))
    };
    let endpoint = Channel::from_shared(endpoint).unwrap();
    CostModelServiceClient::new(
        endpoint
            .connect_with_connector(service_fn(connect))
            .await
            .unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn work_stops_and_others_notice_nothing() {
    let _alone = alone().await;
    let server = TestServer::start().await;
    let (client, graphs) = (connect(&server).await, kernels(2 * CLIENTS + 1));
    let (own, small) = (&graphs[0], grid_configurations(10));
    let expected = bits(&rank(&client, own, &small).await);

    let mut victims = Vec::new();
    for graph in graphs[1..].chunks(2) {
        let endpoint = || server.endpoint().to_owned();
        victims.push(Victim::start(stream(endpoint(), Arc::clone(&graph[0]))));
        victims.push(Victim::start(call(endpoint(), Arc::clone(&graph[1]))));
    }
    server
        .until_metrics(|scrape| {
            scrape.value("hlorank_requests_in_progress", &[]) >= f64::from(2 * CLIENTS)
                && scrape.value("hlorank_waiting_rows", &[]) > 0.0
        })
        .await;
    for victim in victims {
        victim.kill();
        assert_eq!(bits(&rank(&client, own, &small).await), expected);
    }
    server
        .until_metrics(|scrape| scrape.value("hlorank_requests_in_progress", &[]) == 0.0)
        .await;
    let evaluated = rows_evaluated(&server).await;
    server.until_idle().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let more = rows_evaluated(&server).await - evaluated;
    let workers = server.scrape().await.value("hlorank_compute_threads", &[]);
    assert!(
        more <= workers * CHUNK_ROWS,
        "{more} rows were evaluated for the dead"
    );
    assert_eq!(bits(&rank(&client, own, &small).await), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_connection_frees_the_places_of_all_its_calls() {
    const CALLS: usize = 20;
    let _alone = alone().await;
    let server = TestServer::start_with(&[&format!("--max-client-requests={}", CALLS + 1)]).await;
    let (client, graph) = (connect(&server).await, kernels(1).remove(0));
    let hash = client.put_graph(&graph).await.unwrap().hash;
    let endpoint = server.endpoint().to_owned();
    let victim = Victim::start(async move {
        let service = reset_when_dropped(endpoint).await;
        for _ in 0..CALLS {
            let mut service = service.clone();
            tokio::spawn(async move { service.rank_configs(of_tiles(hash, TILES)).await });
        }
        pending::<()>().await;
    });
    server
        .until_metrics(|scrape| scrape.value("hlorank_requests_in_progress", &[]) == CALLS as f64)
        .await;
    victim.kill();
    server.until_idle().await;
    assert_eq!(requests(&server).await, 0.0);
    rank(&client, &graph, &grid_configurations(10)).await;
}
