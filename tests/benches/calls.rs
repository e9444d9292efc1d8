//! Duration of a call over loopback: cold (the graph is sent and read), with the graph cached, and with the embeddings
//! of its rows cached too.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use hlorank_graph::GraphSource;
use hlorank_tests::prelude::*;

/// Returns the first measured graph of each task, and TpuGraphs' AlexNet if it is available.
fn measured_graphs() -> Vec<MeasuredGraph> {
    let mut files: Vec<PathBuf> = fs::read_dir(fixture("measured"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let first = |task: &str| {
        files.iter().find(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(task)
        })
    };
    let alexnet = shared("data/tpu/alexnet_layout.npz");
    let files = first("layout_")
        .into_iter()
        .chain(first("tile_"))
        .chain(&alexnet);
    files.map(|path| read_graphs(path).remove(0)).collect()
}

/// Flag that disables the embedding cache.
const NO_CACHE: &str = "--embedding-cache-bytes=0";

fn warm_calls(criterion: &mut Criterion) {
    warm_calls_of(criterion, "warm graph", &[NO_CACHE]);
    warm_calls_of(criterion, "warm embeddings", &[]);
}

fn warm_calls_of(criterion: &mut Criterion, state: &str, flags: &[&str]) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(TestServer::start_with(flags));
    let client = runtime.block_on(server.client());
    for measured in measured_graphs() {
        let graph = GraphHandle::of(&measured);
        let configurations = configurations(&measured);
        let request = RankRequest::new(&graph, configurations).top(10);
        let name = format!(
            "{state}/{}/{} configurations",
            measured.name,
            configurations.len()
        );
        criterion.bench_function(&name, |bencher| {
            bencher
                .to_async(&runtime)
                .iter(async || client.rank(&request).await.unwrap());
        });
    }
}

/// Returns a module that differs from every earlier one in an unused field, so that it is not cached.
fn unseen(module: &[u8], number: u64) -> Vec<u8> {
    const UNREAD_FIXED64_FIELD: [u8; 3] = [0xf9, 0xff, 0x7f];
    [module, &UNREAD_FIXED64_FIELD, &number.to_le_bytes()].concat()
}

fn cold_calls(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(TestServer::start_with(&[NO_CACHE]));
    let client = runtime.block_on(server.client());
    let mut number = 0;
    for measured in measured_graphs() {
        let GraphSource::HloModule(module) = &measured.source else {
            continue;
        };
        let (task, configurable) = (measured.graph.task(), measured.graph.configurable());
        let configurations = configurations(&measured);
        let name = format!(
            "cold/{}/{} configurations",
            measured.name,
            configurations.len()
        );
        criterion.bench_function(&name, |bencher| {
            let mut unseen_graph = || {
                number += 1;
                GraphHandle::hlo_module(unseen(module, number), task, configurable.to_vec())
            };
            bencher.to_async(&runtime).iter_batched(
                &mut unseen_graph,
                async |graph| {
                    black_box(
                        client
                            .rank(&RankRequest::new(&graph, configurations).top(10))
                            .await
                            .unwrap(),
                    )
                },
                criterion::BatchSize::PerIteration,
            );
        });
    }
}

criterion_group! {
    name = calls;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(5));
    targets = warm_calls, cold_calls
}
criterion_main!(calls);
