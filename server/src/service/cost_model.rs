//! What the calls of `hlorank.v1.CostModelService` go through.

use std::sync::Arc;

use tonic::Extensions;

use super::{
    ServiceError,
    admit_calls::{caller, client},
    deadline,
};
use crate::{
    admission::{Admission, Place},
    call::{Bounds, Call, CallError, Decoder},
    graphs::Graphs,
    learning::Learning,
    session::{ModelSelection, Sessions},
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
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) stored: Arc<StoredMeasurements>,
    pub(crate) bounds: Bounds,
}

impl CostModel {
    /// Returns the call that a request belongs to, and opens it if no layer did.
    pub(super) fn call(&self, extensions: &Extensions) -> Result<Call, ServiceError> {
        let place = match extensions.get::<Place>() {
            Some(place) => Ok(place.clone()),
            None => self.admission.open(&caller(extensions), 0),
        };
        // Calls that are not observed leave their record unread.
        let record = extensions.get::<CallRecord>().cloned().unwrap_or_default();
        Ok(Call {
            place: place.map_err(CallError::from)?,
            record,
            deadline: deadline::of_call(extensions),
            client: client(extensions),
        })
    }
}
