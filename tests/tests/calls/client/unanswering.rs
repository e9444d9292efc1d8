//! Addresses that do not answer.

use hlorank_tests::prelude::*;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Address without a listener, where connections are refused.
pub(crate) const NO_SERVER: &str = "http://127.0.0.1:1";

/// Listener whose address drops the packets of connecting clients, like a machine that has gone down.
pub(crate) struct Gone {
    pub(crate) endpoint: String,
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Gone {
    /// Listens without accepting, and fills the backlog.
    pub(crate) async fn start() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let patience = Duration::from_millis(300);
        let mut waiting = vec![];
        while let Ok(connected) = timeout(patience, TcpStream::connect(address)).await {
            waiting.push(connected.unwrap());
        }
        Self {
            endpoint: format!("http://{address}"),
            _listener: listener,
            _waiting: waiting,
        }
    }
}
