use std::collections::BTreeMap;

use hlorank_graph::{SegmentedGraph, pace};

use super::{
    call::{Queue, RowKey},
    waiting::Embeddings,
};
use crate::{device, engine::segment::plan::Plan, model::SegmentModel};

/// A row whose embedding is not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MissingRow {
    /// Position in the plan's rows.
    pub(super) row: u32,
    pub(super) key: RowKey,
    /// Position of the row's segment, as in [`Row`](hlorank_graph::Row).
    pub(super) segment: usize,
}

/// Missing rows by the queue of their padded size, the smallest first.
type RowsBySize = BTreeMap<Queue, Vec<MissingRow>>;

/// Rows that a call queues at a time: at most a full block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) queue: Queue,
    /// Sorted by segment.
    pub(super) rows: Vec<MissingRow>,
}

/// What the cache had of a call's rows.
pub(crate) struct CacheLookup {
    /// `[rows, D]` of the rows that were looked up; 0 for those that are missing.
    pub(super) embeddings: Vec<f32>,
    /// The missing rows, in the order in which they are to be evaluated.
    pub(super) parts: Vec<Part>,
}

/// Number of rows that are looked up between two pauses.
const LOOK_UP_ROWS: usize = 256;

impl Embeddings {
    /// Looks up the rows of a plan in the cache.
    pub(in crate::engine::segment) fn look_up(
        &self,
        model: &SegmentModel,
        graph: &SegmentedGraph,
        plan: &Plan,
    ) -> CacheLookup {
        let size = model.settings().embedding_size;
        let mut embeddings = Vec::with_capacity(plan.rows.len() * size);
        let mut missing = RowsBySize::new();
        for row in pace::in_steps(LOOK_UP_ROWS, (0..).take(plan.rows.len())) {
            let planned = plan.row(row, graph);
            let key = RowKey::new(model.facts().digest, planned);
            if let Some(embedding) = self.cache.get(&key) {
                embeddings.extend_from_slice(&embedding);
                continue;
            }
            // Zeros keep the place of the embedding until it is evaluated.
            embeddings.resize(embeddings.len() + size, 0.0);
            let nodes = model.settings().bucket(planned.facts().nodes);
            let queue = Queue::new(model, nodes);
            let segment = planned.row.segment;
            missing
                .entry(queue)
                .or_default()
                .push(MissingRow { row, key, segment });
        }
        let misses = missing.values().map(Vec::len).sum();
        self.cache.looked_up(plan.rows.len(), misses);
        CacheLookup {
            embeddings,
            parts: parts(missing),
        }
    }
}

/// Cuts missing rows into parts by padded size. Few rows of a size are padded to the next size in use, which saves a run of
/// the encoder.
fn parts(mut by_size: RowsBySize) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some((queue, mut rows)) = by_size.pop_first() {
        // The additional padding costs less than a run of its own. Merged rows can be merged again
        // with the size after that.
        if let Some(mut larger) = by_size.first_entry()
            && rows.len() * (larger.key().nodes - queue.nodes) <= device::RUN_NODES
        {
            larger.get_mut().append(&mut rows);
            continue;
        }
        // Rows of one segment share what a block computes of it, so they belong into one part.
        rows.sort_by_key(|missing| missing.segment);
        parts.extend(rows.chunks(queue.capacity()).map(|rows| Part {
            queue,
            rows: rows.to_vec(),
        }));
    }
    parts
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Digest;

    use super::*;
    use crate::compute::Class;

    const MODEL: Digest = Digest([0; 32]);

    fn queue(nodes: usize) -> Queue {
        Queue {
            model: MODEL,
            nodes,
            class: Class::Bulk,
            multiple: 4,
        }
    }

    fn missing(rows: std::ops::Range<u32>) -> Vec<MissingRow> {
        let key = RowKey {
            model: MODEL,
            row: MODEL,
        };
        rows.map(|row| MissingRow {
            row,
            key,
            segment: 1000 - row as usize,
        })
        .collect()
    }

    fn sizes(by_size: &[(usize, std::ops::Range<u32>)]) -> Vec<(usize, usize)> {
        let by_size = by_size.iter().cloned();
        let by_size = by_size.map(|(nodes, rows)| (queue(nodes), missing(rows)));
        parts(by_size.collect())
            .iter()
            .map(|part| (part.queue.nodes, part.rows.len()))
            .collect()
    }

    #[test]
    fn few_rows_ride_with_the_next_size() {
        assert_eq!(
            sizes(&[(4, 0..10), (8, 10..15), (16, 15..30)]),
            [(8, 15), (16, 15)]
        );
        assert_eq!(sizes(&[(4, 0..2), (8, 2..5), (16, 5..30)]), [(16, 30)]);
    }

    #[test]
    fn many_rows_are_cut_into_full_blocks() {
        assert_eq!(sizes(&[(128, 0..17)]), [(128, 8), (128, 8), (128, 1)]);
        assert_eq!(sizes(&[(4096, 0..5)]), [(4096, 4), (4096, 1)]);
    }

    #[test]
    fn rows_of_a_segment_are_neighbours() {
        let by_size = BTreeMap::from([(queue(8), missing(0..5))]);
        let parts = parts(by_size);
        assert!(parts[0].rows.is_sorted_by_key(|missing| missing.segment));
        assert_eq!(parts[0].rows.len(), 5);
    }
}
