//! A setting that cannot be read is an error that names it, its value, what is expected, and the variable that it came from.

use clap::CommandFactory as _;
use hlorank_server::settings::Settings;
use hlorank_tests::prelude::*;

/// Settings that take any text: paths, and names of models.
const TEXTS: [&str; 8] = [
    "models",
    "onnxruntime",
    "models_key",
    "measurements",
    "tls_certificate",
    "tls_key",
    "tls_client_ca",
    "tokens",
];

/// A value that no other setting takes.
const NONSENSE: &str = "no such value";

fn failure(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{stderr}");
    stderr
}

#[test]
fn every_setting_that_cannot_be_read_says_what_is_expected_and_where_the_value_came_from() {
    let settings = Settings::command();
    let named = settings
        .get_arguments()
        .filter(|setting| setting.get_env().is_some());
    for setting in named.filter(|setting| !TEXTS.contains(&setting.get_id().as_str())) {
        let flag = format!("--{}", setting.get_long().unwrap());
        let variable = setting.get_env().unwrap();
        let by_flag = failure(program("hlorank-server").args([&flag, NONSENSE]));
        let by_variable = failure(program("hlorank-server").env(variable, NONSENSE));
        for message in [&by_flag, &by_variable] {
            says!(message, format!("invalid value '{NONSENSE}' for '{flag} "));
            assert!(
                message.contains("expected ") || message.contains("[possible values: "),
                "{message}"
            );
        }
        let source = format!("environment variable {}", variable.display());
        assert!(
            by_variable.contains(&source) && !by_flag.contains(&source),
            "{by_variable}\n{by_flag}"
        );
    }
}

#[test]
fn every_setting_that_is_empty_is_named_with_the_variable_that_it_came_from() {
    let settings = Settings::command();
    let named = settings
        .get_arguments()
        .filter(|setting| setting.get_env().is_some());
    for setting in named {
        let flag = format!("--{}", setting.get_long().unwrap());
        let variable = setting.get_env().unwrap();
        let message = failure(program("hlorank-server").env(variable, ""));
        says!(message, format!("'{flag} "), variable.display().to_string());
        let message = failure(program("hlorank-server").arg(format!("{flag}=")));
        says!(message, format!("'{flag} "));
    }
}

#[test]
fn an_empty_variable_of_a_setting_without_a_default_is_as_good_as_none() {
    for variable in ["HLORANK_TOKEN_FILE", "HLORANK_CA", "HLORANK_CERTIFICATE"] {
        let mut client = program("hlorank");
        client.args(["models", "--timeout=1", "--endpoint=http://127.0.0.1:9"]);
        let output = client.env(variable, "").output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        says!(message, "127.0.0.1:9");
        assert!(!message.contains("a value is required"), "{message}");
    }
}

#[test]
fn a_misspelled_variable_is_a_warning() {
    let mut server = program("hlorank-server");
    server.args([
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "off",
        "--models",
        "no-such-folder",
    ]);
    let output = server
        .env("HLORANK_LISTN", "0.0.0.0:7070")
        .output()
        .unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    says!(log, "WARN", "HLORANK_LISTN is ignored");
    says!(log, "did you mean HLORANK_LISTEN?");
}
