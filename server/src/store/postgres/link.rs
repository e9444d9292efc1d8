use std::{error::Error as _, future::poll_fn, io, sync::Arc, time::Duration};

use rustls::{ClientConfig, RootCertStore};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{MappedMutexGuard, Mutex, MutexGuard, mpsc::Sender},
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Error, GenericClient, Transaction,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::{DatabaseUrl, StoreError, StoreFault};

/// A database, and how connections to it are encrypted.
pub(super) struct Database {
    config: Config,
    tls: MakeRustlsConnect,
}

/// A connection that is opened again if it was lost.
pub(super) struct Link {
    database: Arc<Database>,
    client: Mutex<Option<Client>>,
}

/// Maximum time to open a connection.
const MAX_CONNECT: Duration = Duration::from_secs(5);

/// Settings of a connection: a commit waits for the disk, and nothing runs longer than it is waited for.
const SETTINGS: &str = "SET synchronous_commit = on; SET statement_timeout = '10s'";

impl Database {
    /// Reads an address. Fails if it demands TLS, and the system has no authorities to check certificates against.
    pub(super) fn new(url: &DatabaseUrl) -> Result<Self, StoreFault> {
        let invalid = |error| StoreFault::Address(LinkError::from(error).to_string());
        let mut config: Config = url.0.parse().map_err(invalid)?;
        config
            .application_name("hlorank")
            .connect_timeout(MAX_CONNECT)
            .tcp_user_timeout(MAX_ANSWER);
        let tls = connector(config.get_ssl_mode())?;
        Ok(Self { config, tls })
    }

    /// Its host and name, for people.
    pub(super) fn name(&self) -> String {
        let host = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let hosts: Vec<String> = self.config.get_hosts().iter().map(host).collect();
        format!(
            "{}/{}",
            hosts.join(","),
            self.config.get_dbname().unwrap_or_default()
        )
    }

    /// Opens a connection, which sends what it is notified of.
    pub(super) async fn connect(&self, notes: Option<Sender<String>>) -> Result<Client, LinkError> {
        let connecting = timeout(MAX_CONNECT, self.config.connect(self.tls.clone()));
        let late =
            |_| LinkError::Failed(format!("no connection within {} s", MAX_CONNECT.as_secs()));
        let (client, connection) = connecting.await.map_err(late)??;
        // The client only writes to a channel; the connection does the work while it is polled.
        tokio::spawn(pass_on(connection, notes));
        within(client.batch_execute(SETTINGS)).await?;
        prepare(&client).await?;
        Ok(client)
    }
}

/// Polls a connection until it ends, and passes on what it is notified of. Ends if nobody takes
/// that any more.
async fn pass_on<S, T>(mut connection: Connection<S, T>, notes: Option<Sender<String>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let (AsyncMessage::Notification(note), Some(notes)) = (message, &notes)
            && notes.send(note.payload().to_owned()).await.is_err()
        {
            return;
        }
    }
}

/// Checks certificates of databases against the authorities of the system. Those that cannot be read are left out.
fn connector(mode: SslMode) -> Result<MakeRustlsConnect, StoreFault> {
    let errors = match MakeRustlsConnect::with_native_certs() {
        Ok((tls, _)) => return Ok(tls),
        Err(errors) => errors,
    };
    if mode == SslMode::Require {
        let found = errors
            .first()
            .map_or_else(|| "none was found".to_owned(), ToString::to_string);
        return Err(StoreFault::NoAuthorities(found));
    }
    // The database may do without TLS.
    let nobody = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
    Ok(MakeRustlsConnect::new(nobody.with_no_client_auth()))
}

impl Link {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            client: Mutex::new(None),
        }
    }

    /// Returns the connection once nobody else uses it.
    pub(super) async fn client(&self) -> Result<MappedMutexGuard<'_, Client>, LinkError> {
        let mut client = self.client.lock().await;
        // The query costs a round trip, but a connection that was lost shows only in use, and a transaction must not be sent
        // twice. Connecting checks the format, too.
        let answer = match &*client {
            Some(client) => within(Totals::read(client)).await.map(drop),
            None => Err(LinkError::Failed(String::new())),
        };
        if let Err(error @ LinkError::OtherFormat { .. }) = answer {
            return Err(error);
        }
        if answer.is_err() {
            *client = None;
            *client = Some(self.database.connect(None).await?);
        }
        Ok(MutexGuard::map(client, |client| {
            client.as_mut().expect("it was opened")
        }))
    }

    /// Closes the connection.
    pub(super) async fn close(&self) {
        *self.client.lock().await = None;
    }
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// It was made by another version of the server.
    #[error(
        "the database has format {found}, and this version of the server reads format {known}; start the version that the \
         database is of"
    )]
    OtherFormat { found: u64, known: u64 },
    /// It does not answer, or refuses.
    #[error("{0}")]
    Failed(String),
    /// It answers, and the store refuses.
    #[error(transparent)]
    Refused(#[from] StoreError),
}

/// Maximum time of a transaction.
const MAX_ANSWER: Duration = Duration::from_secs(10);

/// Waits for an answer.
pub(super) async fn within<T, E>(answer: impl Future<Output = Result<T, E>>) -> Result<T, LinkError>
where
    LinkError: From<E>,
{
    let late = |_| {
        LinkError::Failed(format!(
            "the database did not answer within {} s",
            MAX_ANSWER.as_secs()
        ))
    };
    Ok(timeout(MAX_ANSWER, answer).await.map_err(late)??)
}

impl From<Error> for LinkError {
    fn from(error: Error) -> Self {
        // The message of the error itself names only its kind, such as "db error".
        let cause = error
            .source()
            .map(|cause| format!(": {cause}"))
            .unwrap_or_default();
        let hint = if is_untrusted(&error) { UNTRUSTED } else { "" };
        Self::Failed(format!("{error}{cause}{hint}"))
    }
}

/// What to do about a certificate that is not accepted.
const UNTRUSTED: &str = " (the database needs a certificate for the host of its address, signed by an authority of the \
                         system or, if SSL_CERT_FILE is set, of that file)";

/// Whether the certificate of the database was not accepted.
fn is_untrusted(error: &Error) -> bool {
    let failed = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    let tls = failed
        .and_then(io::Error::get_ref)
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

impl From<LinkError> for StoreError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Refused(refused) => refused,
            failed => Self::Failed(failed.to_string()),
        }
    }
}

/// How much the database holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) measurements: i64,
    /// Bytes of all keys, records and graphs.
    pub(super) bytes: i64,
}

/// The format that this version writes and reads.
const FORMAT: i64 = 6;

/// Creates the tables that are missing. A batch is one transaction, and servers that start at the same time run it one after the
/// other.
const TABLES: &str = "
    SELECT pg_advisory_xact_lock(hashtext('hlorank_store'));
    CREATE TABLE IF NOT EXISTS hlorank_measurements (
        key bytea PRIMARY KEY,
        record bytea NOT NULL,
        reporter bytea NOT NULL
    );
    CREATE INDEX IF NOT EXISTS hlorank_reporters_keys ON hlorank_measurements (reporter, key);
    CREATE INDEX IF NOT EXISTS hlorank_times ON hlorank_measurements (substring(record FOR 8));
    CREATE TABLE IF NOT EXISTS hlorank_graphs (
        key bytea PRIMARY KEY,
        kind bytea NOT NULL,
        structure bytea NOT NULL UNIQUE,
        message bytea NOT NULL,
        bytes bigint NOT NULL,
        reporter bytea NOT NULL
    );
    CREATE TABLE IF NOT EXISTS hlorank_reporters (reporter bytea PRIMARY KEY, bytes bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS hlorank_decisions (
        namespace text NOT NULL,
        audience bytea NOT NULL,
        key bytea NOT NULL,
        target bytea NOT NULL,
        generation bigint NOT NULL,
        snapshot bigint NOT NULL UNIQUE,
        record bytea NOT NULL,
        PRIMARY KEY (namespace, audience, key, target, generation)
    );
    CREATE TABLE IF NOT EXISTS hlorank_leases (
        key bytea PRIMARY KEY,
        client bytea NOT NULL,
        leases bytea NOT NULL,
        until timestamptz NOT NULL
    );
    CREATE TABLE IF NOT EXISTS hlorank_store (
        number int PRIMARY KEY CHECK (number = 1),
        format bigint NOT NULL,
        measurements bigint NOT NULL,
        bytes bigint NOT NULL
    );
    INSERT INTO hlorank_store VALUES (1, 6, 0, 0) ON CONFLICT DO NOTHING";

/// Returns the number of the latest decision; 0 without one.
pub(super) async fn latest_snapshot(client: &impl GenericClient) -> Result<u64, Error> {
    let latest = "SELECT coalesce(max(snapshot), 0) FROM hlorank_decisions";
    let latest: i64 = client.query_one(latest, &[]).await?.get(0);
    Ok(latest.unsigned_abs())
}

/// Creates the tables if they are missing, and checks their format.
async fn prepare(client: &Client) -> Result<(), LinkError> {
    // Asked first, so that a role without the right to create tables can use existing ones.
    let exists = "SELECT to_regclass('hlorank_store') IS NOT NULL";
    let exists: bool = within(client.query_one(exists, &[])).await?.get(0);
    if !exists {
        within(client.batch_execute(TABLES)).await?;
    }
    within(Totals::read(client)).await.map(drop)
}

impl Totals {
    pub(super) async fn read(client: &Client) -> Result<Self, LinkError> {
        Self::select(client, "").await
    }

    /// Reads them, and keeps other writers waiting until the transaction ends.
    pub(super) async fn lock(transaction: &Transaction<'_>) -> Result<Self, LinkError> {
        Self::select(transaction, " FOR UPDATE").await
    }

    /// Fails if the database has another format, which a newer version of the server may have given it meanwhile.
    async fn select(client: &impl GenericClient, lock: &str) -> Result<Self, LinkError> {
        let select = format!("SELECT measurements, bytes, format FROM hlorank_store{lock}");
        let row = client.query_one(&select, &[]).await?;
        let format: i64 = row.get(2);
        if format != FORMAT {
            return Err(LinkError::OtherFormat {
                found: format.unsigned_abs(),
                known: FORMAT.unsigned_abs(),
            });
        }
        Ok(Self {
            measurements: row.get(0),
            bytes: row.get(1),
        })
    }

    pub(super) async fn write(self, transaction: &Transaction<'_>) -> Result<(), Error> {
        let Self {
            measurements,
            bytes,
        } = self;
        let update = "UPDATE hlorank_store SET measurements = $1, bytes = $2";
        transaction
            .execute(update, &[&measurements, &bytes])
            .await
            .map(drop)
    }
}
