use std::sync::Arc;

use super::{
    cache::EmbeddingCache,
    call::{MIN_SEGMENTS, RowKey},
};
use crate::{
    compute::Worker,
    engine::segment::block::Block,
    model::{EncoderInput, ModelFailed, SegmentModel, SegmentTensors},
    runtime::Interrupt,
};

/// Returns `[rows, D]` embeddings of the rows of a block, copies included.
pub(super) fn encode(
    cache: &EmbeddingCache,
    block: &Block<'_>,
    model: &SegmentModel,
    worker: Worker,
    interrupt: &Interrupt,
) -> Result<Vec<f32>, ModelFailed> {
    let input = block.row_input(model.facts());
    if model.settings().is_split {
        let tensors = tensors(cache, block, &input, model, worker, interrupt)?;
        return model.encode_rows(worker, &tensors, &input, interrupt);
    }
    let input = match &*block.segments {
        &[only] => block.add_segments(input, &[only; MIN_SEGMENTS], model.facts()),
        segments => block.add_segments(input, segments, model.facts()),
    };
    model.encode(worker, &input, interrupt)
}

/// Returns what the model computes of each segment of a block alone, and caches it beside the embeddings.
fn tensors(
    cache: &EmbeddingCache,
    block: &Block<'_>,
    input: &EncoderInput,
    model: &SegmentModel,
    worker: Worker,
    interrupt: &Interrupt,
) -> Result<Vec<SegmentTensors>, ModelFailed> {
    let nodes = input.nodes;
    let keys: Vec<RowKey> = block
        .segments
        .iter()
        .map(|row| RowKey::of_segment(model.facts().digest, row.facts().digest, nodes))
        .collect();
    let cached = |key| {
        cache
            .segment(key)
            .and_then(|values| model.known_tensors(nodes, values))
    };
    let found: Vec<Option<SegmentTensors>> = keys.iter().map(cached).collect();
    let missing = block
        .segments
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none());
    let missing: Vec<_> = missing.map(|(row, _)| *row).collect();
    if missing.is_empty() {
        return Ok(found.into_iter().flatten().collect());
    }
    let segments = block.add_segments(EncoderInput::default(), &missing, model.facts());
    let mut evaluated = model.tensors(worker, &segments, interrupt)?.into_iter();
    let all: Vec<SegmentTensors> = found
        .iter()
        .cloned()
        .filter_map(|found| found.or_else(|| evaluated.next()))
        .collect();
    let new = keys
        .iter()
        .zip(&all)
        .zip(&found)
        .filter(|(_, found)| found.is_none());
    let new: Vec<(&RowKey, &Arc<[f32]>)> = new
        .map(|((key, tensors), _)| (key, tensors.values()))
        .collect();
    cache.insert_segments(new.into_iter());
    Ok(all)
}
