use std::path::Path;

use hlorank_graph::{GraphFile, Task, read_golden_cases};

use super::tuning_data::check_measured;
use crate::{
    Target,
    mutate::mutate_npz,
    reading::{LIMITS, check_error, check_forms, check_graph},
};

/// An npz file, read as golden cases and as a `TpuGraphs` file. What was read reads the same from the file that is
/// written of it.
pub const NPZ: Target = Target {
    name: "npz",
    mutate: mutate_npz,
    read,
};

fn read(input: &[u8]) {
    let path = Path::new("fuzzed.npz");
    match read_golden_cases(path, input.to_vec(), &LIMITS) {
        Ok(cases) => {
            for case in &cases {
                check_graph(&case.graph);
                check_forms(&case.configurations);
                assert_eq!(case.scores.len(), case.configurations.len());
                assert_eq!(case.graph.task(), case.configurations.task());
            }
        }
        Err(error) => check_error(&error),
    }
    for task in [Task::Layout, Task::Tile] {
        match GraphFile::parse(path, input.to_vec(), task, &LIMITS) {
            Ok(file) => file
                .graphs
                .iter()
                .for_each(|measured| check_measured(measured, input)),
            Err(error) => check_error(&error),
        }
    }
}
