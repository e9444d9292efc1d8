//! The bytes that the calls of each client hold.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use super::Caller;
use crate::memory::ClientBytes;

/// One account per client that has calls.
#[derive(Default)]
pub(super) struct Accounts(Mutex<HashMap<Caller, Weak<ClientBytes>>>);

impl Accounts {
    /// Returns the account of a client. A client without calls has none, and gets a new one.
    pub(super) fn of(&self, caller: &Caller) -> Arc<ClientBytes> {
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
        let one = accounts.of(&caller("a"));
        assert!(Arc::ptr_eq(&one, &accounts.of(&caller("a"))));
        assert!(!Arc::ptr_eq(&one, &accounts.of(&caller("b"))));
        drop(one);
        accounts.of(&caller("c"));
        assert_eq!(accounts.0.lock().len(), 1);
    }
}
