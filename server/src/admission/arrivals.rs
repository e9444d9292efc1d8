//! Calls whose first message has not arrived. They take no place among the requests in flight. If there are too many, the
//! one that has sent nothing for longest makes room.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::AdmissionLimit;
use crate::caller::Caller;

/// Counts arriving calls, in total and per client. Clones share the counts.
#[derive(Clone)]
pub(crate) struct Arrivals {
    limit: u32,
    caller_limit: u32,
    calls: Arc<Mutex<WaitingCalls>>,
    clock: Arc<AtomicU64>,
}

/// Arriving calls by client. Clients without any have no entry.
type WaitingCalls = HashMap<Caller, HashMap<u64, WaitingCall>>;

/// What is known of an arriving call.
struct WaitingCall {
    /// When it last sent something.
    moved: Arc<AtomicU64>,
    displaced: oneshot::Sender<AdmissionLimit>,
}

/// A call that is arriving until this is dropped.
pub(crate) struct Arrival {
    caller: Caller,
    number: u64,
    arrivals: Arrivals,
    moved: Arc<AtomicU64>,
    displaced: oneshot::Receiver<AdmissionLimit>,
}

impl Arrivals {
    pub(crate) fn new(limit: u32, caller_limit: u32) -> Self {
        Self {
            limit,
            caller_limit,
            calls: Arc::default(),
            clock: Arc::default(),
        }
    }

    /// Adds a call. If a limit is reached, a call of the same client makes room, or one of the client that has the most.
    pub(crate) fn add(&self, caller: Caller) -> Arrival {
        // One counter numbers the calls and orders their messages, so no clock has to be read.
        let number = self.now();
        let (sender, displaced) = oneshot::channel();
        let moved = Arc::new(AtomicU64::new(number));
        let mut calls = self.lock();
        self.make_room(&mut calls, &caller);
        let waiting = WaitingCall {
            moved: Arc::clone(&moved),
            displaced: sender,
        };
        calls
            .entry(caller.clone())
            .or_default()
            .insert(number, waiting);
        drop(calls);
        Arrival {
            caller,
            number,
            arrivals: self.clone(),
            moved,
            displaced,
        }
    }

    fn make_room(&self, calls: &mut WaitingCalls, caller: &Caller) {
        if calls
            .get(caller)
            .is_some_and(|own| own.len() >= self.caller_limit as usize)
        {
            displace(calls, caller, AdmissionLimit::Client(self.caller_limit));
        } else if calls.values().map(HashMap::len).sum::<usize>() >= self.limit as usize
            && let Some((most, _)) = calls.iter().max_by_key(|(_, calls)| calls.len())
        {
            // Not the slowest call of all: a client that opens many would push out those of others.
            displace(calls, &most.clone(), AdmissionLimit::Server(self.limit));
        }
    }

    /// Returns a number that grows with every call.
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, WaitingCalls> {
        self.calls.lock()
    }
}

/// Ends the call of a client that has sent nothing for longest.
fn displace(calls: &mut WaitingCalls, caller: &Caller, limit: AdmissionLimit) {
    let Some(own) = calls.get(caller) else { return };
    let slowest = own
        .iter()
        .min_by_key(|(_, waiting)| waiting.moved.load(Ordering::Relaxed));
    let Some(number) = slowest.map(|(&number, _)| number) else {
        return;
    };
    if let Some(waiting) = remove(calls, caller, number) {
        // An error means that the call has just ended.
        let _ = waiting.displaced.send(limit);
    }
}

fn remove(calls: &mut WaitingCalls, caller: &Caller, number: u64) -> Option<WaitingCall> {
    // A call that was displaced is removed already when it is dropped.
    let own = calls.get_mut(caller)?;
    let waiting = own.remove(&number);
    if own.is_empty() {
        calls.remove(caller);
    }
    waiting
}

impl Arrival {
    /// Records that the call has sent something.
    pub(crate) fn moved(&self) {
        self.moved.store(self.arrivals.now(), Ordering::Relaxed);
    }

    /// Waits until the call has to make room for another, and returns the limit that is reached.
    pub(crate) async fn displaced(&mut self) -> AdmissionLimit {
        match (&mut self.displaced).await {
            Ok(limit) => limit,
            // The sender is not dropped without a value before this is.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        remove(&mut self.arrivals.lock(), &self.caller, self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::caller::TokenName;

    fn caller(name: &str) -> Caller {
        Caller::Token(TokenName(name.into()))
    }

    fn displaced(arrival: &mut Arrival) -> Option<AdmissionLimit> {
        arrival.displaced().now_or_never()
    }

    #[test]
    fn the_call_of_a_client_that_moved_least_recently_makes_room() {
        let arrivals = Arrivals::new(10, 3);
        let mut calls = [(); 3].map(|()| arrivals.add(caller("a")));
        let mut other = arrivals.add(caller("b"));
        calls[0].moved();
        let _new = arrivals.add(caller("a"));
        let of = calls.each_mut().map(displaced);
        assert_eq!(of, [None, Some(AdmissionLimit::Client(3)), None]);
        assert_eq!(displaced(&mut other), None);
    }

    #[test]
    fn at_the_limit_of_the_server_the_client_with_the_most_calls_makes_room() {
        let arrivals = Arrivals::new(3, 3);
        let mut few = arrivals.add(caller("few"));
        let mut many = [(); 2].map(|()| arrivals.add(caller("many")));
        let _new = arrivals.add(caller("new"));
        assert_eq!(displaced(&mut few), None);
        assert_eq!(
            many.each_mut().map(displaced),
            [Some(AdmissionLimit::Server(3)), None]
        );
    }

    #[test]
    fn a_caller_without_arriving_calls_has_no_entry() {
        let arrivals = Arrivals::new(3, 1);
        let displaced = arrivals.add(caller("a"));
        drop((
            arrivals.add(caller("a")),
            arrivals.add(caller("b")),
            displaced,
        ));
        assert!(arrivals.lock().is_empty());
    }
}
