use std::{
    fs,
    time::{Duration, Instant},
};

use crate::{
    modules::{Module, repository},
    read, whole,
};

const RUNS: usize = 21;

/// One line of the table that `make bench` prints.
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    at_most: f64,
    how: String,
}

impl Figure {
    fn write(&self) {
        let Self {
            name,
            value,
            unit,
            at_most,
            how,
        } = self;
        let passed = value <= at_most;
        println!("{name}: {value:.2} {unit} (target <= {at_most}, passed: {passed}); {how}");
        let json = format!(
            r#"{{"name": "{name}", "value": {value:.4}, "unit": "{unit}", "target": "<= {at_most}", "passed": {passed}, "how": "{how}"}}"#
        );
        let folder = repository("target/figures");
        fs::create_dir_all(&folder).expect("target can be written");
        fs::write(folder.join(format!("{name}.json")), json + "\n").expect("target can be written");
    }
}

/// Writes the time to read, featurize, hash, prune and cut the large module.
pub(crate) fn write_read_time(module: &Module) {
    let nodes = read(&module.bytes).len();
    Figure {
        name: "read_graph",
        value: times(module)[RUNS / 2].as_secs_f64() * 1e3,
        unit: "ms",
        at_most: 100.0,
        how: format!(
            "read, featurize, hash, prune and cut {}, {nodes} nodes; one thread, median of {RUNS}",
            module.name
        ),
    }
    .write();
}

/// Writes the time per node of the largest module divided by that of the smallest.
pub(crate) fn write_linearity(growing: &[Module]) {
    let [smallest, .., largest] = growing else {
        return;
    };
    let (smallest_nodes, smallest_time) = time_per_node(smallest);
    let (largest_nodes, largest_time) = time_per_node(largest);
    Figure {
        name: "read_graph_linearity",
        value: largest_time / smallest_time,
        unit: "x",
        at_most: 2.0,
        how: format!(
            "time per node at {largest_nodes} nodes over that at {smallest_nodes}: {:.0} and {:.0} ns; fastest of {RUNS}",
            largest_time * 1e9,
            smallest_time * 1e9
        ),
    }
    .write();
}

/// Returns the number of nodes, and the seconds per node of the fastest run: a busy machine slows a large module down
/// more than a small one.
fn time_per_node(module: &Module) -> (u32, f64) {
    let nodes =
        u32::try_from(read(&module.bytes).len()).expect("a module has fewer than 2³² nodes");
    (nodes, times(module)[0].as_secs_f64() / f64::from(nodes))
}

/// Returns the times of all runs, ascending.
fn times(module: &Module) -> Vec<Duration> {
    let time = || {
        let start = Instant::now();
        drop(std::hint::black_box(whole(&module.bytes)));
        start.elapsed()
    };
    let mut times: Vec<Duration> = std::iter::repeat_with(time).take(RUNS).collect();
    times.sort_unstable();
    times
}
