//! What a file is: `tests/data/recognize.json` holds this reader and Python's to the same modules and the same words.

use std::fs;

use hlorank_graph::{GraphFile, GraphSource, Limits, Task};
use serde_json::Value;

use crate::fixture;

fn latin_1(text: &Value) -> Vec<u8> {
    text.as_str()
        .unwrap()
        .chars()
        .map(|character| u8::try_from(u32::from(character)).unwrap())
        .collect()
}

/// What a client sends of a graph.
fn sent(source: &GraphSource) -> (&str, Vec<u8>) {
    match source {
        GraphSource::HloModule(module) => ("hlo_module", module.clone()),
        GraphSource::HloText(text) => ("hlo_text", text.clone().into_bytes()),
        GraphSource::Features => ("features", Vec::new()),
    }
}

#[test]
fn every_file_is_read_or_named_as_by_every_client() {
    let vectors = fs::read(fixture("recognize.json")).unwrap();
    let vectors: Vec<Value> = serde_json::from_slice(&vectors).unwrap();
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let read = GraphFile::parse(
            "graph".as_ref(),
            latin_1(&vector["latin_1"]),
            Task::Tile,
            &Limits::default(),
        );
        match (read, vector["message"].as_str()) {
            (Ok(file), None) => {
                let found: Vec<_> = file
                    .graphs
                    .iter()
                    .map(|graph| sent(&graph.source))
                    .collect();
                let form = vector["form"].as_str().unwrap();
                let expected = vector["modules"].as_array().unwrap().iter();
                let content = |module: &Value| match form {
                    "hlo_text" => module.as_str().unwrap().as_bytes().to_vec(),
                    _ => latin_1(module),
                };
                let expected: Vec<_> = expected.map(|module| (form, content(module))).collect();
                assert_eq!(found, expected, "{name}");
            }
            (Err(error), Some(message)) => {
                assert_eq!(error.to_string(), format!("graph: {message}"), "{name}");
            }
            (Ok(file), Some(_)) => panic!("{name}: read as {}", file.kind),
            (Err(error), None) => panic!("{name}: {error}"),
        }
    }
}
