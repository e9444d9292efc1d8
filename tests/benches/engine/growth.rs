use hlorank_proto::v1::ConfigurableNode;
use hlorank_tests::prelude::*;

use crate::{
    naive::naive_seconds,
    plot::{Curve, log_log},
    subjects::{
        WITHOUT_CACHE, drawn_layouts, layout_graph, measured_layouts, random_layouts,
        recombined_layouts,
    },
};

/// Number of calls, of which the fastest counts.
const CALLS: usize = 3;

/// Measures both tables.
pub(crate) async fn over_configurations_and_nodes() {
    let server = TestServer::start_with(&[WITHOUT_CACHE]).await;
    let client = server.client().await;
    over_configurations(&client).await;
    over_nodes(&client).await;
}

/// Measures 100 to 100,000 layouts of one graph with an empty embedding cache: recombined from measured ones as a
/// search does it, and drawn node by node, which shares least.
async fn over_configurations(client: &Client) {
    let measured = layout_graph();
    let handle = GraphHandle::from_measured(&measured);
    let graph = SegmentedGraph::new(&measured.graph);
    let layouts = measured_layouts(&measured);
    let mut random = Rng::with_seed(2);
    let naive = naive_seconds(&graph, &random_layouts(layouts, 256, &mut random));
    let mut curves = [
        "segments recombined",
        "drawn node by node",
        "every configuration by itself",
    ]
    .map(Curve::new);
    println!(
        "\nlayouts of {}, warm graph, empty embedding cache\n",
        measured.name
    );
    println!("| layouts | recombined: rows | ms | drawn: rows | ms | each by itself: ms |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for count in [100, 1_000, 10_000, 100_000] {
        print!("| {count} |");
        let batches = [
            recombined_layouts(&graph, layouts, count, &mut random),
            random_layouts(layouts, count, &mut random),
        ];
        for (batch, curve) in batches.into_iter().zip(&mut curves) {
            let (ranking, milliseconds) = fastest(client, &handle, batch).await;
            print!(" {} | {milliseconds:.1} |", ranking.reuse.rows_evaluated);
            curve.points.push((count as f64, milliseconds * 1e-3));
        }
        let alone = naive * count as f64;
        println!(" {:.0} |", alone * 1e3);
        curves[2].points.push((count as f64, alone));
    }
    log_log("growth_over_configurations", "configurations", &curves);
}

/// Measures 100 random layouts of modules of 300 to 30,000 nodes.
async fn over_nodes(client: &Client) {
    let own = fixture("hlo/cnn_train.cpu_after_opt.hlo_module.pb");
    let larger = [
        "resnet16_train_bf16.before_opt",
        "transformer12_train.before_opt",
        "transformer96_train.before_opt",
    ];
    let larger = larger.map(|name| shared(&format!("data/hlo/{name}.hlo_module.pb")));
    println!("\n100 random layouts a module, warm graph, empty embedding cache\n");
    println!("| nodes | configurable | segments | rows before sharing | distinct rows | ms |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for path in [own].into_iter().chain(larger.into_iter().flatten()) {
        let module = fs::read(path).expect("a module");
        let handle = GraphHandle::hlo_module(module, Task::Layout, Vec::new());
        let graph = client.put_graph(&handle).await.expect("a graph");
        let layouts = random_entries(&graph.configurable_nodes);
        let (ranking, milliseconds) = fastest(client, &handle, layouts).await;
        println!(
            "| {} | {} | {} | {} | {} | {milliseconds:.2} |",
            graph.summary.nodes,
            graph.summary.configurable_nodes,
            graph.summary.segments,
            ranking.reuse.segment_rows,
            ranking.reuse.rows_evaluated,
        );
    }
}

/// Returns an answer, and the milliseconds of the fastest call.
async fn fastest(client: &Client, graph: &GraphHandle, layouts: LayoutBatch) -> (Ranking, f64) {
    let request = RankRequest::new(graph, &Configurations::Layout(layouts)).top(10);
    let times = Times::of_rankings(CALLS, client, &request).await;
    let ranking = client.rank(&request).await.expect("a ranking");
    (ranking, times.fastest())
}

/// Returns layouts in which each slot keeps the default, or has its output or all its tensors in ascending order.
fn random_entries(nodes: &[ConfigurableNode]) -> LayoutBatch {
    let mut random = Rng::with_seed(3);
    let mut draw = |node: &ConfigurableNode| {
        let tensors = [0, 1, node.tensor_ranks.len()][random.usize(..3)];
        let orders = node.tensor_ranks[..tensors]
            .iter()
            .map(|rank| (0..).take(*rank as usize));
        let orders = orders.map(Iterator::collect::<Vec<i32>>);
        LayoutEntry::from_tensors(orders).expect("at most six dimensions")
    };
    drawn_layouts(nodes.len(), 100, || nodes.iter().map(&mut draw).collect())
}
