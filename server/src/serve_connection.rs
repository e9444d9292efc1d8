//! Serves one connection until it ends: by itself, in favour of another connection, or because the server stops.

use std::{pin::pin, time::Duration};

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{net::TcpStream, sync::watch};
use tower::ServiceExt as _;

use crate::security::{Connection, ConnectionGate, Eviction, Slot};

/// HTTP settings of a listener.
pub(crate) type Http = Builder<TokioExecutor>;

/// Serves the connections to a listener.
#[derive(Clone)]
pub(crate) struct ServeConnection {
    pub(crate) gate: ConnectionGate,
    pub(crate) http: Http,
    /// Answers the calls.
    pub(crate) router: Router,
    /// Changes or closes when the server stops.
    pub(crate) stopping: watch::Receiver<()>,
}

/// Time that a client without calls has to close its connection after the server asked for it. It is longer than the
/// round trip after which the transport closes the connection of a client that answers, and than the time for which a
/// closing connection waits for the client.
const GRACE: Duration = Duration::from_secs(3);

impl ServeConnection {
    /// Serves a connection that has a slot.
    pub(crate) async fn serve(mut self, stream: TcpStream, mut slot: Slot) {
        let connection = tokio::select! {
            connection = self.gate.handshake(stream) => connection,
            // No call can be in flight yet.
            _ = slot.evicted() => return,
            _ = self.stopping.changed() => return,
        };
        if let Some(connection) = connection {
            self.answer(connection, &mut slot).await;
        }
    }

    async fn answer(mut self, connection: Connection, slot: &mut Slot) {
        let activity = slot.activity().clone();
        // What services need to know of the connection.
        let (info, of_requests) = (connection.info.clone(), activity.clone());
        let extend = move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(info.clone());
            request.extensions_mut().insert(of_requests.clone());
            request
        };
        let service = self.router.clone().map_request(extend);
        let http = self.http.clone();
        let mut serving = pin!(
            http.serve_connection(TokioIo::new(connection), TowerToHyperService::new(service))
        );
        let eviction = tokio::select! {
            // An error means that the client has gone or does not speak the protocol.
            _ = serving.as_mut() => return,
            eviction = slot.evicted() => Some(eviction),
            _ = self.stopping.changed() => None,
        };
        // The client is asked to make no more calls. It may still have sent some, so the connection
        // goes on for a while.
        serving.as_mut().graceful_shutdown();
        let grace = async {
            match eviction {
                None => activity.until_quiet(GRACE).await,
                // Calls that never send their message do not count.
                Some(Eviction::Graceful) => activity.until_idle(GRACE).await,
                Some(Eviction::Immediate) => {}
            }
        };
        tokio::select! {
            // Polled first, so that an immediate end is announced, too.
            biased;
            _ = serving => {}
            () = grace => {}
        }
    }
}
