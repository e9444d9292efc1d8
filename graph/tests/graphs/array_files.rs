//! Npz files in every form that is read or refused: `tests/data/arrays.zip` has the files, `arrays.json` what comes of each.

use std::{
    fs::{self, File},
    io::Read as _,
    path::Path,
};

use hlorank_graph::{FileError, GraphFile, Limits, MeasuredGraph, Task};
use serde_json::Value;
use zip::ZipArchive;

use crate::fixture;

fn read(name: &str) -> Result<MeasuredGraph, FileError> {
    read_within(name, &Limits::default())
}

fn read_within(name: &str, limits: &Limits) -> Result<MeasuredGraph, FileError> {
    let mut archive = ZipArchive::new(File::open(fixture("arrays.zip")).unwrap()).unwrap();
    let mut bytes = Vec::new();
    let mut file = archive.by_name(name).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    let read = GraphFile::parse(Path::new(name), bytes, Task::Layout, limits);
    Ok(read?.graphs.remove(0))
}

#[test]
fn arrays_are_taken_or_refused_as_by_every_client() {
    let cases = fs::read(fixture("arrays.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&cases).unwrap();
    let plain = read("plain.npz").unwrap();
    for case in cases {
        let name = case["file"].as_str().unwrap();
        match (read(name), case["message"].as_str()) {
            (Err(error), Some(message)) => {
                let error = error.to_string();
                assert!(error.contains(message), "{name}: {error}");
            }
            (Ok(found), None) => {
                assert_eq!(found.graph.hash(), plain.graph.hash(), "{name}");
                let [found, plain] =
                    [&found, &plain].map(|graph| graph.measurements.as_ref().unwrap());
                assert_eq!(found.configurations, plain.configurations, "{name}");
                assert_eq!(serde_json::json!(found.run_times), case["times"], "{name}");
            }
            (Err(error), None) => panic!("{name}: {error}"),
            (Ok(_), Some(_)) => panic!("{name} was read"),
        }
    }
}

#[test]
fn a_file_may_reach_every_limit() {
    let MeasuredGraph {
        graph,
        measurements,
        ..
    } = read("plain.npz").unwrap();
    let configs = measurements.unwrap().configurations.len();
    let exact = Limits {
        nodes: graph.len(),
        edges: graph.edges().len(),
        configs,
        config_entries: configs * graph.configurable().len(),
    };
    assert_eq!(read_within("plain.npz", &exact).unwrap().graph, graph);
    for lower in [
        Limits {
            nodes: exact.nodes - 1,
            ..exact
        },
        Limits {
            edges: exact.edges - 1,
            ..exact
        },
        Limits {
            configs: configs - 1,
            ..exact
        },
        Limits {
            config_entries: exact.config_entries - 1,
            ..exact
        },
    ] {
        assert!(read_within("plain.npz", &lower).is_err(), "{lower:?}");
    }
}
