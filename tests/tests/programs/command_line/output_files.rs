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
    files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_link_to_a_file_is_followed_and_one_to_nothing_is_an_error() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let (folder, link) = (TempDir::new().unwrap(), command_line.path(NAME));
    let target = folder.path().join("target.npz");
    symlink(&target, &link).unwrap();
    says!(
        command_line.failure(2, &arguments(&file, NAME)),
        "a link to a file that does not exist"
    );
    assert!(!target.exists());
    fs::write(&target, "old").unwrap();
    command_line.text(&arguments(&file, NAME));
    assert_eq!(fs::read_link(&link).unwrap(), target);
    assert_eq!(
        command_line.read(NAME, Task::Layout).graph.len(),
        file.graphs[0].graph.len()
    );
    assert_eq!(names(&link), [NAME]);
    assert_eq!(names(&target), ["target.npz"]);
}

/// The name that an earlier version used for its temporary file.
#[test]
fn no_temporary_file_has_a_name_that_is_known_before() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let victim = command_line.write("victim", "precious");
    let trap = command_line.path(&format!("{NAME}.partial"));
    symlink(&victim, &trap).unwrap();
    command_line.text(&arguments(&file, NAME));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(trap.is_symlink());
}

#[test]
fn a_pipe_gets_the_file_and_stays_a_pipe() {
    let (command_line, file) = (CommandLine::without_server(), MeasuredFile::layout());
    let pipe = command_line.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
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
        fs::read(command_line.path(NAME)).unwrap().len()
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
    fs::write(command_line.path("copy.npz"), &output.stdout).unwrap();
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
