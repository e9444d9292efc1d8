use std::sync::Arc;

use hlorank_graph::{Digest, SegmentedGraph};
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    compute::{Class, WaitingCaller},
    device,
    engine::{
        EngineError,
        segment::plan::{Plan, PlannedRow},
    },
    model::SegmentModel,
};

/// What an embedding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowKey {
    pub(super) model: Digest,
    /// BLAKE3 of the segment's digest and the local configuration, or of what [`RowKey::of_segment`] is for.
    pub(super) row: Digest,
}

/// The queue of rows that may share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Queue {
    /// Digest of the model.
    pub(super) model: Digest,
    /// Nodes of a row, padding included.
    pub(super) nodes: usize,
    /// Rows of small calls do not wait for those of others.
    pub(super) class: Class,
    /// Rows are taken in multiples of this. The encoder of a model that is not split computes a segment once for all of its
    /// rows, so that the copies that pad its block cost nothing, and a run over large segments may be short.
    pub(super) multiple: usize,
}

/// One call that needs embeddings.
pub(super) struct EmbeddingCall {
    pub(super) model: Arc<SegmentModel>,
    pub(super) graph: Arc<SegmentedGraph>,
    pub(super) plan: Arc<Plan>,
    pub(super) results: UnboundedSender<RowResult>,
    /// Who waits, if a worker does the whole call at once. It cannot drop the receiver of the results meanwhile.
    pub(super) caller: Option<Arc<dyn WaitingCaller>>,
}

/// A row of a call's plan, and its embedding.
pub(super) type RowResult = Result<(u32, Arc<[f32]>), EngineError>;

/// A call, and which of its rows it waits for.
#[derive(Clone)]
pub(super) struct Waiter {
    pub(super) call: Arc<EmbeddingCall>,
    pub(super) row: u32,
}

impl RowKey {
    pub(super) fn new(model: Digest, row: PlannedRow<'_>) -> Self {
        // The digest of the segment has a fixed length, so no local configuration can be taken for
        // a part of it.
        let mut hasher = blake3::Hasher::new();
        hasher.update(&row.facts().digest.0);
        row.locals.hash(row.row, &mut hasher);
        Self {
            model,
            row: Digest(*hasher.finalize().as_bytes()),
        }
    }

    /// The key of what a model computes of a segment alone, padded to `nodes` nodes. No row has it.
    pub(super) fn of_segment(model: Digest, segment: Digest, nodes: usize) -> Self {
        // The purpose keeps these digests apart from those of rows. Tensors of segments are padded,
        // so the padded size is a part of the key.
        let mut hasher = blake3::Hasher::new_derive_key("hlorank segment tensors");
        hasher.update(&segment.0).update(&nodes.to_le_bytes());
        Self {
            model,
            row: Digest(*hasher.finalize().as_bytes()),
        }
    }
}

/// The fewest segments of a run of an encoder that is not split: of one segment alone, ONNX Runtime computes some matrix
/// products in another way, whose numbers differ in the last bits.
pub(super) const MIN_SEGMENTS: usize = 2;

impl Queue {
    /// The bulk queue of the rows of a model that are padded to `nodes` nodes.
    pub(super) fn new(model: &SegmentModel, nodes: usize) -> Self {
        // A split encoder takes as long for a copy as for a row, because its first part has
        // computed the segments already.
        let multiple = if model.settings.is_split {
            device::ROW_MULTIPLE
        } else {
            MIN_SEGMENTS
        };
        Self {
            model: model.facts.digest,
            nodes,
            class: Class::Bulk,
            multiple,
        }
    }

    /// Number of rows of a full block.
    pub(super) fn capacity(self) -> usize {
        device::block_rows(self.nodes)
    }

    /// Number of rows of the next block, if a worker's share of the queue is `share` rows.
    pub(super) fn block_rows(self, share: usize) -> usize {
        // A run costs the same for any number of rows, so that a block of few rows is slow for
        // each.
        let least = (device::MIN_BLOCK_NODES / self.nodes).max(1);
        share
            .max(least)
            .next_multiple_of(self.multiple)
            .min(self.capacity())
    }
}

impl Waiter {
    /// Whether the call was neither cancelled nor failed.
    pub(super) fn is_waiting(&self) -> bool {
        let EmbeddingCall {
            results, caller, ..
        } = &*self.call;
        // A call that a worker does at once cannot close its channel while that worker is in its
        // future, so the task that waits for the worker counts as well.
        !results.is_closed() && caller.as_ref().is_none_or(|caller| !caller.is_gone())
    }

    pub(super) fn deliver(&self, embedding: Result<Arc<[f32]>, EngineError>) {
        // An error means that the call no longer waits.
        let _ = self
            .call
            .results
            .send(embedding.map(|embedding| (self.row, embedding)));
    }

    pub(super) fn planned_row(&self) -> PlannedRow<'_> {
        self.call.plan.row(self.row, &self.call.graph)
    }
}
