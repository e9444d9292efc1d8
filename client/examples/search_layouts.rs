//! Searches good layouts of a graph by score: a stochastic local search, each step of which scores random neighbours of
//! the best layout so far.
//!
//! ```console
//! $ cargo run --release -p hlorank-client --example search_layouts -- tests/data/measured/layout_random_window_reversed.pb
//! ```
//!
//! Addresses of servers may follow the file. The default is `http://127.0.0.1:7070`. Each step sends only the hash of
//! the graph, and neighbours as changes to the best layout.

use std::{error::Error, path::PathBuf};

use clap::Parser;
use fastrand::Rng;
use hlorank_client::{Client, Connection, GraphHandle, RankRequest, v1::ConfigurableNode};
use hlorank_graph::{
    ConfigurationError, Configurations, GraphFile, LayoutBatchBuilder, LayoutEntry, Limits, Task,
};

/// Searches good layouts of a graph by score.
#[derive(Parser)]
struct Arguments {
    /// File with a graph
    file: PathBuf,
    /// Addresses of the servers
    #[arg(default_value = "http://127.0.0.1:7070")]
    endpoints: Vec<String>,
    /// Number of steps
    #[arg(long, default_value_t = 200)]
    steps: usize,
}

const NEIGHBOURS: usize = 100;
/// Maximum number of nodes in which a neighbour differs.
const CHANGES: usize = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Arguments {
        file,
        endpoints,
        steps,
    } = Arguments::parse();
    let client = Client::connect_replicas(endpoints, Connection::default()).await?;
    let file = GraphFile::read(&file, Task::Layout, &Limits::default())?;
    let graph = GraphHandle::from_measured(file.graphs.first().ok_or("the file has no graph")?);
    let nodes = client.put_graph(&graph).await?.configurable_nodes;
    println!("{} nodes to configure", nodes.len());

    let mut draw = Rng::with_seed(0);
    let mut best = vec![LayoutEntry::DEFAULT; nodes.len()];
    for step in 0..steps {
        let layouts = with_neighbours(&best, &nodes, &mut draw)?;
        let configurations = batch(&layouts)?;
        let request = RankRequest::new(&graph, &configurations).with_scores();
        let ranking = client.rank(&request).await?;
        let first = ranking.best.first().ok_or("nothing was ranked")?;
        if step == 0 {
            println!("the compiler's default: score {:.4}", ranking.scores[0]);
        }
        if first.score < ranking.scores[0] {
            let milliseconds = ranking.timings.total.as_secs_f64() * 1e3;
            println!(
                "step {step:3}: score {:.4} in {milliseconds:.1} ms",
                first.score
            );
            best.clone_from(&layouts[first.config]);
        }
    }
    for (node, entry) in nodes
        .iter()
        .zip(&best)
        .filter(|(_, entry)| **entry != LayoutEntry::DEFAULT)
    {
        println!("{} {}: {:?}", node.opcode, node.name, entry.tensors());
    }
    Ok(())
}

/// Returns a layout and its neighbours, which differ from it in a few nodes.
fn with_neighbours(
    layout: &[LayoutEntry],
    nodes: &[ConfigurableNode],
    draw: &mut Rng,
) -> Result<Vec<Vec<LayoutEntry>>, ConfigurationError> {
    let mut layouts = vec![layout.to_vec()];
    for _ in 0..NEIGHBOURS {
        let mut neighbour = layout.to_vec();
        for _ in 0..draw.usize(1..=CHANGES) {
            let slot = draw.usize(..nodes.len());
            neighbour[slot] = random_entry(&nodes[slot], draw)?;
        }
        layouts.push(neighbour);
    }
    Ok(layouts)
}

/// Returns a random layout of a node: the dimensions of every tensor are in random order.
fn random_entry(
    node: &ConfigurableNode,
    draw: &mut Rng,
) -> Result<LayoutEntry, ConfigurationError> {
    let order = |rank: &u32| {
        let mut dimensions: Vec<i32> = (0..).take(*rank as usize).collect();
        draw.shuffle(&mut dimensions);
        dimensions
    };
    LayoutEntry::from_tensors(node.tensor_ranks.iter().map(order))
}

fn batch(layouts: &[Vec<LayoutEntry>]) -> Result<Configurations, ConfigurationError> {
    let slots = layouts.first().map_or(0, Vec::len);
    let mut batch = LayoutBatchBuilder::new(slots, Limits::default());
    for layout in layouts {
        batch.push(layout)?;
    }
    Ok(batch.build()?.into())
}
