use std::sync::{Arc, OnceLock};

use super::Kind;
use crate::{
    admission::{Admission, AdmissionError, Caller, Place},
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
    pub(in crate::service) connection: Option<CallConnection>,
}

impl DeliveredCall {
    /// Admits the call, because its first message has arrived, or rejects it if a limit is reached.
    pub(super) fn delivered(&self) -> Result<(), AdmissionError> {
        if let Some(calls) = self.kind.calls {
            let admitted = self.admission.admit(self.caller.clone(), calls)?;
            self.place.admit(admitted);
        }
        if let Some(connection) = self.connection.as_ref().filter(|_| self.kind.is_work) {
            let working = || connection.activity.begin();
            connection.working.get_or_init(working);
        }
        Ok(())
    }
}

/// The connection of a call, which is open from the headers of the call, and busy from the end of its first message, to the
/// end of its answer.
pub(in crate::service) struct CallConnection {
    activity: ConnectionActivity,
    working: OnceLock<CountedCall>,
    _open: CountedCall,
}

impl From<&ConnectionActivity> for CallConnection {
    fn from(activity: &ConnectionActivity) -> Self {
        Self {
            activity: activity.clone(),
            working: OnceLock::new(),
            _open: activity.open(),
        }
    }
}
