//! A PostgreSQL database over TLS, whose certificate the server checks.

use hlorank_tests::prelude::*;

use super::{
    database::{adapt, rank, reason},
    *,
};

/// A command that runs a server with a database. `authorities` is what takes the place of the system's.
fn command(database: &str, authorities: &Path) -> std::process::Command {
    let mut command = program("hlorank-server");
    command
        .env("HLORANK_DEFAULT_MODELS", format!("tile={TILE_MODEL}"))
        .env("HLORANK_ONNXRUNTIME", onnxruntime())
        .env("ORT_DISABLE_TELEMETRY", "1");
    command.env("HLORANK_MEASUREMENTS", database);
    command
        .env("SSL_CERT_FILE", authorities)
        .env_remove("SSL_CERT_DIR");
    command
}

async fn start(database: &str, authorities: &Path) -> (ServerProcess, Client) {
    let server = ServerProcess::run(command(database, authorities));
    // A database that is refused stays refused, so that retries would only use up the deadline.
    let connection = Connection {
        retries: 0,
        ..Connection::default()
    };
    let client = server.client_with(connection).await;
    (server, client)
}

/// The address of a database, with TLS only if the database offers it.
fn without_mode(database: &Postgres) -> String {
    database.url().split('?').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn measurements_are_kept_over_tls_if_the_certificate_is_trusted() {
    let authority = Authority::new();
    let Some(database) = Postgres::start_secured(&authority.issue()) else {
        return;
    };
    let files = Files::new();
    let authorities = files.write("ca.crt", &authority.pem);
    let (demanded, offered) = (database.url(), without_mode(&database));
    let (_one, first) = start(&demanded, &authorities).await;
    let (_other, second) = start(&offered, &authorities).await;
    let kernels = Kernel::all();
    first
        .report_measurements(&kernels[0].handle, &adapt(&kernels[0]))
        .await
        .unwrap();
    for client in [&first, &second] {
        let adaptation = rank(client, &kernels[0]).await.adaptation.unwrap();
        assert_eq!(
            adaptation.stored_measurements as usize,
            kernels[0].seconds.len()
        );
    }
}

/// Asserts that reports to a database fail for the reason that its certificate is not accepted, and that ranking goes on.
async fn assert_refused(database: &str, authorities: &Path, why: &str) {
    let (server, client) = start(database, authorities).await;
    let kernel = &Kernel::all()[0];
    let refused = client
        .report_measurements(&kernel.handle, &adapt(kernel))
        .await
        .unwrap_err();
    assert_eq!(reason(&refused), Some("MEASUREMENTS_FAILED"), "{refused}");
    let said = refused.to_string();
    assert!(
        said.contains(why) && said.contains("SSL_CERT_FILE"),
        "{said}"
    );
    let warned = |line: &serde_json::Value| {
        let fields = &line["fields"];
        fields["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains(why))
    };
    server.lines(1, warned).await;
    assert_eq!(
        rank(&client, kernel)
            .await
            .adaptation
            .unwrap()
            .stored_measurements,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_trusted_is_refused_with_the_reason() {
    let authority = Authority::new();
    let Some(database) = Postgres::start_secured(&authority.issue()) else {
        return;
    };
    let files = Files::new();
    let stranger = files.write("stranger.crt", &Authority::new().pem);
    assert_refused(&database.url(), &stranger, "invalid peer certificate").await;
    // It is not reached without TLS instead.
    assert_refused(
        &without_mode(&database),
        &stranger,
        "invalid peer certificate",
    )
    .await;

    let Some(database) = Postgres::start_secured(&authority.issue_elsewhere()) else {
        return;
    };
    let authorities = files.write("ca.crt", &authority.pem);
    assert_refused(&database.url(), &authorities, "not valid for name").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_system_without_authorities_reaches_databases_without_tls_only() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let nobody = Path::new("/dev/null");
    for database in [database.url(), without_mode(&database)] {
        let (_server, client) = start(&database, nobody).await;
        let kernel = &Kernel::all()[0];
        client
            .report_measurements(&kernel.handle, &adapt(kernel))
            .await
            .unwrap();
    }
    let mut demanding = command(
        &format!("{}?sslmode=require", without_mode(&database)),
        nobody,
    );
    let ended = demanding
        .args(["--listen=127.0.0.1:0", "--metrics-listen=off"])
        .current_dir(hlorank_tests::repository("."))
        .output();
    let ended = ended.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        ended.status.code() == Some(1) && said.contains("SSL_CERT_FILE"),
        "{said}"
    );
}
