use hlorank_client::Timings;
use hlorank_tests::prelude::*;

use crate::{
    plot::{Bar, bars},
    subjects::{layout_graph, read, window_training},
};

const CALLS: usize = 7;

/// Returns the stages of a call, with their times in milliseconds.
pub(crate) fn stages(timings: &Timings) -> [(&'static str, f64); 6] {
    [
        ("queue", timings.queue),
        ("featurize", timings.featurize),
        ("parse", timings.parse),
        ("encode", timings.encode),
        ("head", timings.head),
        ("rank", timings.rank),
    ]
    .map(|(stage, time)| (stage, time.as_secs_f64() * 1e3))
}

/// Measures the stages of a few requests: cold, with the graph cached, and with the embeddings cached.
pub(crate) async fn of_requests() {
    let names = stages(&Timings::default()).map(|(stage, _)| stage);
    println!("\nwhere the time goes on the server, in ms\n");
    println!("| request | {} | total |", names.join(" | "));
    println!("|---|{}", "---:|".repeat(names.len() + 1));
    let mut all = Vec::new();
    let tiles = read(&fixture("measured/tile_kernels.pb"));
    for measured in [&layout_graph(), &window_training(), &tiles] {
        let configurations = configurations(measured);
        for (state, timings) in states(measured, configurations).await {
            let name = format!("{} {}, {state}", configurations.len(), measured.name);
            let parts = stages(&timings).map(|(_, time)| time);
            let cells = parts.map(|time| format!("{time:.3}")).join(" | ");
            println!("| {name} | {cells} | {:.3} |", parts.iter().sum::<f64>());
            all.push(Bar {
                name,
                parts: parts.to_vec(),
            });
        }
    }
    bars("stages", &names, &all);
}

async fn states(
    measured: &MeasuredGraph,
    configurations: &Configurations,
) -> [(&'static str, Timings); 3] {
    let graph = GraphHandle::from_measured(measured);
    let request = RankRequest::new(&graph, configurations).top(10);
    let [cold, cached_graph] = first_and_fastest(&request, 0).await;
    let [_, cached_embeddings] = first_and_fastest(&request, 100_000_000).await;
    [
        ("cold", cold),
        ("warm graph", cached_graph),
        ("warm embeddings", cached_embeddings),
    ]
}

/// Returns the timings of the first call of a new server, and of the fastest of the calls after it.
async fn first_and_fastest(request: &RankRequest<'_>, cache_bytes: usize) -> [Timings; 2] {
    let cache = format!("--embedding-cache-bytes={cache_bytes}");
    let server = TestServer::start_with(&[&cache]).await;
    let client = server.client().await;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        calls.push(client.rank(request).await.expect("a ranking").timings);
    }
    let later = calls.iter().skip(1);
    let fastest = later.min_by_key(|timings| timings.total);
    [calls[0], *fastest.expect("several calls")]
}
