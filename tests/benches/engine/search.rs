use hlorank_tests::prelude::*;

use crate::subjects::{
    alexnet, drawn_layouts, entries, measured_layouts, random_entry, window_training,
};

const STEPS: usize = 300;
const CHILDREN: usize = 100;
const MUTATIONS: usize = 3;

/// Measures genetic searches in layouts of AlexNet, and of a training step with large segments.
pub(crate) async fn steps() {
    let server = TestServer::start().await;
    let client = server.client().await;
    if let Some(alexnet) = alexnet() {
        search(&client, "search_step", &alexnet, 0.8).await;
    }
    let large_segments = window_training();
    search(&client, "search_step_large_segments", &large_segments, 2.0).await;
}

/// Measures a genetic search, in which each step ranks the children of the best of the step before.
async fn search(client: &Client, name: &str, measured: &MeasuredGraph, most: f64) {
    let handle = GraphHandle::from_measured(measured);
    let layouts = measured_layouts(measured);
    let summary = client.put_graph(&handle).await.expect("a graph").summary;
    let mut random = Rng::with_seed(4);
    let mut parent = entries(layouts, 0);
    let (mut times, mut rows) = (Vec::new(), 0);
    for _ in 0..STEPS {
        let children = children(&parent, layouts, CHILDREN, &mut random);
        let configurations = Configurations::Layout(children.clone());
        let start = Instant::now();
        let request = RankRequest::new(&handle, &configurations).top(1);
        let ranking = client.rank(&request).await.expect("a ranking");
        times.push(start.elapsed());
        rows += ranking.reuse.rows_evaluated;
        parent = entries(&children, ranking.best[0].config);
    }
    let how = format!(
        "{CHILDREN} children, up to {MUTATIONS} mutated nodes each, of {} at the client, segments of up to {} nodes, \
         {:.1} new rows a step",
        measured.name,
        summary.largest_segment,
        rows as f64 / STEPS as f64,
    );
    Figure::of_median(name, &Times::new(times), most, &how).write();
}

/// Returns configurations that differ from the parent in up to three nodes, set as in measured `layouts`.
pub(crate) fn children(
    parent: &[LayoutEntry],
    layouts: &LayoutBatch,
    count: usize,
    random: &mut Rng,
) -> LayoutBatch {
    drawn_layouts(parent.len(), count, || {
        let mut child = parent.to_vec();
        for _ in 0..=random.usize(..MUTATIONS) {
            let slot = random.usize(..child.len());
            child[slot] = random_entry(layouts, slot, random);
        }
        child
    })
}
