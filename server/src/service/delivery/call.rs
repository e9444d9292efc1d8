use std::sync::{Arc, OnceLock};

use super::Kind;
use crate::{
    admission::{Admission, AdmissionError, Caller, Calls, Place},
    compute::ComputePool,
    security::{ConnectionActivity, CountedCall},
};

/// A call whose messages are delivered.
pub(in crate::service) struct DeliveredCall {
    pub(in crate::service) kind: Kind,
    pub(in crate::service) caller: Caller,
    pub(in crate::service) place: Place,
    pub(in crate::service) admission: Arc<Admission>,
    /// The threads that decompress and read messages.
    pub(in crate::service) pool: Arc<ComputePool>,
    pub(in crate::service) connection: Option<ConnectionActivity>,
    /// Keeps the connection open once the server works for the call.
    pub(in crate::service) working: OnceLock<CountedCall>,
}

impl DeliveredCall {
    /// Admits the call, because its first message has arrived, or rejects it if a limit is reached.
    pub(super) fn delivered(&self) -> Result<(), AdmissionError> {
        let Some(calls) = self.kind.calls else {
            return Ok(());
        };
        let admitted = self.admission.admit(self.caller.clone(), calls)?;
        self.place.admit(admitted);
        if let (Calls::Scoring, Some(connection)) = (calls, &self.connection) {
            self.working.get_or_init(|| connection.begin());
        }
        Ok(())
    }
}
