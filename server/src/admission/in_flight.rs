//! Limits on the requests in flight: in total, and per client.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::{AdmissionLimit, Caller};

/// Admits requests up to the limits. Clones share the counts.
#[derive(Clone)]
pub(super) struct RequestLimits {
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
    pub(super) fn new(limit: u32, caller_limit: u32) -> Self {
        Self {
            limit,
            caller_limit,
            in_flight: Arc::default(),
        }
    }

    /// Admits a request, or rejects it immediately if a limit is reached.
    pub(super) fn admit(&self, caller: Caller) -> Result<AdmittedRequest, AdmissionLimit> {
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
    pub(super) fn check(&self, caller: &Caller) -> Result<(), AdmissionLimit> {
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
    pub(super) fn requests(&self) -> u32 {
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
    use crate::admission::TokenName;

    fn caller(name: &str) -> Caller {
        Caller::Token(TokenName(name.into()))
    }

    #[test]
    fn a_caller_is_limited_before_the_total_is_reached() {
        let limits = RequestLimits::new(3, 2);
        let [_one, two] = [(); 2].map(|()| limits.admit(caller("a")).unwrap());
        assert!(matches!(
            limits.admit(caller("a")),
            Err(AdmissionLimit::Client(2))
        ));
        let _other = limits.admit(caller("b")).unwrap();
        assert!(matches!(
            limits.admit(caller("b")),
            Err(AdmissionLimit::Server(3))
        ));
        drop(two);
        assert!(limits.admit(caller("a")).is_ok());
        assert_eq!(limits.requests(), 2);
    }

    #[test]
    fn a_caller_without_requests_has_no_entry() {
        let limits = RequestLimits::new(3, 2);
        drop(["a", "b"].map(|name| limits.admit(caller(name)).unwrap()));
        assert!(limits.in_flight.lock().callers.is_empty());
        assert_eq!(limits.requests(), 0);
    }
}
