//! A server that keeps measurements, and its clients, which tokens tell apart.

use hlorank_client::{Client, Connection};
use tempfile::TempDir;

use crate::{
    Reach, TestServer,
    security::{Files, token_line},
    store_flag,
};

/// A server that keeps measurements in a new folder, and a token for each of its clients, which is the client's name.
pub struct Team {
    /// The server.
    pub server: TestServer,
    _files: Files,
    _folder: TempDir,
}

impl Team {
    /// Starts a server with the names and scopes of its clients, and more flags.
    pub async fn start(clients: &[(&str, &str)], flags: &[&str]) -> Self {
        let files = Files::new();
        let lines = clients.iter();
        let lines = lines.map(|(name, scopes)| token_line(name, scopes, name));
        files.write("tokens", &lines.collect::<String>());
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let store = store_flag(folder.path());
        Self {
            server: files.start_with(&[&[&*store], flags].concat()).await,
            _files: files,
            _folder: folder,
        }
    }

    /// Connects a client.
    pub async fn client(&self, name: &str) -> Client {
        let connection = Connection {
            token: Some(name.parse().expect("a token")),
            ..Connection::default()
        };
        self.server.client_with(connection).await
    }

    /// Connects several clients.
    pub async fn clients<const N: usize>(&self, names: [&str; N]) -> [Client; N] {
        let mut clients = Vec::new();
        for name in names {
            clients.push(self.client(name).await);
        }
        clients.try_into().expect("a client for each name")
    }
}
