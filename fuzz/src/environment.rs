//! What a run is told by its environment, and where its files are.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// What the environment asks for.
#[derive(Clone, Debug)]
pub struct Environment {
    /// How long each target runs; `HLORANK_FUZZ_SECONDS`, 1 by default.
    pub time: Duration,
    /// What all chance comes from; `HLORANK_FUZZ_SEED`, drawn by default.
    pub seed: u64,
    /// One input to run and nothing else; `HLORANK_FUZZ_INPUT`.
    pub input: Option<PathBuf>,
    /// Where inputs are written that broke a promise.
    pub failures: PathBuf,
}

impl Environment {
    /// Reads it.
    ///
    /// # Panics
    /// Where a variable is no number.
    #[must_use]
    pub fn read() -> Self {
        let number = |name: &str| {
            let value = env::var(name).ok()?;
            Some(
                value
                    .parse::<u64>()
                    .unwrap_or_else(|_| panic!("{name} is {value:?}, expected a whole number")),
            )
        };
        Self {
            time: Duration::from_secs(number("HLORANK_FUZZ_SECONDS").unwrap_or(1)),
            seed: number("HLORANK_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..)),
            input: env::var_os("HLORANK_FUZZ_INPUT").map(PathBuf::from),
            failures: Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fuzz"),
        }
    }
}

/// The folder of a target's inputs.
#[must_use]
pub fn corpus_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The inputs of a target, by file name.
///
/// # Panics
/// Where there are none.
pub(crate) fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus_folder(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    let input = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    paths.iter().map(input).collect()
}
