use std::sync::{Arc, Mutex, PoisonError};

use hlorank_graph::{EncodedBatch, SegmentedGraph};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::{memory::Held, metrics::ModelSeries, model::Model};

/// A batch that the stable version scored, and that the shadow is to score too.
pub(crate) struct ShadowedBatch {
    pub(super) batch: EncodedBatch,
    pub(super) graph: Arc<SegmentedGraph>,
    pub(super) stable: Arc<Model>,
    pub(super) shadow: Arc<Model>,
    pub(super) series: Arc<ModelSeries>,
    /// Its memory.
    #[expect(dead_code, reason = "released when it is dropped")]
    pub(super) held: Held,
}

/// The batch that waits for its shadow. Others are skipped meanwhile.
pub(super) struct Shadowed {
    pub(super) waiting: Sender<ShadowedBatch>,
    receiver: Mutex<Option<Receiver<ShadowedBatch>>>,
}

impl Default for Shadowed {
    fn default() -> Self {
        let (waiting, receiver) = mpsc::channel(1);
        Self {
            waiting,
            receiver: Mutex::new(Some(receiver)),
        }
    }
}

impl Shadowed {
    /// The other end, once. Nothing waits after it is dropped.
    pub(super) fn take_receiver(&self) -> Option<Receiver<ShadowedBatch>> {
        self.receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
