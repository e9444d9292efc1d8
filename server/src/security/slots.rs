//! The connections that a listener may have at a time. When all places are taken, a new connection gets the place of one
//! that the server works for no call of.

use std::{cmp::Reverse, collections::HashMap, future::pending, net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::ConnectionActivity;
use crate::metrics::ConnectionSeries;

/// The slots of a listener.
pub(super) struct Slots {
    maximum: usize,
    series: Arc<ConnectionSeries>,
    table: Mutex<SlotTable>,
}

/// The place of one connection. It counts against the limit until it is dropped or given to another connection.
pub(crate) struct Slot {
    id: u64,
    slots: Arc<Slots>,
    activity: ConnectionActivity,
    /// `None` once it has been received.
    eviction: Option<oneshot::Receiver<Eviction>>,
}

/// How a connection ends whose slot another one gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Calls that are on their way are answered.
    Graceful,
    /// The connection is closed immediately, because too many others are closing.
    Immediate,
}

#[derive(Default)]
struct SlotTable {
    next: u64,
    occupied: HashMap<u64, Occupant>,
    /// Number of connections that have lost their slot and are not closed yet.
    closing: usize,
}

/// The connection of a slot.
struct Occupant {
    address: IpAddr,
    activity: ConnectionActivity,
    evict: oneshot::Sender<Eviction>,
}

/// Maximum number of connections that end gracefully at a time after they have lost their slot.
const MAX_CLOSING: usize = 32;

impl Slots {
    pub(super) fn new(maximum: usize, series: &Arc<ConnectionSeries>) -> Arc<Self> {
        Arc::new(Self {
            maximum,
            series: Arc::clone(series),
            table: Mutex::default(),
        })
    }

    /// Returns a slot for a connection from an address. If all are taken, it is that of the connection which has been
    /// idle for the longest time, among those of the address with the most connections. Returns `None` if the server
    /// works for a call of every connection.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let mut table = self.table.lock();
        if table.occupied.len() >= self.maximum && !table.evict() {
            self.series.over_limit.increment(1);
            return None;
        }
        let (evict, evicted) = oneshot::channel();
        let activity = ConnectionActivity::new();
        let id = table.next;
        table.next += 1;
        let occupant = Occupant {
            address,
            activity: activity.clone(),
            evict,
        };
        table.occupied.insert(id, occupant);
        self.series.open.increment(1);
        Some(Slot {
            id,
            slots: Arc::clone(self),
            activity,
            eviction: Some(evicted),
        })
    }
}

impl SlotTable {
    /// Takes the slot of an idle connection away, if there is one.
    fn evict(&mut self) -> bool {
        let Some(victim) = self.most_idle().and_then(|id| self.occupied.remove(&id)) else {
            return false;
        };
        let eviction = if self.closing < MAX_CLOSING {
            Eviction::Graceful
        } else {
            Eviction::Immediate
        };
        // Its `Slot` is dropped when it is closed, and counts it out again.
        self.closing += 1;
        // An error means that the connection is closing already.
        let _ = victim.evict.send(eviction);
        true
    }

    fn most_idle(&self) -> Option<u64> {
        let mut of_address: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.occupied.values() {
            *of_address.entry(connection.address).or_default() += 1;
        }
        // The smallest of these is of the address with the most connections, and then the one that
        // is idle for the longest time. The number makes the choice definite.
        let idle = self.occupied.iter().filter_map(|(&id, connection)| {
            Some((
                Reverse(of_address[&connection.address]),
                connection.activity.idle_since()?,
                id,
            ))
        });
        idle.min().map(|(_, _, id)| id)
    }
}

impl Slot {
    /// Returns the activity of the connection that has the slot.
    pub(crate) fn activity(&self) -> &ConnectionActivity {
        &self.activity
    }

    /// Waits until another connection gets the slot.
    pub(crate) async fn evicted(&mut self) -> Eviction {
        let Some(eviction) = &mut self.eviction else {
            return pending().await;
        };
        let Ok(eviction) = eviction.await else {
            return pending().await;
        };
        self.eviction = None;
        self.slots.series.evicted.increment(1);
        eviction
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.slots.table.lock();
        // Whoever evicted the connection has removed it from the table.
        if table.occupied.remove(&self.id).is_none() {
            table.closing -= 1;
        }
        self.slots.series.open.decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{metrics::Metrics, refusal::REASONS};

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    fn slots(maximum: usize) -> Arc<Slots> {
        Slots::new(maximum, &Metrics::new(&REASONS).security.calls)
    }

    fn is_evicted(slot: &mut Slot) -> bool {
        slot.eviction.as_mut().unwrap().try_recv().is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_of_the_largest_client_loses_its_slot() {
        let slots = slots(4);
        let mut single = slots.take(OTHER).unwrap();
        let mut crowd = Vec::new();
        for _ in 0..3 {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            crowd.push(slots.take(ONE).unwrap());
        }
        let _call = crowd[0].activity().begin();
        let _header = crowd[1].activity().open();
        let _new = slots.take(OTHER).unwrap();
        let evicted: Vec<bool> = crowd.iter_mut().map(is_evicted).collect();
        assert_eq!(
            (evicted, is_evicted(&mut single)),
            (vec![false, true, false], false)
        );
    }

    #[test]
    fn a_connection_with_work_in_flight_keeps_its_slot() {
        let slots = slots(1);
        let only = slots.take(ONE).unwrap();
        let call = only.activity().begin();
        assert!(slots.take(OTHER).is_none());
        drop(call);
        assert!(slots.take(OTHER).is_some());
        let counts = || {
            let table = slots.table.lock();
            (table.occupied.len(), table.closing)
        };
        assert_eq!(counts(), (0, 1));
        drop(only);
        assert_eq!(counts(), (0, 0));
    }
}
