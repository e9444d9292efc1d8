use std::{
    collections::BTreeSet,
    mem,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Subject;

/// Which measurements changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasurementChange {
    /// Those of these graphs on these targets.
    Subjects(BTreeSet<Subject>),
    /// Any.
    All,
}

/// Changes that nobody has asked for yet.
#[derive(Default)]
pub(super) struct Changes {
    waiting: Mutex<MeasurementChange>,
    notify: Notify,
    /// Number of changes since the start.
    count: AtomicU64,
}

/// Maximum number of subjects that are listed one by one; beyond it, all count as changed.
const MAX_SUBJECTS: usize = 10_000;

impl Default for MeasurementChange {
    fn default() -> Self {
        Self::Subjects(BTreeSet::new())
    }
}

impl Changes {
    pub(super) fn add(&self, subject: Subject) {
        let mut waiting = self.waiting.lock();
        if let MeasurementChange::Subjects(subjects) = &mut *waiting {
            subjects.insert(subject);
            if subjects.len() > MAX_SUBJECTS {
                *waiting = MeasurementChange::All;
            }
        }
        drop(waiting);
        self.count.fetch_add(1, Ordering::Relaxed);
        // Remembered if nobody waits yet, so that no change between two calls of `next` is missed.
        self.notify.notify_one();
    }

    pub(super) fn add_all(&self) {
        *self.waiting.lock() = MeasurementChange::All;
        self.count.fetch_add(1, Ordering::Relaxed);
        self.notify.notify_one();
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) async fn next(&self) -> MeasurementChange {
        loop {
            let changed = mem::take(&mut *self.waiting.lock());
            // A remembered notification can be about changes that were taken already.
            if changed != MeasurementChange::default() {
                return changed;
            }
            self.notify.notified().await;
        }
    }
}
