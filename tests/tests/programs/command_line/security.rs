//! Commands over TLS and with tokens.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, NO_SERVER, SHORT, rows};

/// A server with TLS and tokens, and commands that call it, run beside the files of their credentials.
struct Secured {
    command_line: CommandLine,
    _server: TestServer,
    _files: (Files, Artifacts),
}

impl Secured {
    async fn start() -> Self {
        let authority = Authority::new();
        let files = Files::with_pair(&authority.issue());
        let tokens = [
            token_line("ci", "read", "r"),
            token_line("operator", "admin", "a"),
        ];
        files.write("tokens", &tokens.concat());
        let artifacts = Artifacts::copy();
        let server = files
            .start_with(&["--admin-listen=127.0.0.1:0", &artifacts.flag()])
            .await;
        let admin = over_tls(&server.admin_endpoint().unwrap());
        let command_line = CommandLine::calling(&over_tls(server.endpoint()), &admin);
        command_line.write("authority.crt", &authority.pem);
        for (name, token) in [("read", "r\n"), ("admin", "a\n"), ("other", "another\n")] {
            command_line.write(name, token);
        }
        Self {
            command_line,
            _server: server,
            _files: (files, artifacts),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_bring_the_token_of_a_file_over_tls() {
    let secured = Secured::start().await;
    let (command_line, file) = (&secured.command_line, MeasuredFile::tile());
    let read = ["--ca=authority.crt", "--token-file=read"];
    let rank = ["rank", "--graph", file.argument()];
    let report = command_line.json(&[&rank[..], &read].concat());
    assert_eq!(
        report["graphs"].as_array().unwrap().len(),
        file.graphs.len()
    );
    command_line.text(&[&["eval", file.argument(), "--module=0"][..], &read].concat());
    let models = command_line.text(&[&["models"][..], &read].concat());
    let models = rows(&models, "name");
    let version = &models.iter().find(|cells| cells[0] == TILE_MODEL).unwrap()[1];

    let model = format!("{TILE_MODEL}@{version}");
    let pin = |token: &'static str| ["models", "pin", &model, "--ca=authority.crt", token];
    let pinned = rows(&command_line.text(&pin("--token-file=admin")), "name");
    assert_eq!(pinned[0][..3], [TILE_MODEL, version, "serving (pinned)"]);
    says!(
        command_line.failure(3, &pin("--token-file=read")),
        "PERMISSION_DENIED, SCOPE_MISSING"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_say_who_is_trusted_and_who_calls() {
    let secured = Secured::start().await;
    let ca = ("HLORANK_CA", "authority.crt");
    let (file, token) = (("HLORANK_TOKEN_FILE", "read"), ("HLORANK_TOKEN", "r"));
    let other = ("HLORANK_TOKEN", "another");
    for (variables, refusal) in [
        (&[ca, file][..], None),
        (&[ca, token], None),
        (&[ca, file, other], None),
        (&[ca], Some("TOKEN_MISSING")),
        (&[ca, ("HLORANK_TOKEN", "")], Some("TOKEN_MISSING")),
        // Variables that are set to nothing are not set.
        (
            &[
                ca,
                ("HLORANK_TOKEN_FILE", ""),
                ("HLORANK_CERTIFICATE", ""),
                ("HLORANK_ADMIN_ENDPOINT", ""),
            ],
            Some("TOKEN_MISSING"),
        ),
        (&[ca, other], Some("TOKEN_UNKNOWN")),
        (
            &[ca, ("HLORANK_TOKEN_FILE", "other"), token],
            Some("TOKEN_UNKNOWN"),
        ),
    ] {
        let mut command = secured.command_line.command(&["models"]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        let code = refusal.map_or(0, |_| 3);
        assert_eq!(output.status.code(), Some(code), "{variables:?}: {message}");
        match refusal {
            None => assert_eq!(message, "", "{variables:?}"),
            Some(reason) => says!(message, format!("UNAUTHENTICATED, {reason}")),
        }
        assert!(!message.contains("another"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_a_certificate_is_shown_one() {
    let authority = Authority::new();
    let files = Files::with_pair(&authority.issue());
    files.write("ca.crt", &authority.pem);
    let server = files.start().await;
    let endpoint = over_tls(server.endpoint());
    let (command_line, pair) = (
        CommandLine::calling(&endpoint, NO_SERVER),
        authority.issue(),
    );
    command_line.write("ca.crt", &authority.pem);
    command_line.write("client.crt", &pair.certificate);
    command_line.write("client.key", &pair.key);
    let models = ["models", SHORT, "--ca=ca.crt"];
    let with = |certificate: &'static str| [&models[..], &[certificate]].concat();
    command_line.text(&with("--certificate=client.crt,client.key"));
    let message = command_line.failure(4, &models);
    assert!(
        message.starts_with(&format!("error: no connection to {endpoint}: ")),
        "{message}"
    );
    // Without its key.
    command_line.failure(2, &with("--certificate=client.crt"));
}

#[test]
fn credentials_that_are_wrong_exit_with_two() {
    let command_line = CommandLine::calling("https://127.0.0.1:1", NO_SERVER);
    command_line.write("text", "of something else\nin lines");
    for (flag, expected) in [
        ("--ca=missing", "error: missing: "),
        ("--ca=text", "the authorities contain no certificate in PEM"),
        ("--token-file=missing", "error: missing: "),
        ("--token-file=text", "error: text: a token must be one line"),
    ] {
        let message = command_line.failure(2, &["models", flag]);
        says!(message, expected);
        assert!(!message.contains("something"), "{message}");
    }
    let plain = CommandLine::without_server();
    plain.write("ca.crt", &Authority::new().pem);
    says!(
        plain.failure(2, &["models", "--ca=ca.crt"]),
        "does not use TLS; use an address at https://"
    );
}
