//! Measures the time from a serialized module to its segments, and whether it grows linearly with the nodes.

mod figure;
mod modules;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use hlorank_graph::{Graph, HloModule, Limits, SegmentedGraph, Task};
use modules::Module;

/// Limits that every module of this benchmark fits.
const LIMITS: Limits = Limits {
    nodes: 1 << 20,
    edges: 1 << 22,
    configs: 1,
    config_entries: 1,
};

fn main() {
    let growing = [1, 8, 64, 512].map(Module::growing);
    let large = Module::large();
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    for module in growing.iter().chain([&large]) {
        measure(&mut criterion, module);
    }
    criterion.final_summary();
    figure::write_read_time(&large);
    figure::write_linearity(&growing[1..]);
}

fn measure(criterion: &mut Criterion, module: &Module) {
    let graph = read(&module.bytes);
    let nodes = graph.len();
    let mut group = criterion.benchmark_group(&module.name);
    group.throughput(Throughput::Elements(nodes as u64));
    group.bench_function(BenchmarkId::new("read", nodes), |bencher| {
        bencher.iter(|| read(&module.bytes));
    });
    group.bench_function(BenchmarkId::new("hash", nodes), |bencher| {
        bencher.iter(|| black_box(&graph).hash());
    });
    group.bench_function(BenchmarkId::new("cut", nodes), |bencher| {
        bencher.iter(|| SegmentedGraph::new(black_box(&graph)));
    });
    group.bench_function(BenchmarkId::new("whole", nodes), |bencher| {
        bencher.iter(|| whole(&module.bytes));
    });
    group.finish();
}

/// Reads and featurizes a module.
fn read(bytes: &[u8]) -> Graph {
    let module = HloModule::read(black_box(bytes), &LIMITS).expect("the module is sound");
    let configurable = module.arrays.default_configurable();
    module
        .into_graph(Task::Layout, configurable)
        .expect("the module is sound")
}

/// Reads, featurizes, hashes, prunes and cuts a module.
fn whole(bytes: &[u8]) -> SegmentedGraph {
    SegmentedGraph::new(&read(bytes))
}
