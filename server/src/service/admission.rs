//! Which requests are taken: so many in all, and so many of one client.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Extensions;
use tonic::transport::server::TcpConnectInfo;

use super::ServiceError;

/// Who a call is from, as its token says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenName(pub(crate) Arc<str>);

/// Whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Caller {
    /// Of a server that asks for tokens.
    Token(TokenName),
    /// Of one that does not; a proxy counts as one.
    Address(IpAddr),
    /// Of no connection.
    Unknown,
}

/// The places that there are. Clones share them.
#[derive(Clone)]
pub(super) struct Admission {
    limit: u32,
    caller_limit: u32,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    requests: u32,
    /// Those with none are not kept.
    callers: HashMap<Caller, u32>,
}

/// A request that was taken, until it is dropped.
pub(super) struct Admitted {
    caller: Caller,
    taken: Arc<Mutex<Taken>>,
}

impl Caller {
    /// Of a call with these extensions.
    pub(super) fn of_call(extensions: &Extensions) -> Self {
        if let Some(name) = extensions.get::<TokenName>() {
            return Self::Token(name.clone());
        }
        let peer = extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr);
        peer.map_or(Self::Unknown, |peer| Self::Address(peer.ip()))
    }
}

impl Admission {
    pub(super) fn new(limit: u32, caller_limit: u32) -> Self {
        Self { limit, caller_limit, taken: Arc::default() }
    }

    /// Takes a request, or refuses it at once.
    pub(super) fn admit(&self, caller: Caller) -> Result<Admitted, ServiceError> {
        let mut taken = lock(&self.taken);
        if taken.requests >= self.limit {
            return Err(ServiceError::Overloaded { limit: self.limit, half_done_in: Duration::ZERO });
        }
        let of_caller = taken.callers.get(&caller).copied().unwrap_or_default();
        if of_caller >= self.caller_limit {
            return Err(ServiceError::ClientLimit { limit: self.caller_limit });
        }
        taken.requests += 1;
        taken.callers.insert(caller.clone(), of_caller + 1);
        Ok(Admitted { caller, taken: Arc::clone(&self.taken) })
    }

    /// Requests that were taken and have not ended.
    pub(super) fn requests(&self) -> u32 {
        lock(&self.taken).requests
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.requests -= 1;
        if let Some(count) = taken.callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                taken.callers.remove(&self.caller);
            }
        }
    }
}

/// Nothing panics while it holds the lock.
fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        Caller::Token(TokenName(name.into()))
    }

    #[test]
    fn a_caller_has_its_share_and_no_more() {
        let admission = Admission::new(3, 2);
        let [_one, two] = [(); 2].map(|()| admission.admit(caller("a")).unwrap());
        assert!(matches!(admission.admit(caller("a")), Err(ServiceError::ClientLimit { limit: 2 })));
        let _other = admission.admit(caller("b")).unwrap();
        assert!(matches!(admission.admit(caller("b")), Err(ServiceError::Overloaded { limit: 3, .. })));
        drop(two);
        assert!(admission.admit(caller("a")).is_ok());
        assert_eq!(admission.requests(), 2);
    }

    #[test]
    fn what_has_ended_leaves_nothing() {
        let admission = Admission::new(3, 2);
        drop(["a", "b"].map(|name| admission.admit(caller(name)).unwrap()));
        assert!(lock(&admission.taken).callers.is_empty());
        assert_eq!(admission.requests(), 0);
    }

    #[test]
    fn a_caller_is_its_token_or_its_address() {
        let mut extensions = Extensions::new();
        assert_eq!(Caller::of_call(&extensions), Caller::Unknown);
        let peer =
            |port| TcpConnectInfo { local_addr: None, remote_addr: Some(([192, 0, 2, 7], port).into()) };
        extensions.insert(peer(1000));
        let one = Caller::of_call(&extensions);
        extensions.insert(peer(2000));
        assert_eq!(Caller::of_call(&extensions), one, "whatever its port");
        extensions.insert(TokenName("ci".into()));
        assert_eq!(Caller::of_call(&extensions), caller("ci"));
    }
}
