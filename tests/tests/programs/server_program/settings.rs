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
fn every_setting_that_is_empty_or_cannot_be_read_is_named_with_the_source_of_its_value() {
    for setting in Settings::command().get_arguments() {
        let Some(variable) = setting.get_env() else {
            continue;
        };
        let flag = format!("--{}", setting.get_long().unwrap());
        for value in ["", NONSENSE] {
            if value == NONSENSE && TEXTS.contains(&setting.get_id().as_str()) {
                continue;
            }
            let by_flag = failure(program("hlorank-server").arg(format!("{flag}={value}")));
            let by_variable = failure(program("hlorank-server").env(variable, value));
            let source = format!("environment variable {}", variable.display());
            says!(by_flag, format!("'{flag} "));
            says!(by_variable, format!("'{flag} "), source);
            assert!(!by_flag.contains(&source), "{by_flag}");
            if value == NONSENSE {
                for message in [&by_flag, &by_variable] {
                    says!(message, format!("invalid value '{NONSENSE}' for '{flag} "));
                    assert!(
                        message.contains("expected ") || message.contains("[possible values: "),
                        "{message}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_misspelled_variable_is_a_warning() {
    let mut server = server_program();
    server.arg("--models=no-such-folder");
    let log = refused_start(server.env("HLORANK_LISTN", "0.0.0.0:7070"));
    says!(log, "WARN", "HLORANK_LISTN is ignored");
    says!(log, "did you mean HLORANK_LISTEN?");
}
