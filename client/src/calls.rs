//! Calls that are tried again where that is safe, at the replicas of their graph.

use std::{sync::Arc, time::Duration};

use tonic::Code;

use crate::{
    ClientError, Connection, attempt::Attempt, deadline::Deadline, replicas::Replicas, retry::Retries,
};

/// Makes calls at replicas.
#[derive(Debug)]
pub(crate) struct Calls {
    replicas: Replicas,
    retries: u32,
}

impl Calls {
    pub(crate) async fn connect(endpoints: &[&str], connection: Connection) -> Result<Self, ClientError> {
        Ok(Self { replicas: Replicas::connect(endpoints, connection).await?, retries: connection.retries })
    }

    /// Asks the replica that a route key picks, and again, or another one, while the error may pass and there is
    /// time left.
    pub(crate) async fn ask<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        route: &[u8],
        timeout: Option<Duration>,
        ask: impl Fn(Attempt) -> F,
    ) -> Result<T, ClientError> {
        let (deadline, mut retries) = (Deadline::after(timeout), Retries::new(self.retries));
        let mut turns = self.replicas.turns(route);
        let mut replica = turns.take();
        loop {
            let error = match ask(Attempt { replica: Arc::clone(&replica), deadline }).await {
                Ok(answer) => {
                    replica.did_answer();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let is_absent = error.code() == Some(Code::Unavailable);
            if is_absent {
                replica.did_not_answer();
            }
            let pause = retries.pause(&error, turns.is_one_left());
            let Some(pause) = pause.filter(|pause| deadline.allows(*pause)) else { return Err(error) };
            tokio::time::sleep(pause).await;
            if is_absent {
                replica = turns.take();
            }
        }
    }
}
