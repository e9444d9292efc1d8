use hlorank_tests::prelude::*;

use crate::subjects::{alexnet, measured_layouts, read, unlimited};

const STEPS: usize = 300;
const CHILDREN: usize = 100;
const MUTATIONS: usize = 3;

/// Measures a genetic search, in which each step ranks the children of the best of the step before.
pub(crate) async fn steps() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let large_segments = read(&fixture("measured/layout_random_window_nchw_train.pb"));
    let graphs = alexnet()
        .map(|alexnet| ("search_step", alexnet, 0.8))
        .into_iter();
    for (name, measured, most) in
        graphs.chain([("search_step_large_segments", large_segments, 2.0)])
    {
        let (handle, layouts) = (
            GraphHandle::from_measured(&measured),
            measured_layouts(&measured),
        );
        let summary = client.put_graph(&handle).await.expect("a graph").summary;
        let mut random = Rng::with_seed(4);
        let mut parent: Vec<LayoutEntry> = (0..layouts.slots())
            .map(|slot| layouts.entry(0, slot))
            .collect();
        let (mut times, mut rows) = (Vec::new(), 0);
        for _ in 0..STEPS {
            let children = children(&parent, layouts, CHILDREN, &mut random);
            let configurations = Configurations::Layout(children.clone());
            let start = Instant::now();
            let ranking = client
                .rank(&RankRequest::new(&handle, &configurations).top(1))
                .await;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            let ranking = ranking.expect("a ranking");
            rows += ranking.reuse.rows_evaluated;
            parent = (0..layouts.slots())
                .map(|slot| children.entry(ranking.best[0].config, slot))
                .collect();
        }
        let first = times[0];
        times.sort_by(f64::total_cmp);
        Figure {
            name: name.to_owned(),
            value: times[STEPS / 2],
            unit: "ms",
            target: Target::AtMost(most),
            how: format!(
                "{CHILDREN} children, up to {MUTATIONS} mutated nodes each, of {} at the client, segments of up to {} nodes, \
                 {:.1} new rows a step; median of {STEPS}, p99 {:.1}, first {first:.1}",
                measured.name,
                summary.largest_segment,
                rows as f64 / STEPS as f64,
                times[STEPS * 99 / 100],
            ),
        }
        .write();
    }
}

/// Returns configurations that differ from the parent in up to three nodes, set as in measured `layouts`.
pub(crate) fn children(
    parent: &[LayoutEntry],
    layouts: &LayoutBatch,
    count: usize,
    random: &mut Rng,
) -> LayoutBatch {
    let mut builder = LayoutBatchBuilder::new(parent.len(), unlimited());
    for _ in 0..count {
        let mut child = parent.to_vec();
        for _ in 0..=random.usize(..MUTATIONS) {
            let slot = random.usize(..child.len());
            child[slot] = layouts.table(slot)[random.usize(..layouts.table(slot).len())];
        }
        builder.push(&child).expect("a batch within the limits");
    }
    builder.build().expect("a batch")
}
