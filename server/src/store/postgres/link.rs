use std::{future::poll_fn, sync::Arc, time::Duration};

use rustls::{ClientConfig, RootCertStore};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{MappedMutexGuard, Mutex, MutexGuard, mpsc::Sender},
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    link_error::{LinkError, MAX_ANSWER, within},
    schema,
};
use crate::store::{DatabaseUrl, Unusable};

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
    pub(super) fn of(url: &DatabaseUrl) -> Result<Self, Unusable> {
        let invalid = |error| Unusable::Address(LinkError::from(error).to_string());
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
        let (mut client, connection) = connecting.await.map_err(late)??;
        // The client only writes to a channel; the connection does the work while it is polled.
        tokio::spawn(pass_on(connection, notes));
        within(client.batch_execute(SETTINGS)).await?;
        schema::prepare(&mut client).await?;
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
fn connector(mode: SslMode) -> Result<MakeRustlsConnect, Unusable> {
    let errors = match MakeRustlsConnect::with_native_certs() {
        Ok((tls, _)) => return Ok(tls),
        Err(errors) => errors,
    };
    if mode == SslMode::Require {
        let found = errors
            .first()
            .map_or_else(|| "none was found".to_owned(), ToString::to_string);
        return Err(Unusable::NoAuthorities(found));
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
        // An empty query costs a round trip, but a connection that was lost shows only in use, and
        // a transaction must not be sent twice.
        let answers = match &*client {
            Some(client) => within(client.simple_query("")).await.is_ok(),
            None => false,
        };
        if !answers {
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
