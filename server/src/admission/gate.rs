use std::sync::Arc;

use super::{
    AdmissionError, AdmissionLimit, Arrival, Caller, Place,
    arrivals::Arrivals,
    in_flight::{AdmittedRequest, RequestLimits},
    place::Accounts,
};
use crate::{
    engine::Engine,
    memory::MemoryFull,
    metrics::{LoadSeries, set},
};

/// Admits the calls of a server.
pub(crate) struct Admission {
    engine: Arc<Engine>,
    /// Maximum number of requests in flight.
    limit: u32,
    arrivals: Arrivals,
    requests: RequestLimits,
    /// Health watches and reflection streams, which score nothing.
    watches: RequestLimits,
    accounts: Accounts,
}

/// The calls that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Requests, which score or read graphs.
    Scoring,
    /// Calls that stay open to be notified, or to ask about the services.
    Watching,
}

impl Admission {
    /// Admits at most `limit` requests at a time, of which each client may have `client_limit`. The engine counts the memory
    /// of calls, and estimates when a rejected call may try again.
    pub(crate) fn new(engine: Arc<Engine>, limit: u32, client_limit: u32) -> Self {
        Self {
            engine,
            limit,
            arrivals: Arrivals::new(limit, client_limit),
            requests: RequestLimits::new(limit, client_limit),
            watches: RequestLimits::new(limit, client_limit),
            accounts: Accounts::default(),
        }
    }

    /// Returns the place of a call whose headers have arrived. `window` bytes are held for as long as the call.
    pub(crate) fn open(&self, caller: &Caller, window: usize) -> Result<Place, MemoryFull> {
        let memory = self.engine.memory();
        let client = self.accounts.account(caller);
        let mut held = memory.hold_nothing(&client);
        // In a hold of its own, so that a release of what the call has read never touches it.
        held.add(window)?;
        Ok(Place::new(memory.hold_nothing(&client), held))
    }

    /// Counts a call as arriving. This is never refused, but can end another arriving call.
    pub(crate) fn arrive(&self, caller: Caller) -> Arrival {
        self.arrivals.add(caller)
    }

    /// Rejects a call if it could not be admitted now.
    pub(crate) fn check(&self, caller: &Caller, calls: Calls) -> Result<(), AdmissionError> {
        let checked = self.limits(calls).check(caller);
        checked.map_err(|reached| self.rejection(reached))
    }

    /// Admits a call, or rejects it immediately if a limit is reached.
    pub(crate) fn admit(
        &self,
        caller: Caller,
        calls: Calls,
    ) -> Result<AdmittedRequest, AdmissionError> {
        let admitted = self.limits(calls).admit(caller);
        admitted.map_err(|reached| self.rejection(reached))
    }

    /// Sets the gauges to the current state.
    pub(crate) fn sample(&self, load: &LoadSeries) {
        set(&load.requests, self.requests.requests().into());
        set(&load.max_requests, self.limit.into());
    }

    fn limits(&self, calls: Calls) -> &RequestLimits {
        match calls {
            Calls::Scoring => &self.requests,
            Calls::Watching => &self.watches,
        }
    }

    fn rejection(&self, reached: AdmissionLimit) -> AdmissionError {
        match reached {
            AdmissionLimit::Server(limit) => AdmissionError::Overloaded {
                limit,
                half_done_in: self.engine.half_done_in(),
            },
            AdmissionLimit::Client(limit) => AdmissionError::ClientLimit { limit },
        }
    }
}
