//! Modules and texts are read as XLA reads them, or refused with the place of the error.

mod hlo_text;
mod impossible_modules;
mod refused_texts;
mod text_limits;

use std::fs;

use hlorank_graph::{GraphError, HloModule, Limits};

use crate::fixture;

const PARAMETER: &str = "%p = f32[2,3] parameter(0)";

/// Returns a text whose entry computation has these lines, from line 4 on.
fn text(lines: &[&str]) -> String {
    format!("HloModule m\n\nENTRY %e {{\n  {}\n}}\n", lines.join("\n  "))
}

/// Reads a text, and returns its number of nodes.
fn read_within(text: &str, limits: &Limits) -> Result<usize, GraphError> {
    HloModule::read_text(text, limits).map(|module| module.len())
}

fn refused(text: &str) -> GraphError {
    read_within(text, &Limits::default()).expect_err("the text is refused")
}

/// Returns the names of the fixtures in a folder that have an ending, without it.
fn names(folder: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(fixture(folder)).unwrap();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter_map(|name| Some(name.strip_suffix(ending)?.to_owned()))
        .collect()
}

/// Asserts that a message contains all of `words`.
fn says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{message:?} does not say {word:?}");
    }
}
