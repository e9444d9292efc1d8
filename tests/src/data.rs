//! Locations of the files that tests read.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Folder of the HLO modules in [`fixture`], each `<name>.hlo_module.pb` with its `<name>.features.npz`.
pub const HLO_FIXTURES: &str = "hlo";

/// Extension of serialized HLO modules.
const MODULE_ENDING: &str = ".hlo_module.pb";

/// Returns the path of a file or folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Returns the path of a file or folder of `tests/data`.
pub fn fixture(path: &str) -> PathBuf {
    repository("tests/data").join(path)
}

/// Returns the path of the ONNX Runtime library: `HLORANK_ONNXRUNTIME` if it is set, else the one that `make setup`
/// fetches.
pub fn onnxruntime() -> PathBuf {
    let fetched = || repository("target/onnxruntime/libonnxruntime.so");
    env::var_os("HLORANK_ONNXRUNTIME").map_or_else(fetched, PathBuf::from)
}

/// Returns the path of data that is not in the repository: `TpuGraphs`' files and large modules. The root is the
/// environment variable `HLORANK_SHARED`, else `shared` beside the repository. If the data is absent, prints what is
/// skipped to standard error and returns `None`.
pub fn shared(path: &str) -> Option<PathBuf> {
    let beside = || repository("../shared");
    let root = env::var_os("HLORANK_SHARED").map_or_else(beside, PathBuf::from);
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    skipped(&format!("{path} in the folder that HLORANK_SHARED names"));
    None
}

/// Prints what a test needs that is skipped. Not with `eprintln!`, whose output the test harness captures.
pub fn skipped(needed: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(io::stderr(), "skipped: {test} needs {needed}");
}

/// Returns the names of the modules in a folder without extensions, ascending.
pub fn modules(folder: &Path) -> Vec<String> {
    let name = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        Some(name.strip_suffix(MODULE_ENDING)?.to_owned())
    };
    let mut names: Vec<String> = entries(folder).filter_map(name).collect();
    names.sort();
    names
}

/// Returns the paths of what is in a folder.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry").path())
}
