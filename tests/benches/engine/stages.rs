use hlorank_tests::prelude::*;

use crate::{
    plot::{Bar, bars},
    subjects::{layout_graph, read},
};

const STAGES: [&str; 6] = ["queue", "featurize", "parse", "encode", "head", "rank"];

/// Measures the stages of a few requests: cold, with the graph cached, and with the embeddings cached.
pub(crate) async fn of_requests() {
    let tiles = read(&fixture("measured/tile_kernels.pb"));
    let training = read(&fixture("measured/layout_random_window_nchw_train.pb"));
    println!("\nwhere the time goes on the server, in ms");
    print!("{:>48}", "");
    for stage in STAGES {
        print!("{stage:>11}");
    }
    println!("{:>11}", "total");
    let mut all = Vec::new();
    for measured in [&layout_graph(), &training, &tiles] {
        let graph = GraphHandle::from_measured(measured);
        let configurations = configurations(measured);
        for (state, ranking) in states(&graph, configurations).await {
            let stages = milliseconds(&ranking);
            let name = format!("{} {}, {state}", configurations.len(), measured.name);
            print!("{name:>48}");
            for stage in stages {
                print!("{stage:>11.3}");
            }
            println!("{:>11.3}", stages.iter().sum::<f64>());
            all.push(Bar {
                name,
                parts: stages.to_vec(),
            });
        }
    }
    bars("stages", &STAGES, &all);
}

async fn states(
    graph: &GraphHandle,
    configurations: &Configurations,
) -> Vec<(&'static str, Ranking)> {
    const CALLS: usize = 7;
    let mut states = Vec::new();
    for (state, cache) in [
        ("cold", "0"),
        ("warm graph", "0"),
        ("warm embeddings", "100000000"),
    ] {
        let server = TestServer::start_with(&["--embedding-cache-bytes", cache]).await;
        let client = server.client().await;
        let request = RankRequest::new(graph, configurations).top(10);
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            calls.push(client.rank(&request).await.expect("a ranking"));
        }
        let first = calls.remove(0);
        calls.sort_by_key(|ranking| ranking.timings.total);
        states.push((
            state,
            if state == "cold" {
                first
            } else {
                calls.remove(0)
            },
        ));
    }
    states
}

fn milliseconds(ranking: &Ranking) -> [f64; STAGES.len()] {
    let timings = ranking.timings;
    [
        timings.queue,
        timings.featurize,
        timings.parse,
        timings.encode,
        timings.head,
        timings.rank,
    ]
    .map(|stage| stage.as_secs_f64() * 1e3)
}
