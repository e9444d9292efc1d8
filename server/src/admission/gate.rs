use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use parking_lot::{Mutex, MutexGuard};

use super::{AdmissionError, AdmissionLimit, Arrival, arrivals::Arrivals};
use crate::caller::Caller;
use crate::{
    engine::Engine,
    memory::{ClientBytes, HeldBytes, MemoryFull},
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
pub(crate) enum LimitedCalls {
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
    pub(crate) fn check(&self, caller: &Caller, calls: LimitedCalls) -> Result<(), AdmissionError> {
        let checked = self.limits(calls).check(caller);
        checked.map_err(|reached| self.rejection(reached))
    }

    /// Admits a call, or rejects it immediately if a limit is reached.
    pub(crate) fn admit(
        &self,
        caller: Caller,
        calls: LimitedCalls,
    ) -> Result<AdmittedRequest, AdmissionError> {
        let admitted = self.limits(calls).admit(caller);
        admitted.map_err(|reached| self.rejection(reached))
    }

    /// Sets the gauges to the current state.
    pub(crate) fn sample(&self, load: &LoadSeries) {
        set(&load.requests, self.requests.requests().into());
        set(&load.max_requests, self.limit.into());
    }

    fn limits(&self, calls: LimitedCalls) -> &RequestLimits {
        match calls {
            LimitedCalls::Scoring => &self.requests,
            LimitedCalls::Watching => &self.watches,
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

/// The memory that a call holds and, once its first message has arrived, its place among the requests in flight. Clones
/// share both.
#[derive(Clone)]
pub(crate) struct Place {
    held: Arc<Mutex<HeldBytes>>,
    /// Bytes that are held for as long as the call.
    _window: Arc<HeldBytes>,
    admitted: Arc<OnceLock<AdmittedRequest>>,
}

impl Place {
    fn new(held: HeldBytes, window: HeldBytes) -> Self {
        Self {
            held: Arc::new(Mutex::new(held)),
            _window: Arc::new(window),
            admitted: Arc::default(),
        }
    }

    /// Counts the call as in flight. Only the first call of this function has an effect.
    pub(crate) fn admit(&self, admitted: AdmittedRequest) {
        // A second request is dropped here, and so stops counting at once.
        let _ = self.admitted.set(admitted);
    }

    /// Holds `bytes` more bytes.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), MemoryFull> {
        self.held().add(bytes)
    }

    /// Holds `bytes` bytes that may stay longer than the call.
    pub(crate) fn hold_beside(&self, bytes: usize) -> Result<HeldBytes, MemoryFull> {
        self.held().hold_beside(bytes)
    }

    /// Releases `bytes` bytes, or all if fewer are held.
    pub(crate) fn release(&self, bytes: usize) {
        self.held().release(bytes);
    }

    /// Releases what the call holds beyond `bytes`.
    pub(crate) fn hold_only(&self, bytes: usize) {
        self.held().shrink_to(bytes);
    }

    fn held(&self) -> MutexGuard<'_, HeldBytes> {
        self.held.lock()
    }
}

/// One account per client that has calls.
#[derive(Default)]
struct Accounts(Mutex<HashMap<Caller, Weak<ClientBytes>>>);

impl Accounts {
    /// Returns the account of a client. A client without calls has none, and gets a new one.
    fn account(&self, caller: &Caller) -> Arc<ClientBytes> {
        let mut accounts = self.0.lock();
        if let Some(account) = accounts.get(caller).and_then(Weak::upgrade) {
            return account;
        }
        // The table grows only here, after the accounts of clients that have gone are removed, so
        // it is never larger than the number of clients that had calls at one time.
        accounts.retain(|_, account| account.strong_count() > 0);
        let account = Arc::default();
        accounts.insert(caller.clone(), Arc::downgrade(&account));
        account
    }
}

/// Admits requests up to the limits. Clones share the counts.
#[derive(Clone)]
struct RequestLimits {
    limit: u32,
    caller_limit: u32,
    in_flight: Arc<Mutex<InFlight>>,
}

#[derive(Default)]
struct InFlight {
    requests: u32,
    /// Requests per client. Clients without requests have no entry.
    callers: HashMap<Caller, u32>,
}

/// An admitted request. It counts as in flight until it is dropped.
pub(crate) struct AdmittedRequest {
    caller: Caller,
    in_flight: Arc<Mutex<InFlight>>,
}

impl RequestLimits {
    fn new(limit: u32, caller_limit: u32) -> Self {
        Self {
            limit,
            caller_limit,
            in_flight: Arc::default(),
        }
    }

    /// Admits a request, or rejects it immediately if a limit is reached.
    fn admit(&self, caller: Caller) -> Result<AdmittedRequest, AdmissionLimit> {
        // One lock over the check and the count, so that two calls cannot share the last place.
        let mut in_flight = self.in_flight.lock();
        let of_caller = self.of_caller(&in_flight, &caller)?;
        in_flight.requests += 1;
        in_flight.callers.insert(caller.clone(), of_caller + 1);
        Ok(AdmittedRequest {
            caller,
            in_flight: Arc::clone(&self.in_flight),
        })
    }

    /// Returns the limit that another request of this client would exceed now.
    fn check(&self, caller: &Caller) -> Result<(), AdmissionLimit> {
        self.of_caller(&self.in_flight.lock(), caller).map(drop)
    }

    /// Returns the number of requests of a client, if it may have another.
    fn of_caller(&self, in_flight: &InFlight, caller: &Caller) -> Result<u32, AdmissionLimit> {
        if in_flight.requests >= self.limit {
            return Err(AdmissionLimit::Server(self.limit));
        }
        let of_caller = in_flight.callers.get(caller).copied().unwrap_or_default();
        if of_caller >= self.caller_limit {
            return Err(AdmissionLimit::Client(self.caller_limit));
        }
        Ok(of_caller)
    }

    /// Number of requests in flight.
    fn requests(&self) -> u32 {
        self.in_flight.lock().requests
    }
}

impl Drop for AdmittedRequest {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.lock();
        in_flight.requests -= 1;
        if let Some(count) = in_flight.callers.get_mut(&self.caller) {
            *count -= 1;
            // A table of all clients that ever called would grow without limit.
            if *count == 0 {
                in_flight.callers.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::TokenName;

    fn caller(name: &str) -> Caller {
        Caller::Token(TokenName(name.into()))
    }

    #[test]
    fn a_client_has_one_account_while_it_has_calls() {
        let accounts = Accounts::default();
        let one = accounts.account(&caller("a"));
        assert!(Arc::ptr_eq(&one, &accounts.account(&caller("a"))));
        assert!(!Arc::ptr_eq(&one, &accounts.account(&caller("b"))));
        drop(one);
        accounts.account(&caller("c"));
        assert_eq!(accounts.0.lock().len(), 1);
    }

    #[test]
    fn a_caller_without_requests_has_no_entry() {
        let limits = RequestLimits::new(3, 2);
        drop(["a", "b"].map(|name| limits.admit(caller(name)).unwrap()));
        assert!(limits.in_flight.lock().callers.is_empty());
        assert_eq!(limits.requests(), 0);
    }
}
