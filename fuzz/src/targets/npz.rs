use std::path::Path;

use hlorank_graph::{GraphFile, MeasuredGraph, Task, read_golden_cases};

use super::tuning_data::check_measured;
use crate::{
    Target,
    mutate::mutate_npz,
    reading::{LIMITS, check_forms, check_graph, refused},
};

/// An npz file, as golden cases and as a file of `TpuGraphs`: what is read holds together, and is read again from
/// the file that is written of it.
pub const NPZ: Target = Target { name: "npz", mutate: mutate_npz, read };

fn read(input: &[u8]) -> String {
    let path = Path::new("fuzzed.npz");
    let mut outcome = match read_golden_cases(path, input.to_vec(), &LIMITS) {
        Ok(cases) => {
            for case in &cases {
                check_graph(&case.graph);
                check_forms(&case.configurations);
                assert_eq!(case.scores.len(), case.configurations.len());
                assert_eq!(case.graph.task(), case.configurations.task());
            }
            format!("{} cases; ", cases.len())
        }
        Err(error) => format!("{}; ", refused(&error)),
    };
    for task in [Task::Layout, Task::Tile] {
        match GraphFile::of(path, input.to_vec(), task, &LIMITS) {
            Ok(file) => {
                let outcomes =
                    file.graphs.iter().map(|measured: &MeasuredGraph| check_measured(measured, input));
                outcome.extend(outcomes);
            }
            Err(error) => outcome += &refused(&error),
        }
    }
    outcome
}
