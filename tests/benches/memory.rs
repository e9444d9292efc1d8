//! Memory of the server over requests of varying shapes. Caches are small, so that they are full before the measurement
//! starts.

use hlorank_tests::prelude::*;

const REQUESTS: usize = 10_000;
const WARM_UP: usize = 2_500;
const SHOWN: usize = 500;

fn main() {
    let server = ServerProcess::start(&[
        "--graph-cache-bytes",
        "16000000",
        "--embedding-cache-bytes",
        "16000000",
    ]);
    let client = Runtime::new().expect("a runtime");
    client.block_on(async {
        let client = Client::connect(server.endpoint(), Connection::default()).await.expect("a server");
        let (mut warm, mut last) = (0.0, 0.0);
        println!("{:>10}{:>16}", "requests", "resident, MiB");
        for request in 0..=REQUESTS {
            if request % SHOWN == 0 {
                last = server.resident_bytes() as f64 / f64::from(1 << 20);
                println!("{request:>10}{last:>16.1}");
                warm = if request <= WARM_UP { last } else { warm };
            }
            send(&client, request).await;
        }
        Figure {
            name: "memory_growth".to_owned(),
            value: last / warm,
            unit: "x",
            target: Target::AtMost(1.05),
            how: format!(
                "resident size after {REQUESTS} requests of varying shapes, {last:.0} MiB, over that after {WARM_UP}"
            ),
        }
        .write();
    });
}

/// Ranks a new graph with few or many configurations.
async fn send(client: &Client, request: usize) {
    let (graph, configurations) = varying(request);
    let graph = GraphHandle::features(&graph);
    client
        .rank(&RankRequest::new(&graph, &configurations).top(5))
        .await
        .expect("a ranking");
}
