use std::sync::Arc;

use tonic::Extensions;

use crate::{
    admission::{AdminScope, Admission, Caller, Place},
    call::{Bounds, Call, CallError, Client, Decoder},
    errors::ServiceError,
    graphs::Graphs,
    learning::Learning,
    session::{ModelSelection, Queries},
    store::Reporter,
    stored_measurements::StoredMeasurements,
    telemetry::CallRecord,
};

/// `hlorank.v1.CostModelService`, by the parts that its calls go through. Each method has a file of its own, which reads the
/// request, does the work and writes the answer. Clones share everything.
#[derive(Clone)]
pub(crate) struct CostModel {
    pub(crate) admission: Arc<Admission>,
    pub(crate) decoder: Decoder,
    pub(crate) models: Arc<ModelSelection>,
    pub(crate) graphs: Arc<Graphs>,
    pub(crate) queries: Arc<Queries>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) stored: Arc<StoredMeasurements>,
    pub(crate) bounds: Bounds,
}

impl CostModel {
    /// Returns the call that a request belongs to, from what the layers found out about it.
    pub(super) fn call(&self, extensions: &Extensions) -> Result<Call, ServiceError> {
        let caller = extensions.get().cloned().unwrap_or(Caller::Unknown);
        let place = match extensions.get::<Place>() {
            Some(place) => Ok(place.clone()),
            None => self.admission.open(&caller, 0),
        };
        Ok(Call {
            place: place.map_err(CallError::from)?,
            // Calls that are not observed leave their record unread.
            record: extensions.get::<CallRecord>().cloned().unwrap_or_default(),
            deadline: extensions.get().copied(),
            client: Client {
                reporter: Reporter::named(&caller.name()).expect("callers have names"),
                is_admin: extensions.get::<AdminScope>().is_some(),
            },
        })
    }
}
