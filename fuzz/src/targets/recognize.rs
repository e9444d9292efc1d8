use std::path::Path;

use hlorank_graph::{GraphFile, HloModule, Task};

use super::tuning_data::check_measured;
use crate::{
    Target,
    mutate::mutate_bytes,
    reading::{LIMITS, check_error},
};

/// A file of any format, which is read or named, and the same bytes as the fields of a request.
pub const RECOGNIZE: Target = Target {
    name: "recognize",
    mutate: mutate_bytes,
    read,
};

fn read(input: &[u8]) {
    match GraphFile::parse(Path::new("fuzzed"), input.to_vec(), Task::Tile, &LIMITS) {
        Ok(file) => {
            assert!(!file.graphs.is_empty(), "a file without graphs");
            file.graphs
                .iter()
                .for_each(|graph| check_measured(graph, input));
        }
        Err(error) => check_error(&error),
    }
    if let Err(error) = HloModule::read(input, &LIMITS) {
        check_error(&error);
    }
    if let Err(error) = HloModule::read_text(&String::from_utf8_lossy(input), &LIMITS) {
        check_error(&error);
    }
}
