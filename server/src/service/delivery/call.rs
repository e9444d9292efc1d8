use std::sync::OnceLock;

use super::Kind;
use crate::{
    security::{ConnectionActivity, CountedCall},
    session::{Caller, Calls, Place, SessionError, Sessions},
};

/// A call whose messages are delivered.
pub(in crate::service) struct DeliveredCall {
    pub(in crate::service) kind: Kind,
    pub(in crate::service) caller: Caller,
    pub(in crate::service) place: Place,
    pub(in crate::service) sessions: Sessions,
    pub(in crate::service) connection: Option<ConnectionActivity>,
    /// Keeps the connection open once the server works for the call.
    pub(in crate::service) working: OnceLock<CountedCall>,
}

impl DeliveredCall {
    /// Admits the call, because its first message has arrived, or rejects it if a limit is reached.
    pub(super) fn delivered(&self) -> Result<(), SessionError> {
        let Some(calls) = self.kind.calls else {
            return Ok(());
        };
        self.place
            .admit(self.sessions.admit(self.caller.clone(), calls)?);
        if let (Calls::Scoring, Some(connection)) = (calls, &self.connection) {
            self.working.get_or_init(|| connection.begin());
        }
        Ok(())
    }
}
