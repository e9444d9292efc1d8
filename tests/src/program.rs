//! The programs of the workspace, as the build of a test or benchmark left them.

use std::{
    env,
    fs::{self, Metadata},
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

/// Returns a command that runs a program of the workspace: `hlorank-server` or `hlorank`. Cargo tells only a package's own
/// tests where a program is, so this looks beside the folder of the running test, `target/<profile>/deps`.
pub fn program(name: &str) -> Command {
    let test = env::current_exe().expect("this test has a path");
    let folder = test
        .ancestors()
        .nth(2)
        .expect("the test is in target/<profile>/deps");
    let program = folder.join(name);
    let recipe = if folder.ends_with("release") {
        "make build"
    } else {
        "make programs"
    };
    let built = modified(&program);
    assert!(
        built.is_some(),
        "{} was not built: run `{recipe}`",
        program.display()
    );
    let changed = sources(&program)
        .into_iter()
        .find(|source| modified(source) > built);
    assert_eq!(
        changed,
        None,
        "{} is older than this source: run `{recipe}`",
        program.display()
    );
    Command::new(program)
}

/// Returns what Cargo wrote beside a program: the files that it was built from.
fn sources(program: &Path) -> Vec<PathBuf> {
    let rule = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let sources = rule
        .split_once(": ")
        .map_or("", |(_, sources)| sources)
        .trim();
    // A space inside a path has a backslash before it.
    let escaped = sources.replace("\\ ", "\0");
    escaped
        .split(' ')
        .map(|source| source.replace('\0', " ").into())
        .collect()
}

/// Returns when a file changed. Folders, which build scripts watch, change with every file that an editor adds.
fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path)
        .ok()
        .filter(Metadata::is_file)?
        .modified()
        .ok()
}
