//! `hlorank completions` and `hlorank man`: scripts for shells, and manual pages.

use hlorank_tests::prelude::*;

use crate::command_line::running::CommandLine;

fn script(shell: &str) -> String {
    CommandLine::without_server().text(&["completions", shell])
}

#[test]
fn each_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        says!(script(shell), "hlorank", "rollback", "endpoint");
    }
}

#[test]
fn bash_completes_commands_and_options() {
    const COMPLETE: &str = r#"
        COMP_WORDS=(hlorank "${@:2}") COMP_CWORD=$(($# - 1))
        eval "$1"; _hlorank hlorank "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[*]}""#;
    let script = script("bash");
    for (words, completion) in [
        (&["mod"][..], "models"),
        (&["graph", "ins"], "inspect"),
        (&["rank", "--gra"], "--graph"),
        (&["rank", "--task", "t"], "tile"),
    ] {
        let mut bash = Command::new("bash");
        bash.args(["-ec", COMPLETE, "bash", &script]).args(words);
        let Ok(output) = bash.output() else {
            return eprintln!("skipped: no bash");
        };
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim_end(),
            completion,
            "{words:?}: {output:?}"
        );
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let command_line = CommandLine::without_server();
    command_line.text(&["man", "share/man/man1"]);
    for (page, text) in [
        ("hlorank", "rank"),
        ("hlorank-rank", "HLORANK_ENDPOINT"),
        ("hlorank-models-pin", "pin"),
    ] {
        let page = command_line.path(&format!("share/man/man1/{page}.1"));
        says!(fs::read_to_string(page).unwrap(), ".TH ", text);
    }
}
