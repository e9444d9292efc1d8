//! Limits on the requests in flight: in total, and per client.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Name of the token that a call carries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenName(pub(crate) Arc<str>);

/// Mark of a call that may do what needs the scope `admin`: its token has that, or the server has no tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdminScope;

/// The client that a request counts for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// The holder of a token, if the server requires tokens.
    Token(TokenName),
    /// An address, if the server requires no tokens. All clients behind one proxy count as one.
    Address(IpAddr),
    /// A call that did not arrive over a connection.
    Unknown,
}

impl Caller {
    /// The name under which its measurements are kept.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Token(TokenName(name)) => name.to_string(),
            Self::Address(address) => address.to_canonical().to_string(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

/// Admits requests up to the limits. Clones share the counts.
#[derive(Clone)]
pub(crate) struct Admission {
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
pub(crate) struct Admitted {
    caller: Caller,
    in_flight: Arc<Mutex<InFlight>>,
}

/// A limit on requests is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionLimit {
    /// The limit of the server.
    Server(u32),
    /// The limit per client.
    Client(u32),
}

impl Admission {
    pub(crate) fn new(limit: u32, caller_limit: u32) -> Self {
        Self {
            limit,
            caller_limit,
            in_flight: Arc::default(),
        }
    }

    /// Admits a request, or rejects it immediately if a limit is reached.
    pub(crate) fn admit(&self, caller: Caller) -> Result<Admitted, AdmissionLimit> {
        let mut in_flight = lock(&self.in_flight);
        let of_caller = self.of_caller(&in_flight, &caller)?;
        in_flight.requests += 1;
        in_flight.callers.insert(caller.clone(), of_caller + 1);
        Ok(Admitted {
            caller,
            in_flight: Arc::clone(&self.in_flight),
        })
    }

    /// Returns the limit that another request of this client would exceed now.
    pub(crate) fn check(&self, caller: &Caller) -> Result<(), AdmissionLimit> {
        self.of_caller(&lock(&self.in_flight), caller).map(drop)
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
    pub(crate) fn requests(&self) -> u32 {
        lock(&self.in_flight).requests
    }
}

impl AdmissionLimit {
    /// The setting that raises it.
    pub(super) fn setting(self) -> &'static str {
        match self {
            Self::Server(_) => "--max-requests",
            Self::Client(_) => "--max-client-requests",
        }
    }

    /// Maximum number of requests.
    pub(super) fn number(self) -> u32 {
        let (Self::Server(limit) | Self::Client(limit)) = self;
        limit
    }

    /// Whose maximum it is.
    pub(super) fn whose(self) -> &'static str {
        match self {
            Self::Server(_) => "of the server",
            Self::Client(_) => "per client",
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.in_flight);
        in_flight.requests -= 1;
        if let Some(count) = in_flight.callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                in_flight.callers.remove(&self.caller);
            }
        }
    }
}

/// Ignores poisoning, because nothing panics while it holds the lock.
fn lock(in_flight: &Mutex<InFlight>) -> MutexGuard<'_, InFlight> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        Caller::Token(TokenName(name.into()))
    }

    #[test]
    fn a_caller_is_limited_before_the_total_is_reached() {
        let admission = Admission::new(3, 2);
        let [_one, two] = [(); 2].map(|()| admission.admit(caller("a")).unwrap());
        assert!(matches!(
            admission.admit(caller("a")),
            Err(AdmissionLimit::Client(2))
        ));
        let _other = admission.admit(caller("b")).unwrap();
        assert!(matches!(
            admission.admit(caller("b")),
            Err(AdmissionLimit::Server(3))
        ));
        drop(two);
        assert!(admission.admit(caller("a")).is_ok());
        assert_eq!(admission.requests(), 2);
    }

    #[test]
    fn a_caller_without_requests_has_no_entry() {
        let admission = Admission::new(3, 2);
        drop(["a", "b"].map(|name| admission.admit(caller(name)).unwrap()));
        assert!(lock(&admission.in_flight).callers.is_empty());
        assert_eq!(admission.requests(), 0);
    }
}
