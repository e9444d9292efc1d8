//! Output on a terminal that a pipe does not get: a progress bar and colours.
#![cfg(target_os = "linux")]

use std::io::Read as _;

use hlorank_tests::prelude::*;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

use crate::command_line::running::{CommandLine, MeasuredFile};

/// Escape sequence that clears a line.
const CLEAR: &str = "\u{1b}[2K";

/// Returns what a command prints to standard output, a pipe, and to standard error, a terminal.
fn with_terminal(mut command: Command) -> (String, String) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let screen = openpt(flags).unwrap();
    unlockpt(&screen).unwrap();
    command.stderr(ioctl_tiocgptpeer(&screen, flags).unwrap());
    let reader = thread::spawn(move || {
        let mut shown = Vec::new();
        // Reading a terminal that no process holds is an error, not an end of file.
        let _ = File::from(screen).read_to_end(&mut shown);
        String::from_utf8(shown).unwrap()
    });
    let output = command.env("TERM", "xterm").output().unwrap();
    drop(command);
    (
        String::from_utf8(output.stdout).unwrap(),
        reader.join().unwrap(),
    )
}

/// Returns a text without escape sequences.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bar_is_shown_on_a_terminal_and_leaves_nothing_behind() {
    let server = TestServer::start().await;
    let (command_line, files) = (CommandLine::new(&server), MeasuredFile::both());
    let arguments = ["eval", files[0].argument(), files[1].argument()];
    let (printed, shown) = with_terminal(command_line.command(&arguments));
    says!(shown, "0/2 graphs");
    assert!(shown.ends_with(CLEAR), "{shown:?}");
    let piped = command_line.command(&arguments).output().unwrap();
    assert_eq!(
        (piped.stderr, String::from_utf8(piped.stdout).unwrap()),
        (Vec::new(), printed)
    );
}

#[test]
fn a_bar_is_cleared_before_a_failure_is_reported() {
    let (_, shown) =
        with_terminal(CommandLine::without_server().command(&["graph", "inspect", "missing.pb"]));
    let (bar, failure) = shown.rsplit_once(CLEAR).unwrap();
    assert!(bar.contains("0/1 graphs"), "{shown:?}");
    assert!(
        plain(failure).starts_with("error: missing.pb: "),
        "{shown:?}"
    );
}

#[test]
fn an_error_is_red_on_a_terminal_unless_colours_are_off() {
    let command_line = CommandLine::without_server();
    for (no_colour, start) in [
        ("", "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m "),
        ("1", "error: "),
    ] {
        let mut command = command_line.command(&["models"]);
        command.env("NO_COLOR", no_colour);
        let (_, shown) = with_terminal(command);
        assert!(shown.starts_with(start), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_have_colours_where_they_are_forced_and_none_in_a_pipe_or_as_json() {
    let server = TestServer::start().await;
    let (command_line, file) = (CommandLine::new(&server), MeasuredFile::tile());
    for arguments in [&["models"][..], &["eval", file.argument()]] {
        let forced = |arguments: &[&str]| {
            let mut command = command_line.command(arguments);
            let output = command.env("CLICOLOR_FORCE", "1").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let (coloured, piped) = (forced(arguments), command_line.text(arguments));
        says!(coloured, "\u{1b}[1m");
        assert_eq!(plain(&coloured), piped);
        for text in [piped, forced(&[arguments, &["--json"]].concat())] {
            assert!(!text.contains('\u{1b}'), "{text:?}");
        }
    }
}
