//! Addresses that do not answer.

use hlorank_tests::prelude::*;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::Duration,
};

/// Address without a listener, where connections are refused.
pub(crate) const NO_SERVER: &str = "http://127.0.0.1:1";

/// Server that accepts connections and never answers.
pub(crate) struct Silent {
    pub(crate) endpoint: String,
    listening: JoinHandle<()>,
}

/// Listener whose address drops the packets of connecting clients, like a machine that has gone down.
pub(crate) struct Gone {
    pub(crate) endpoint: String,
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Silent {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let listening = tokio::spawn(async move {
            let mut taken = vec![];
            while let Ok((connection, _)) = listener.accept().await {
                taken.push(connection);
            }
        });
        Self {
            endpoint,
            listening,
        }
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Gone {
    /// Listens without accepting, and fills the backlog.
    pub(crate) async fn start() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = vec![];
        while let Ok(connected) =
            timeout(Duration::from_millis(300), TcpStream::connect(address)).await
        {
            waiting.push(connected.unwrap());
        }
        Self {
            endpoint: format!("http://{address}"),
            _listener: listener,
            _waiting: waiting,
        }
    }
}
