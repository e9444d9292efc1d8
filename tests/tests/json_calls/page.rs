//! The commands of `docs/json.md`, run as they are written there.

use std::{fs, process::Command};

use hlorank_tests::{TestServer, repository};

/// Returns the commands of a page with what they print. A command goes on in lines with more indentation.
fn commands(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut commands: Vec<(String, String)> = Vec::new();
    for block in blocks {
        for command in format!("\n{block}").split("\n$ ").skip(1) {
            let lines: Vec<&str> = command.lines().collect();
            let more = lines.iter().skip(1).take_while(|line| line.starts_with("    ")).count();
            commands.push((lines[..=more].join("\n"), lines[more + 1..].join("\n")));
        }
    }
    commands
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_page_print_what_it_says() {
    let server = TestServer::start().await;
    let page = fs::read_to_string(repository("docs/json.md")).unwrap();
    let commands = commands(&page);
    assert!(commands.len() >= 4, "{commands:?}");
    let (calls, metrics) = (server.endpoint().to_owned(), format!("http://{}", server.metrics_address()));
    for (command, expected) in commands {
        let here =
            command.replace("http://127.0.0.1:7070", &calls).replace("http://127.0.0.1:7071", &metrics);
        let run =
            move || Command::new("bash").args(["-c", &here]).current_dir(repository(".")).output().unwrap();
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let (printed, parts) = (without_spaces(&printed), expected.split("...").map(without_spaces));
        let mut rest = printed.as_str();
        for part in parts {
            let found = rest.find(&part).unwrap_or_else(|| panic!("{command}: no {part} in {printed}"));
            rest = &rest[found + part.len()..];
        }
    }
}

fn without_spaces(text: &str) -> String {
    text.split_whitespace().collect()
}
