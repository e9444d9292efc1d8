//! Commands over TLS and with tokens.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, NO_SERVER, SHORT, rows};

const MODEL: &str = TILE_MODEL;

/// A server with TLS and tokens, and the files of its clients.
struct Secured {
    files: Files,
    server: TestServer,
    _artifacts: Artifacts,
}

impl Secured {
    async fn start() -> Self {
        let (files, authority) = (Files::new(), Authority::new());
        files.write_pair(&authority.issue());
        files.write(
            "tokens",
            &[
                token_line("ci", "read", "r"),
                token_line("operator", "admin", "a"),
            ]
            .concat(),
        );
        let artifacts = Artifacts::copy();
        let server = files
            .start_with(&["--admin-listen=127.0.0.1:0", &artifacts.flag()])
            .await;
        files.write("authority.crt", &authority.pem);
        files.write("read", "r\n");
        files.write("admin", "a\n");
        files.write("other", "another\n");
        Self {
            files,
            server,
            _artifacts: artifacts,
        }
    }

    fn command_line(&self) -> CommandLine {
        let admin = over_tls(&self.server.admin_endpoint().unwrap());
        CommandLine::calling(&over_tls(self.server.endpoint()), &admin)
    }

    /// Returns a flag with the path of a file.
    fn flag(&self, flag: &str, name: &str) -> String {
        format!("{flag}={}", self.files.folder().join(name).display())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_bring_the_token_of_a_file_over_tls() {
    let secured = Secured::start().await;
    let (command_line, file) = (secured.command_line(), MeasuredFile::tile());
    let ca = secured.flag("--ca", "authority.crt");
    let [read, admin] = ["read", "admin"].map(|name| secured.flag("--token-file", name));
    let report = command_line.json(&["rank", "--graph", file.argument(), &ca, &read]);
    assert_eq!(
        report["graphs"].as_array().unwrap().len(),
        file.graphs.len()
    );
    command_line.text(&["eval", file.argument(), "--module", "0", &ca, &read]);
    let models = rows(&command_line.text(&["models", &ca, &read]), "name");
    let version = &models.iter().find(|cells| cells[0] == MODEL).unwrap()[1];

    let pin = ["models", "pin", &format!("{MODEL}@{version}"), &ca];
    let pinned = rows(&command_line.text(&[&pin[..], &[&admin]].concat()), "name");
    assert_eq!(pinned[0][..3], [MODEL, version, "serving (pinned)"]);
    let (code, message) = command_line.failure(&[&pin[..], &[&read]].concat());
    assert!(
        code == Some(3) && message.contains("PERMISSION_DENIED, SCOPE_MISSING"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_say_who_is_trusted_and_who_calls() {
    let secured = Secured::start().await;
    let models = |variables: &[(&str, &str)]| {
        let mut command = secured.command_line().command(&["models"]);
        let output = command
            .current_dir(secured.files.folder())
            .envs(variables.iter().copied())
            .output();
        let output = output.unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let ca = ("HLORANK_CA", "authority.crt");
    let (file, token) = (("HLORANK_TOKEN_FILE", "read"), ("HLORANK_TOKEN", "r"));
    for variables in [
        &[ca, file][..],
        &[ca, token],
        &[ca, file, ("HLORANK_TOKEN", "another")],
    ] {
        assert_eq!(models(variables), (Some(0), String::new()), "{variables:?}");
    }
    for (variables, reason) in [
        (&[ca][..], "TOKEN_MISSING"),
        (&[ca, ("HLORANK_TOKEN", "")], "TOKEN_MISSING"),
        // Variables that are set to nothing are not set.
        (
            &[
                ca,
                ("HLORANK_TOKEN_FILE", ""),
                ("HLORANK_CERTIFICATE", ""),
                ("HLORANK_ADMIN_ENDPOINT", ""),
            ],
            "TOKEN_MISSING",
        ),
        (&[ca, ("HLORANK_TOKEN", "another")], "TOKEN_UNKNOWN"),
        (
            &[ca, ("HLORANK_TOKEN_FILE", "other"), token],
            "TOKEN_UNKNOWN",
        ),
    ] {
        let (code, message) = models(variables);
        assert!(
            code == Some(3) && message.contains(&format!("UNAUTHENTICATED, {reason}")),
            "{message}"
        );
        assert!(!message.contains("another"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_trusted_is_reported_with_the_cause() {
    let secured = Secured::start().await;
    secured.files.write("stranger.crt", &Authority::new().pem);
    let ca = secured.flag("--ca", "stranger.crt");
    let (code, message) = secured.command_line().failure(&["models", &ca]);
    assert_eq!(code, Some(4));
    let start = format!(
        "error: no connection to {}: ",
        over_tls(secured.server.endpoint())
    );
    assert!(
        message.starts_with(&start)
            && message
                .contains("the server's certificate is not trusted; give its authority with --ca"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_a_certificate_is_shown_one() {
    let (files, authority) = (Files::new(), Authority::new());
    files.write_pair(&authority.issue());
    files.write("ca.crt", &authority.pem);
    let server = files.start().await;
    let pair = authority.issue();
    let (certificate, key) = (
        files.write("client.crt", &pair.certificate),
        files.write("client.key", &pair.key),
    );
    let command_line = CommandLine::calling(&over_tls(server.endpoint()), NO_SERVER);
    let flag = |flag, path: &Path| format!("{flag}={}", path.display());
    let ca = flag("--ca", &files.folder().join("ca.crt"));
    let certificate = flag("--certificate", &certificate);
    let both = format!("{certificate},{}", key.display());
    command_line.text(&["models", &ca, &both]);
    let (code, message) = command_line.failure(&["models", SHORT, &ca]);
    let start = format!("error: no connection to {}: ", over_tls(server.endpoint()));
    assert!(code == Some(4) && message.starts_with(&start), "{message}");
    assert_eq!(
        command_line.failure(&["models", &ca, &certificate]).0,
        Some(2),
        "without its key"
    );
}

#[test]
fn credentials_that_are_wrong_exit_with_two() {
    let command_line = CommandLine::calling("https://127.0.0.1:1", NO_SERVER);
    command_line.write("text", "of something else\nin lines");
    let cases = [
        (["--ca", "missing"], "error: missing: "),
        (
            ["--ca", "text"],
            "the authorities contain no certificate in PEM",
        ),
        (["--token-file", "missing"], "error: missing: "),
        (
            ["--token-file", "text"],
            "error: text: a token must be one line",
        ),
    ];
    for (flag, expected) in cases {
        let (code, message) = command_line.failure(&[&["models"], &flag[..]].concat());
        assert!(code == Some(2) && message.contains(expected), "{message}");
        assert!(!message.contains("something"), "{message}");
    }
    let authority = command_line.write("ca.crt", &Authority::new().pem);
    let (code, message) =
        CommandLine::without_server().failure(&["models", "--ca", authority.to_str().unwrap()]);
    assert!(
        code == Some(2) && message.contains("does not use TLS; use an address at https://"),
        "{message}"
    );
}
