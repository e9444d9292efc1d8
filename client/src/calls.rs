//! Makes calls at the replicas of a graph, and retries them.

use std::{sync::Arc, time::Duration};

use tonic::Code;

use crate::{
    ClientError, Connection,
    attempt::Attempt,
    deadline::Deadline,
    replicas::Replicas,
    retry::{Retries, final_error},
};

/// The replicas, and the maximum number of retries of one call.
#[derive(Debug)]
pub(crate) struct Calls {
    replicas: Replicas,
    retries: u32,
}

impl Calls {
    pub(crate) async fn connect(
        endpoints: &[&str],
        connection: &Connection,
    ) -> Result<Self, ClientError> {
        Ok(Self {
            replicas: Replicas::connect(endpoints, connection).await?,
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
            let answer = Box::pin(call(attempt)).await;
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
