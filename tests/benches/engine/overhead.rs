use hlorank_tests::prelude::*;

use crate::subjects::{alexnet, measured_layouts, recombined_layouts};

const CALLS: usize = 2_000;

/// Measures the time on the server without the model's, over requests of 1 to 64 KiB.
pub(crate) async fn of_small_requests() {
    let Some(measured) = alexnet() else { return };
    let (handle, layouts) = (
        GraphHandle::from_measured(&measured),
        measured_layouts(&measured),
    );
    let graph = SegmentedGraph::new(&measured.graph);
    let server = TestServer::start().await;
    let client = server.client().await;
    let mut random = Rng::with_seed(5);
    let mut overheads = Vec::new();
    for call in 0..CALLS {
        let bytes = 1024 << (call % 7);
        let batch = recombined_layouts(&graph, layouts, bytes / layouts.slots(), &mut random);
        let configurations = Configurations::Layout(batch);
        let ranking = client
            .rank(&RankRequest::new(&handle, &configurations).top(10))
            .await
            .expect("a ranking");
        let timings = ranking.timings;
        overheads.push(
            timings
                .total
                .saturating_sub(timings.encode + timings.head)
                .as_secs_f64()
                * 1e6,
        );
    }
    overheads.sort_by(f64::total_cmp);
    let figure = |name: &str, value, most| Figure {
        name: name.to_owned(),
        value,
        unit: "us",
        target: Target::AtMost(most),
        how: format!(
            "total less encoder and head, on the server; {CALLS} requests of 1 to 64 KiB of {}",
            measured.name
        ),
    };
    figure("server_overhead_p50", overheads[CALLS / 2], 150.0).write();
    figure("server_overhead_p99", overheads[CALLS * 99 / 100], 1000.0).write();
}
