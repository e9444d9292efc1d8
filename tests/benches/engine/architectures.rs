//! What a configuration costs with every model that ships or serves a test, whatever its architecture.

use hlorank_client::v1::Model;
use hlorank_tests::prelude::*;

use crate::{
    search::children,
    subjects::{
        WITHOUT_CACHE, alexnet, entries, measured_layouts, random_layouts, window_training,
    },
};

const CALLS: usize = 7;
const LAYOUTS: usize = 300;
const TILES: i64 = 300;
const NODES: u8 = 40;

/// Configurations of one graph.
struct Subject {
    what: String,
    task: Task,
    graph: GraphHandle,
    configurations: Configurations,
}

/// Prints a table for every list of configurations, with a row for every model of the task.
pub(crate) async fn compare() {
    let artifacts = Artifacts::all().with_papers();
    let server = TestServer::start_with(&[WITHOUT_CACHE, &artifacts.flag()]).await;
    let client = server.client().await;
    let models = client.list_models().await.expect("the models");
    for subject in subjects() {
        println!("\n{}; median of {CALLS} calls\n", subject.what);
        println!("| model | rows | ms | µs a configuration |\n| --- | ---: | ---: | ---: |");
        let of_task = |model: &&Model| model.task() == subject.task.into();
        for model in models.iter().filter(of_task) {
            print_row(&client, &model.name, &subject).await;
        }
    }
}

async fn print_row(client: &Client, model: &str, subject: &Subject) {
    let request = RankRequest::new(&subject.graph, &subject.configurations)
        .model(Some(model.parse().expect("a name")))
        .top(1);
    let Ok(first) = client.rank(&request).await else {
        // The graph has features of another padding than the model needs.
        return println!("| `{model}` | - | - | - |");
    };
    let rows = first.reuse.rows_evaluated;
    let time = Times::of_rankings(CALLS, client, &request).await.median();
    let each = time * 1e3 / subject.configurations.len() as f64;
    println!("| `{model}` | {rows} | {time:.2} | {each:.1} |");
}

fn subjects() -> Vec<Subject> {
    let graphs = alexnet().into_iter().chain([window_training()]);
    let mut subjects: Vec<Subject> = graphs.flat_map(|graph| layouts_of(&graph)).collect();
    subjects.push(Subject {
        what: format!("{TILES} tiles of a kernel of {NODES} nodes"),
        task: Task::Tile,
        graph: GraphHandle::features(&kernel_of(NODES)),
        configurations: grid_configurations(TILES),
    });
    subjects
}

/// Layouts where nearly every row of a segment model is new, and those of a step of a search, which share rows.
fn layouts_of(graph: &MeasuredGraph) -> [Subject; 2] {
    let (measured, mut random) = (measured_layouts(graph), Rng::with_seed(5));
    let drawn = random_layouts(measured, LAYOUTS, &mut random);
    let neighbours = children(&entries(measured, 0), measured, LAYOUTS, &mut random);
    [
        ("random layouts", drawn),
        ("layouts of one step of a search", neighbours),
    ]
    .map(|(kind, batch)| Subject {
        what: format!("{LAYOUTS} {kind} of {}", graph.name),
        task: Task::Layout,
        graph: GraphHandle::from_measured(graph),
        configurations: Configurations::Layout(batch),
    })
}
