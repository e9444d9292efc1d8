use super::{Client, Deadline};
use crate::{admission::Place, telemetry::CallRecord};

/// What the parts of a call need to know about it.
pub(crate) struct Call {
    pub(crate) place: Place,
    pub(crate) record: CallRecord,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) client: Client,
}
