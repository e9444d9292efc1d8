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
    pub(crate) async fn connect(endpoints: &[&str], connection: &Connection) -> Result<Self, ClientError> {
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
            let answer = ask(Attempt { replica: Arc::clone(&replica), deadline }).await;
            let code = answer.as_ref().err().and_then(ClientError::code);
            match code {
                Some(Code::Unavailable) => replica.did_not_answer(),
                Some(Code::DeadlineExceeded) => {}
                _ => replica.did_answer(),
            }
            let Err(error) = answer else { return answer };
            let pause = retries.pause(&error, turns.is_one_left());
            let Some(pause) = pause.filter(|pause| deadline.allows(*pause)) else { return Err(error) };
            tokio::time::sleep(pause).await;
            if code == Some(Code::Unavailable) {
                replica = turns.take();
            }
        }
    }
}
