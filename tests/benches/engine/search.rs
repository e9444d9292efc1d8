use std::time::Instant;

use fastrand::Rng;
use hlorank_client::{GraphHandle, RankRequest};
use hlorank_graph::{Configurations, LayoutBatch, LayoutBatchBuilder, LayoutEntry};
use hlorank_tests::{Figure, Target, TestServer, fixture};

use crate::subjects::{layout_graph, measured_layouts, read, unlimited};

const STEPS: usize = 300;
const CHILDREN: usize = 100;
const MUTATIONS: usize = 3;

/// A genetic search: each step ranks the children of the best of the step before.
pub(crate) async fn steps() {
    let server = TestServer::start().await;
    let client = server.client().await;
    println!("\nsteps of a genetic search: {CHILDREN} children, up to {MUTATIONS} mutated nodes each");
    println!(
        "{:>40}{:>8}{:>12}{:>12}{:>12}{:>12}",
        "", "nodes", "rows a step", "p50, ms", "p99, ms", "first, ms"
    );
    let mut p50s = Vec::new();
    for measured in [layout_graph(), read(&fixture("measured/layout_random_window_nchw_train.pb"))] {
        let (handle, layouts) = (GraphHandle::of(&measured), measured_layouts(&measured));
        client.put_graph(&handle).await.expect("a graph");
        let mut random = Rng::with_seed(4);
        let mut parent: Vec<LayoutEntry> = (0..layouts.slots()).map(|slot| layouts.entry(0, slot)).collect();
        let (mut times, mut rows) = (Vec::new(), 0);
        for _ in 0..STEPS {
            let children = children(&parent, layouts, &mut random);
            let configurations = Configurations::Layout(children.clone());
            let start = Instant::now();
            let ranking =
                client.rank(&RankRequest::new(&handle, &configurations).top(1)).await.expect("a ranking");
            times.push(start.elapsed().as_secs_f64() * 1e3);
            rows += ranking.reuse.rows_evaluated;
            parent = (0..layouts.slots()).map(|slot| children.entry(ranking.best[0].config, slot)).collect();
        }
        let first = times[0];
        times.sort_by(f64::total_cmp);
        let (p50, p99) = (times[STEPS / 2], times[STEPS * 99 / 100]);
        let (nodes, rows) = (measured.graph.len(), rows as f64 / STEPS as f64);
        println!("{:>40}{nodes:>8}{rows:>12.1}{p50:>12.2}{p99:>12.2}{first:>12.2}", measured.name);
        p50s.push((measured.name, p50));
    }
    let (name, slowest) =
        p50s.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).expect("two graphs");
    Figure {
        name: "search_step",
        value: slowest,
        unit: "ms",
        target: Target::AtMost(2.0),
        how: format!("{CHILDREN} children of {name} at the client, median of {STEPS} steps"),
    }
    .write();
}

fn children(parent: &[LayoutEntry], layouts: &LayoutBatch, random: &mut Rng) -> LayoutBatch {
    let mut builder = LayoutBatchBuilder::new(parent.len(), unlimited());
    for _ in 0..CHILDREN {
        let mut child = parent.to_vec();
        for _ in 0..=random.usize(..MUTATIONS) {
            let slot = random.usize(..child.len());
            child[slot] = layouts.table(slot)[random.usize(..layouts.table(slot).len())];
        }
        builder.push(&child).expect("a batch within the limits");
    }
    builder.build().expect("a batch")
}
