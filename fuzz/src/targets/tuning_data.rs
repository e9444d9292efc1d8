use std::path::Path;

use hlorank_graph::{
    Configurations, FeatureFile, GraphFile, MeasuredGraph, Pad, Task, TileConfiguration,
};
use tempfile::TempDir;

use crate::{
    Target,
    every_form::readable_layouts,
    mutate::mutate_bytes,
    reading::{LIMITS, check_error, check_forms, check_graph},
};

/// `TpuGraphs`' `TuningData` and `ModuleTuningData`, and every other file that the command line reads. What was read
/// reads the same from the npz file that is written of it.
pub const TUNING_DATA: Target = Target {
    name: "tuning_data",
    mutate: mutate_bytes,
    read,
};

fn read(input: &[u8]) {
    match GraphFile::parse(
        Path::new("fuzzed.pb"),
        input.to_vec(),
        Task::Layout,
        &LIMITS,
    ) {
        Ok(file) => file
            .graphs
            .iter()
            .for_each(|graph| check_measured(graph, input)),
        Err(error) => check_error(&error),
    }
}

/// Checks a graph and its run times. One input in eight is also written as the file that training reads, because
/// writing takes longer than everything else.
pub(super) fn check_measured(measured: &MeasuredGraph, input: &[u8]) {
    check_graph(&measured.graph);
    if input
        .iter()
        .fold(0, |sum: u8, byte| sum.wrapping_add(*byte))
        .is_multiple_of(8)
    {
        check_written(measured);
    }
    let Some(measurements) = &measured.measurements else {
        return;
    };
    let configs = measurements.configurations.len();
    assert_eq!(
        [measurements.run_times.len(), measurements.numbers.len()],
        [configs; 2],
        "runs"
    );
    assert!(
        measurements
            .normalizers
            .as_ref()
            .is_none_or(|times| times.len() == configs),
        "normalizers"
    );
    assert!(
        measurements.default.is_none_or(|default| default < configs),
        "the default"
    );
    assert!(
        measurements.numbers.is_sorted_by(|one, next| one < next),
        "numbers of runs"
    );
    check_forms(&measurements.configurations);
}

thread_local! {
    /// Holds the one file that is written over and over.
    static FOLDER: TempDir = tempfile::tempdir().expect("a folder");
}

fn check_written(measured: &MeasuredGraph) {
    let configurations = measured
        .measurements
        .as_ref()
        .map(|measurements| &measurements.configurations);
    let exact = match configurations {
        Some(Configurations::Tile(tiles)) => {
            tiles.iter().all(|tile| holds_in_features(tile.view()))
        }
        _ => true,
    };
    let graph = &measured.graph;
    let pad = if graph.features(Pad::MinusOne).is_some() {
        Pad::MinusOne
    } else {
        Pad::Zero
    };
    let read = FOLDER.with(|folder| {
        let path = folder.path().join("written.npz");
        FeatureFile::write(&path, measured, pad).expect("what was read can be written");
        GraphFile::read(&path, graph.task(), &LIMITS)
    });
    if !exact {
        return;
    }
    let again = read.expect("what was written can be read").graphs.remove(0);
    assert_eq!(again.graph.task(), graph.task());
    assert_eq!(again.graph.edges(), graph.edges());
    assert_eq!(again.graph.configurable(), graph.configurable());
    match (&measured.measurements, &again.measurements) {
        (Some(measured), Some(again)) => {
            assert_eq!(again.run_times, measured.run_times);
            assert_eq!(again.normalizers, measured.normalizers);
            check_same(&again.configurations, &measured.configurations);
        }
        (measured, again) => assert!(measured.is_none() && again.is_none()),
    }
}

/// Checks that configurations are equal but for the order of their tables.
fn check_same(again: &Configurations, measured: &Configurations) {
    match (again, measured) {
        (Configurations::Layout(again), Configurations::Layout(measured)) => {
            let nodes: Vec<u32> = (0..).take(measured.slots()).collect();
            assert_eq!(
                readable_layouts(again, &nodes),
                readable_layouts(measured, &nodes),
                "layouts of what was written"
            );
        }
        (again, measured) => assert_eq!(again, measured, "tiles of what was written"),
    }
}

/// Returns whether features hold a tile exactly: at most six bounds a list, each exact in `f32` and not zero.
fn holds_in_features(tile: TileConfiguration<'_>) -> bool {
    [tile.kernel_bounds, tile.output_bounds, tile.input_bounds]
        .iter()
        .all(|bounds| {
            let exact = bounds.iter().all(|bound| (1..1 << 10).contains(bound));
            bounds.len() <= 6 && exact
        })
}
