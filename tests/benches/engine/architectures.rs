//! What a configuration costs with every model that ships or serves a test, whatever its architecture.

use hlorank_client::v1::Model;
use hlorank_tests::prelude::*;

use crate::{
    search::children,
    subjects::{alexnet, measured_layouts, random_layouts, read},
};

const CALLS: usize = 7;
const LAYOUTS: usize = 300;
const TILES: i64 = 300;
const NODES: u8 = 40;

/// Configurations of one graph, described.
type List = (String, GraphHandle, Configurations);

/// Prints a table for every list of configurations, with a row for every model of the task.
pub(crate) async fn compare() {
    let artifacts = Artifacts::all().with_papers();
    let server = TestServer::start_with(&["--embedding-cache-bytes=0", &artifacts.flag()]).await;
    let client = server.client().await;
    let models = client.list_models().await.expect("the models");
    for (task, (what, graph, configurations)) in lists() {
        println!("\n{what}; median of {CALLS} calls\n");
        println!("| model | rows | ms | µs a configuration |\n| --- | ---: | ---: | ---: |");
        for model in models.iter().filter(|model| model.task() == task.into()) {
            row(&client, model, &graph, &configurations).await;
        }
    }
}

async fn row(client: &Client, model: &Model, graph: &GraphHandle, configurations: &Configurations) {
    let name = Some(model.name.parse().expect("a name"));
    let request = RankRequest::new(graph, configurations).model(name).top(1);
    let Ok(first) = client.rank(&request).await else {
        // The graph has features of another padding than the model needs.
        return println!("| `{}` | - | - | - |", model.name);
    };
    let times = call_times(CALLS, async || {
        drop(client.rank(&request).await.expect("a ranking"));
    })
    .await;
    let (rows, time) = (first.reuse.rows_evaluated, times[CALLS / 2]);
    let each = time * 1e3 / configurations.len() as f64;
    println!("| `{}` | {rows} | {time:.2} | {each:.1} |", model.name);
}

fn lists() -> Vec<(Task, List)> {
    let own = read(&fixture("measured/layout_random_window_nchw_train.pb"));
    let graphs = alexnet().into_iter().chain([own]);
    let layouts = graphs
        .flat_map(|graph| layout_lists(&graph))
        .map(|list| (Task::Layout, list));
    let tiles = grid_configurations(TILES);
    let kernel = GraphHandle::features(&kernel_of(NODES));
    layouts
        .chain([(
            Task::Tile,
            (
                format!("{TILES} tiles of a kernel of {NODES} nodes"),
                kernel,
                tiles,
            ),
        )])
        .collect()
}

/// Layouts where nearly every row of a segment model is new, and those of a step of a search, which share rows.
fn layout_lists(graph: &MeasuredGraph) -> [List; 2] {
    let (measured, mut random) = (measured_layouts(graph), Rng::with_seed(5));
    let drawn = random_layouts(measured, LAYOUTS, &mut random);
    let parent: Vec<LayoutEntry> = (0..measured.slots())
        .map(|slot| measured.entry(0, slot))
        .collect();
    let neighbours = children(&parent, measured, LAYOUTS, &mut random);
    [
        ("random layouts", drawn),
        ("layouts of one step of a search", neighbours),
    ]
    .map(|(kind, batch)| {
        (
            format!("{LAYOUTS} {kind} of {}", graph.name),
            GraphHandle::from_measured(graph),
            Configurations::Layout(batch),
        )
    })
}
