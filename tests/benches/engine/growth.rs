use hlorank_proto::v1::ConfigurableNode;
use hlorank_tests::prelude::*;

use crate::{
    naive::Naive,
    plot::{Curve, log_log},
    subjects::{layout_graph, measured_layouts, random_layouts, recombined_layouts, unlimited},
};

/// Returns the fastest of three calls, in seconds.
async fn fastest(client: &Client, graph: &GraphHandle, layouts: &LayoutBatch) -> (f64, Ranking) {
    let configurations = Configurations::Layout(layouts.clone());
    let request = RankRequest::new(graph, &configurations).top(10);
    let mut calls = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        let ranking = client.rank(&request).await.expect("a ranking");
        calls.push((start.elapsed().as_secs_f64(), ranking));
    }
    calls.sort_by(|one, other| one.0.total_cmp(&other.0));
    calls.remove(0)
}

/// Measures both tables.
pub(crate) async fn over_configurations_and_nodes() {
    over_configurations().await;
    over_nodes().await;
}

/// Measures 100 to 100,000 layouts of one graph with an empty embedding cache: recombined from measured ones as a
/// search does it, and drawn node by node, which shares least.
async fn over_configurations() {
    let measured = layout_graph();
    let (handle, graph) = (
        GraphHandle::from_measured(&measured),
        SegmentedGraph::new(&measured.graph),
    );
    let layouts = measured_layouts(&measured);
    let server = TestServer::start_with(&["--embedding-cache-bytes", "0"]).await;
    let client = server.client().await;
    let mut random = Rng::with_seed(2);
    let naive = Naive::new(graph.clone()).seconds(&random_layouts(layouts, 256, &mut random));
    let [mut recombined, mut drawn, mut alone] = [const { Vec::new() }; 3];
    println!(
        "\nlayouts of {}, warm graph, empty embedding cache",
        measured.name
    );
    println!(
        "{:>14}{:>26}{:>26}{:>14}",
        "", "segments recombined", "drawn node by node", "naive"
    );
    let columns = ["rows", "ms", "ratio"]
        .map(|column| format!("{column:>9}"))
        .concat();
    println!(
        "{:>14}{columns:>26}{columns:>26}{:>14}",
        "configurations", "ms"
    );
    for count in [100, 1_000, 10_000, 100_000] {
        let seconds_alone = naive * count as f64;
        print!("{count:>14}");
        let batches = [
            recombined_layouts(&graph, layouts, count, &mut random),
            random_layouts(layouts, count, &mut random),
        ];
        for (batch, curve) in batches.iter().zip([&mut recombined, &mut drawn]) {
            let (seconds, ranking) = fastest(&client, &handle, batch).await;
            let (rows, ratio) = (ranking.reuse.rows_evaluated, seconds_alone / seconds);
            print!("{rows:>8}{:>9.1}{ratio:>9.0}", seconds * 1e3);
            curve.push((count as f64, seconds));
        }
        println!("{:>14.0}", seconds_alone * 1e3);
        alone.push((count as f64, seconds_alone));
    }
    let curves = [
        Curve {
            name: "segments recombined",
            points: recombined,
        },
        Curve {
            name: "drawn node by node",
            points: drawn,
        },
        Curve {
            name: "every configuration by itself",
            points: alone,
        },
    ];
    log_log("growth_over_configurations", "configurations", &curves);
}

/// Measures 100 random layouts of modules of 300 to 30,000 nodes.
async fn over_nodes() {
    let server = TestServer::start_with(&["--embedding-cache-bytes", "0"]).await;
    let client = server.client().await;
    let own = Some(fixture("hlo/cnn_train.cpu_after_opt.hlo_module.pb"));
    let larger = [
        "resnet16_train_bf16.before_opt",
        "transformer12_train.before_opt",
        "transformer96_train.before_opt",
    ];
    let larger = larger.map(|name| shared(&format!("data/hlo/{name}.hlo_module.pb")));
    println!("\n100 random layouts a module, warm graph, empty embedding cache");
    println!(
        "{:>8}{:>14}{:>10}{:>14}{:>12}{:>14}",
        "nodes", "configurable", "segments", "rows, shared", "rows", "ms"
    );
    for path in own.into_iter().chain(larger.into_iter().flatten()) {
        let module = fs::read(path).expect("a module");
        let handle = GraphHandle::hlo_module(module, Task::Layout, Vec::new());
        let graph = client.put_graph(&handle).await.expect("a graph");
        let (summary, layouts) = (graph.summary, random_entries(&graph.configurable_nodes));
        let (seconds, ranking) = fastest(&client, &handle, &layouts).await;
        let (nodes, slots, segments) =
            (summary.nodes, summary.configurable_nodes, summary.segments);
        let (all, rows) = (ranking.reuse.segment_rows, ranking.reuse.rows_evaluated);
        println!(
            "{nodes:>8}{slots:>14}{segments:>10}{all:>14}{rows:>12}{:>14.2}",
            seconds * 1e3
        );
    }
}

/// Returns layouts in which each slot keeps the default, or has its output or all its tensors in ascending order.
fn random_entries(nodes: &[ConfigurableNode]) -> LayoutBatch {
    let mut random = Rng::with_seed(3);
    let mut builder = LayoutBatchBuilder::new(nodes.len(), unlimited());
    for _ in 0..100 {
        let draw = |node: &ConfigurableNode| {
            let tensors = [0, 1, node.tensor_ranks.len()][random.usize(..3)];
            let orders = node.tensor_ranks[..tensors]
                .iter()
                .map(|rank| (0..).take(*rank as usize));
            let orders = orders.map(Iterator::collect::<Vec<i32>>);
            LayoutEntry::from_tensors(orders).expect("at most six dimensions")
        };
        builder
            .push(&nodes.iter().map(draw).collect::<Vec<_>>())
            .expect("a batch within the limits");
    }
    builder.build().expect("a batch")
}
