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

/// A run of the encoder of a model on a block of rows.
pub(super) struct EncoderRun<'a> {
    pub(super) model: &'a SegmentModel,
    pub(super) block: &'a Block<'a>,
    pub(super) worker: Worker,
    pub(super) interrupt: &'a Interrupt,
}

impl EncoderRun<'_> {
    /// Returns `[rows, D]` embeddings of the rows, copies included.
    pub(super) fn embeddings(&self, cache: &EmbeddingCache) -> Result<Vec<f32>, ModelFailed> {
        let Self {
            model,
            block,
            worker,
            interrupt,
        } = *self;
        let input = block.row_input(model.facts());
        if model.settings().is_split {
            let tensors = self.tensors(cache, input.nodes)?;
            return model.encode_rows(worker, &tensors, &input, interrupt);
        }
        // A lone segment is sent several times: in a run of one segment, some matrix products round
        // differently.
        let input = match &*block.segments {
            &[only] => block.add_segments(input, &[only; MIN_SEGMENTS], model.facts()),
            segments => block.add_segments(input, segments, model.facts()),
        };
        model.encode(worker, &input, interrupt)
    }

    /// Returns what the model computes of each segment alone, padded to `nodes`, and caches it beside the embeddings.
    fn tensors(
        &self,
        cache: &EmbeddingCache,
        nodes: usize,
    ) -> Result<Vec<SegmentTensors>, ModelFailed> {
        let model = self.model;
        let digest = model.facts().digest;
        let mut all = Vec::with_capacity(self.block.segments.len());
        let mut missing = Vec::new();
        let mut places = Vec::new();
        for row in &self.block.segments {
            let key = RowKey::of_segment(digest, row.facts().digest, nodes);
            let values = cache.segment(&key);
            let known = values.and_then(|values| model.known_tensors(nodes, values));
            if known.is_none() {
                missing.push(*row);
                places.push((all.len(), key));
            }
            all.push(known);
        }
        if !missing.is_empty() {
            // One run evaluates all that are missing.
            let input = self
                .block
                .add_segments(EncoderInput::default(), &missing, model.facts());
            let evaluated = model.tensors(self.worker, &input, self.interrupt)?;
            for ((place, key), tensors) in places.into_iter().zip(evaluated) {
                cache.insert_segment(key, tensors.values());
                all[place] = Some(tensors);
            }
        }
        // Every place is filled by now: a run returns the tensors of each of its segments.
        Ok(all.into_iter().flatten().collect())
    }
}
