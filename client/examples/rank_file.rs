//! Ranks the configurations of the graphs of a file, and shows the measured run times of the best.
//!
//! ```console
//! $ cargo run --release -p hlorank-client --example rank_file -- tests/data/measured/tile_kernels.pb
//! ```
//!
//! Addresses of servers may follow the file. The default is `http://127.0.0.1:7070`.

use std::{env, error::Error, path::Path};

use hlorank_client::{Client, Connection, GraphHandle, RankRequest};
use hlorank_graph::{GraphFile, Limits, Task};

const ENDPOINT: &str = "http://127.0.0.1:7070";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().ok_or("name a file of measured graphs")?;
    let mut endpoints: Vec<String> = arguments.collect();
    if endpoints.is_empty() {
        endpoints.push(ENDPOINT.to_owned());
    }
    let client = Client::connect_replicas(endpoints, Connection::default()).await?;
    let file = GraphFile::read(Path::new(&path), Task::Layout, &Limits::default())?;
    for measured in &file.graphs {
        let Some(measurements) = &measured.measurements else {
            println!("{} has no configurations", measured.name);
            continue;
        };
        let graph = GraphHandle::from_measured(measured);
        let ranking = client
            .rank(&RankRequest::new(&graph, &measurements.configurations).top(3))
            .await?;
        let (count, milliseconds) = (
            measurements.configurations.len(),
            ranking.timings.total.as_secs_f64() * 1e3,
        );
        println!(
            "{}: {count} configurations by {} in {milliseconds:.1} ms",
            measured.name, ranking.model
        );
        for ranked in &ranking.best {
            let run_time = measurements.run_times[ranked.config];
            println!(
                "{:6} score {:9.4} ran {run_time} ns",
                ranked.config, ranked.score
            );
        }
    }
    Ok(())
}
