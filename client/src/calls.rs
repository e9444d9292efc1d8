//! Calls at the replicas of a graph, their attempts and retries.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout_at;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use crate::{
    Address, ClientError, Connection, GraphHandle, InvalidAnswer, ROUTE_HEADER,
    credentials::request,
    replicas::{Replica, Replicas},
    retry::{Deadline, Retries, final_error},
};

/// The replicas, and the maximum number of retries of one call.
#[derive(Debug)]
pub(crate) struct Calls {
    replicas: Replicas,
    retries: u32,
}

impl Calls {
    pub(crate) async fn connect(
        addresses: &[Address],
        connection: &Connection,
    ) -> Result<Self, ClientError> {
        Ok(Self {
            replicas: Replicas::connect(addresses, connection).await?,
            retries: connection.retries,
        })
    }

    /// Makes a call at the replica that the route key selects. The call is retried there, or at another replica, while
    /// its error is temporary and time remains.
    pub(crate) async fn make<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        route: &[u8],
        timeout: Option<Duration>,
        call: impl Fn(Attempt) -> F,
    ) -> Result<T, ClientError> {
        let deadline = Deadline::after(timeout);
        let mut retries = Retries::new(self.retries, deadline);
        let mut order = self.replicas.order(route);
        let mut replica = order.next_replica();
        let mut before = None;
        loop {
            let attempt = Attempt {
                replica: Arc::clone(&replica),
                deadline,
            };
            // In a box, because it holds the message several times, and the caller's future would hold it, too.
            let answer = match Box::pin(call(attempt)).await {
                Err(error) => Err(replica.address.explain(error).await),
                answer => answer,
            };
            let code = answer.as_ref().err().and_then(ClientError::code);
            match code {
                Some(Code::Unavailable) => replica.set_unavailable(),
                Some(Code::DeadlineExceeded) => {}
                _ => replica.set_available(),
            }
            let Err(error) = answer else { return answer };
            let Some(pause) = retries.pause(&error, order.has_untried()) else {
                return Err(final_error(error, before));
            };
            before = Some(error);
            tokio::time::sleep(pause).await;
            if code == Some(Code::Unavailable) {
                replica = order.next_replica();
            }
        }
    }
}

/// One attempt of a call: the server that is called, and the deadline.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) replica: Arc<Replica>,
    pub(crate) deadline: Deadline,
}

impl Attempt {
    /// Returns a request that carries the remaining time and the token.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = request(message, self.replica.token.as_ref());
        if let Some(left) = self.deadline.left() {
            request.set_timeout(left);
        }
        request
    }

    /// Returns a request about a graph, which also carries the route key of the graph.
    pub(crate) fn routed<T>(&self, graph: &GraphHandle, message: T) -> Request<T> {
        let mut request = self.request(message);
        request
            .metadata_mut()
            .insert(ROUTE_HEADER, graph.route().clone());
        request
    }

    /// Waits for a future until the deadline.
    pub(crate) async fn within<F: Future>(&self, awaited: F) -> Result<F::Output, ClientError> {
        match self.deadline.end {
            Some(end) => timeout_at(end, awaited).await.map_err(|_| self.expired()),
            None => Ok(awaited.await),
        }
    }

    /// Waits for an answer until the deadline.
    pub(crate) async fn answer<T>(
        &self,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, ClientError> {
        self.within(answer)
            .await?
            .map_err(|status| self.error(status))
    }

    /// Converts a status that the server sent, or that tonic made because the connection failed.
    fn error(&self, status: Status) -> ClientError {
        // tonic reports CANCELLED if the deadline passes on this side.
        let is_late = match status.code() {
            Code::DeadlineExceeded => self.deadline.end.is_some() && !is_too_short(&status),
            Code::Cancelled => self.deadline.is_over(),
            _ => false,
        };
        if is_late {
            self.expired()
        } else {
            ClientError::of_call(&self.replica.endpoint, status)
        }
    }

    /// Returns the error of an answer that violates the wire contract.
    pub(crate) fn invalid(&self, source: InvalidAnswer) -> ClientError {
        ClientError::Answer {
            endpoint: self.replica.endpoint.clone(),
            source,
        }
    }

    /// Returns the error of an answer with this violation of the wire contract.
    pub(crate) fn violated(&self, violation: &str) -> ClientError {
        self.invalid(InvalidAnswer::new(violation))
    }

    pub(crate) fn expired(&self) -> ClientError {
        ClientError::Deadline {
            endpoint: self.replica.endpoint.clone(),
            allowed: self.deadline.allowed,
        }
    }
}

/// Returns whether the server rejected a call immediately because its deadline was too short.
fn is_too_short(status: &Status) -> bool {
    status
        .get_details_error_info()
        .is_some_and(|info| info.reason == "DEADLINE_TOO_SHORT")
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Task;

    use super::*;

    fn attempt(allowed: Option<Duration>) -> Attempt {
        let replica = Arc::new(Replica::unconnected("http://127.0.0.1:7070"));
        Attempt {
            replica,
            deadline: Deadline::after(allowed),
        }
    }

    #[tokio::test]
    async fn a_request_carries_the_remaining_time() {
        let request = attempt(Some(Duration::from_secs(30))).request(());
        let timeout = request.metadata().get("grpc-timeout").unwrap();
        let timeout = timeout.to_str().unwrap();
        let microseconds: u64 = timeout.strip_suffix('u').unwrap().parse().unwrap();
        assert!(
            (20_000_000..=30_000_000).contains(&microseconds),
            "{timeout}"
        );
        assert!(attempt(None).request(()).metadata().is_empty());
    }

    #[tokio::test]
    async fn a_call_about_a_graph_carries_its_route_key() {
        let graph = GraphHandle::hlo_module(vec![1, 2, 3], Task::Tile, vec![]);
        let request = attempt(None).routed(&graph, ());
        assert_eq!(
            request.metadata().get("x-hlorank-route"),
            Some(graph.route())
        );
    }

    #[tokio::test]
    async fn a_server_that_gives_up_first_is_a_deadline_error_too() {
        let cases = [
            (Code::DeadlineExceeded, Some(Duration::from_mins(1)), true),
            (Code::DeadlineExceeded, None, false),
            (Code::Cancelled, Some(Duration::ZERO), true),
            (Code::Cancelled, Some(Duration::from_mins(1)), false),
            (Code::InvalidArgument, Some(Duration::ZERO), false),
        ];
        for (code, allowed, is_deadline) in cases {
            let error = attempt(allowed).error(Status::new(code, "Timeout expired"));
            assert_eq!(
                matches!(error, ClientError::Deadline { .. }),
                is_deadline,
                "{error}"
            );
        }
    }
}
