use hlorank_graph::{GraphError, HloModule, Limits};

use crate::{
    Target,
    mutate::mutate_text,
    reading::{LIMITS, check_error, check_module},
};

/// HLO text. An error names a line and column that exist, the node limit holds exactly, and other white space and
/// comments change nothing.
pub const HLO_TEXT: Target = Target {
    name: "hlo_text",
    mutate: mutate_text,
    read,
};

fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match HloModule::read_text(&text, &LIMITS) {
        Ok(module) => {
            check_limits(&text, module.len());
            check_space(&text, &module);
            check_module(module);
        }
        Err(error) => {
            if let GraphError::Text { line, column, .. } = &error {
                let found = text.split('\n').nth(line - 1).expect("the line exists");
                assert!(
                    (1..=found.chars().count() + 1).contains(column),
                    "line {line}, column {column}"
                );
            }
            check_error(&error);
        }
    }
}

fn check_limits(text: &str, nodes: usize) {
    let read =
        |nodes| HloModule::read_text(text, &Limits { nodes, ..LIMITS }).map(|module| module.len());
    assert_eq!(read(nodes), Ok(nodes), "at the limit");
    assert!(read(nodes - 1).is_err(), "one past the limit");
}

fn check_space(text: &str, module: &HloModule<'_>) {
    let spaced = format!(
        " // before\r\n/* and */\t{}\r\n// after",
        text.replace('\n', "\r\n")
    );
    let again = HloModule::read_text(&spaced, &LIMITS).expect("text with other white space");
    assert_eq!(again.arrays, module.arrays, "with other white space");
    assert_eq!(
        again.node_splits, module.node_splits,
        "with other white space"
    );
}
