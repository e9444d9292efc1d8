//! The bytes that the calls of each client hold, and the place of each call.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use parking_lot::{Mutex, MutexGuard};

use super::{Caller, in_flight::AdmittedRequest};
use crate::memory::{ClientBytes, Held, MemoryFull};

/// The memory that a call holds and, once its first message has arrived, its place among the requests in flight. Clones
/// share both.
#[derive(Clone)]
pub(crate) struct Place {
    held: Arc<Mutex<Held>>,
    /// Bytes that are held for as long as the call.
    _window: Arc<Held>,
    admitted: Arc<OnceLock<AdmittedRequest>>,
}

impl Place {
    pub(super) fn new(held: Held, window: Held) -> Self {
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

    /// Releases `bytes` bytes, or all if fewer are held.
    pub(crate) fn release(&self, bytes: usize) {
        self.held().release(bytes);
    }

    /// Releases what the call holds beyond `bytes`.
    pub(crate) fn hold_only(&self, bytes: usize) {
        self.held().shrink_to(bytes);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}

/// One account per client that has calls.
#[derive(Default)]
pub(super) struct Accounts(Mutex<HashMap<Caller, Weak<ClientBytes>>>);

impl Accounts {
    /// Returns the account of a client. A client without calls has none, and gets a new one.
    pub(super) fn account(&self, caller: &Caller) -> Arc<ClientBytes> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::TokenName;

    #[test]
    fn a_client_has_one_account_while_it_has_calls() {
        let accounts = Accounts::default();
        let caller = |name: &str| Caller::Token(TokenName(name.into()));
        let one = accounts.account(&caller("a"));
        assert!(Arc::ptr_eq(&one, &accounts.account(&caller("a"))));
        assert!(!Arc::ptr_eq(&one, &accounts.account(&caller("b"))));
        drop(one);
        accounts.account(&caller("c"));
        assert_eq!(accounts.0.lock().len(), 1);
    }
}
