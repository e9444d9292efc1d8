//! `hlorank graph features --out` replaces files, and nothing else.

use std::os::unix::fs::symlink;

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile};

const NAME: &str = "features.npz";

fn arguments<'a>(file: &'a MeasuredFile, out: &'a str) -> [&'a str; 5] {
    ["graph", "features", file.argument(), "--out", out]
}

/// Returns the names of the files in the folder of a path.
fn names(path: &Path) -> Vec<String> {
    let files = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let (folder, link) = (TempDir::new().unwrap(), command_line.write(NAME, ""));
    let target = folder.path().join("target.npz");
    fs::write(&target, "old").unwrap();
    fs::remove_file(&link)
        .and_then(|()| symlink(&target, &link))
        .unwrap();
    command_line.text(&arguments(&file, NAME));
    assert_eq!(fs::read_link(&link).unwrap(), target);
    assert_eq!(
        command_line.read(NAME, Task::Layout).graph.len(),
        file.graphs[0].graph.len()
    );
    assert_eq!(
        (names(&link), names(&target)),
        (vec![NAME.to_owned()], vec!["target.npz".to_owned()])
    );
}

#[test]
fn a_link_to_nothing_is_an_error() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let (folder, link) = (TempDir::new().unwrap(), command_line.write(NAME, ""));
    let missing = folder.path().join("missing.npz");
    fs::remove_file(&link)
        .and_then(|()| symlink(&missing, &link))
        .unwrap();
    let (code, message) = command_line.failure(&arguments(&file, NAME));
    assert!(
        code == Some(2) && message.contains("a link to a file that does not exist"),
        "{message}"
    );
    assert!(!missing.exists());
}

/// The name that an earlier version used for its temporary file.
#[test]
fn no_temporary_file_has_a_name_that_is_known_before() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let victim = command_line.write("victim", "precious");
    let trap = victim.with_file_name(format!("{NAME}.partial"));
    symlink(&victim, &trap).unwrap();
    command_line.text(&arguments(&file, NAME));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(trap.is_symlink());
}

#[test]
fn a_pipe_gets_the_file_and_stays_a_pipe() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let pipe = command_line.write("pipe", "");
    fs::remove_file(&pipe).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let mut writer = command_line
        .command(&arguments(&file, "pipe"))
        .spawn()
        .unwrap();
    let received = fs::read(&pipe).unwrap();
    assert!(writer.wait().unwrap().success());
    assert!(!pipe.is_file() && pipe.exists());
    command_line.text(&arguments(&file, NAME));
    assert_eq!(
        received.len(),
        fs::read(pipe.with_file_name(NAME)).unwrap().len()
    );
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_gets_the_file_without_a_report() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let output = command_line
        .command(&arguments(&file, "/dev/stdout"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let copy = command_line.write("copy.npz", "");
    fs::write(&copy, &output.stdout).unwrap();
    assert_eq!(
        command_line.read("copy.npz", Task::Layout).graph.len(),
        file.graphs[0].graph.len()
    );
    // The report still says what was written elsewhere.
    says!(
        command_line.text(&arguments(&file, "/dev/null")),
        "/dev/null: "
    );
    assert!(!Path::new("/dev/null").is_file());
}
