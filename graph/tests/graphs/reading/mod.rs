//! Modules and texts are read as XLA reads them, or refused with the place of the error.

mod hlo_text;
mod impossible_modules;
mod refused_texts;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the path of a file or folder of `tests/data`.
fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/data")
        .join(path)
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
