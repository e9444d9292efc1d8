//! A server reaches a database over TLS, whose certificate the server checks.

use super::*;

/// A command that runs a server with a database. `authorities` is what takes the place of the system's.
fn command(database: &str, authorities: &Path) -> Command {
    let mut command = server_program();
    command
        .env("HLORANK_DEFAULT_MODELS", format!("tile={TILE_MODEL}"))
        .env("HLORANK_MEASUREMENTS", database)
        .env("SSL_CERT_FILE", authorities)
        .env_remove("SSL_CERT_DIR");
    command
}

async fn start(database: &str, authorities: &Path) -> (ServerProcess, Client) {
    let server = ServerProcess::run(command(database, authorities));
    // A database that is refused stays refused, so that retries would only use up the deadline.
    let client = server.client_without_retries().await;
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
    let (_one, first) = start(&database.url(), &authorities).await;
    let (_other, second) = start(&without_mode(&database), &authorities).await;
    let kernel = MeasuredList::kernels().remove(0);
    kernel.report(&first, TARGET).await;
    for client in [&first, &second] {
        assert_eq!(kernel.learned(client).await, kernel.seconds.len());
    }
}

/// Asserts that reports to a database fail for the reason that its certificate is not accepted, and that ranking goes on.
async fn assert_refused(database: &str, authorities: &Path, why: &str) {
    let (server, client) = start(database, authorities).await;
    let kernel = MeasuredList::kernels().remove(0);
    let measured = kernel.measured(TARGET);
    let refused = client.report_measurements(&kernel.handle, &measured).await;
    let refused = refused.unwrap_err();
    assert_reason(&refused, "MEASUREMENTS_FAILED");
    says!(refused.to_string(), why, "SSL_CERT_FILE");
    let warned = |line: &Value| {
        let reason = line["fields"]["reason"].as_str();
        reason.is_some_and(|reason| reason.contains(why))
    };
    server.lines(1, warned).await;
    assert_eq!(kernel.learned(&client).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_trusted_is_refused_with_the_reason() {
    let authority = Authority::new();
    let Some(database) = Postgres::start_secured(&authority.issue()) else {
        return;
    };
    let files = Files::new();
    let stranger = files.write("stranger.crt", &Authority::new().pem);
    // It is not reached without TLS instead.
    for url in [database.url(), without_mode(&database)] {
        assert_refused(&url, &stranger, "invalid peer certificate").await;
    }

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
    let kernel = MeasuredList::kernels().remove(0);
    for url in [database.url(), without_mode(&database)] {
        let (_server, client) = start(&url, nobody).await;
        kernel.report(&client, TARGET).await;
    }
    let demanded = format!("{}?sslmode=require", without_mode(&database));
    says!(
        refused_start(&mut command(&demanded, nobody)),
        "SSL_CERT_FILE"
    );
}
