use super::{Client, Deadline};
use crate::{admission::Place, telemetry::CallRecord};

/// What a session needs to know about its call.
pub(crate) struct Call {
    pub(crate) place: Place,
    pub(crate) record: CallRecord,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) client: Client,
}
