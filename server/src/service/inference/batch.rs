//! Writes the configurations of a call as `hlorank.v1.ConfigBatch`.

use hlorank_graph::{
    ConfigurationError, LAYOUT_VALUES, LayoutBatchBuilder, LayoutEntry, Limits, pace::in_steps,
};
use hlorank_proto::v1::{PackedFusionConfigs, PackedTileConfigs, config_batch::Configs};

use super::{
    inputs::CONFIGURATIONS,
    tensor::{Tensor, Tensors, invalid},
};
use crate::service::{ServiceError, answer::count};

/// The inputs with configurations, in the order of [`CONFIGURATIONS`].
pub(super) struct Batch([Option<Tensor>; CONFIGURATIONS.len()]);

/// Number of bytes that packing takes for a byte of layouts: 18 of them become an entry of two tables and two indices.
const PACKING_BYTES: usize = 4;

/// Number of entries, or of lists of bounds, between two pauses.
const STEPS: usize = 1 << 10;

/// Size of a bound.
const BOUND_BYTES: usize = 4;

impl Batch {
    /// Takes the inputs with configurations.
    pub(super) fn take(inputs: &mut Tensors) -> Result<Self, ServiceError> {
        let [layouts, fused, kernel, output, input] =
            CONFIGURATIONS.map(|(_, described)| inputs.take(&described));
        let batch = Self([layouts?, fused?, kernel?, output?, input?]);
        let tensors = batch.0.iter().flatten();
        let counts: Vec<usize> = tensors.map(|tensor| tensor.shape[0]).collect();
        let of_tasks = [&batch.0[..1], &batch.0[1..2], &batch.0[2..]];
        let is_sent = |inputs: &&&[Option<Tensor>]| inputs.iter().any(Option::is_some);
        let tasks = of_tasks.iter().filter(is_sent).count();
        if tasks == 1 && counts.iter().all(|count| *count == counts[0]) {
            return Ok(batch);
        }
        let found = format!("configurations {counts:?}");
        let expected =
            "layouts, fused, or kernel_bounds, output_bounds and input_bounds of one number";
        Err(invalid("inputs", found, expected.to_owned()))
    }

    /// Maximum number of bytes that [`Self::pack`] takes.
    pub(super) fn bytes_to_pack(&self) -> usize {
        let bytes: usize = self
            .0
            .iter()
            .flatten()
            .map(|tensor| tensor.values.len())
            .sum();
        PACKING_BYTES * bytes
    }

    /// Packs the configurations. They are not checked against the graph yet.
    pub(super) fn pack(&self, limits: &Limits) -> Result<Configs, ConfigurationError> {
        match &self.0 {
            [Some(layouts), ..] => pack_layouts(layouts, limits),
            [_, Some(fused), ..] => Ok(Configs::PackedFusionConfigs(PackedFusionConfigs {
                config_count: count(fused.shape[0]),
                fused: fused.values.clone(),
            })),
            [.., kernel, output, input] => Ok(pack_tiles([kernel, output, input])),
        }
    }
}

/// Packs layouts of \[configurations, slots, 18\].
fn pack_layouts(layouts: &Tensor, limits: &Limits) -> Result<Configs, ConfigurationError> {
    let slots = layouts.shape[1];
    let mut builder = LayoutBatchBuilder::new(slots, *limits);
    let configurations = layouts.values.chunks_exact(slots * LAYOUT_VALUES);
    for (config, values) in configurations.enumerate() {
        let entries = values.as_chunks::<LAYOUT_VALUES>().0.iter().enumerate();
        let entry = |(slot, values): (usize, &[u8; LAYOUT_VALUES])| {
            let values = values.map(|value| i32::from(value.cast_signed()));
            LayoutEntry::from_values(&values, || format!("configuration {config}, slot {slot}"))
        };
        let entries = in_steps(STEPS, entries).map(entry);
        builder.push(&entries.collect::<Result<Vec<_>, _>>()?)?;
    }
    Ok(Configs::PackedLayoutConfigs(builder.build()?.to_packed()))
}

/// Packs the bounds of each configuration one behind the other.
fn pack_tiles(lists: [&Option<Tensor>; 3]) -> Configs {
    let size = |list: &Option<Tensor>, dimension: usize| {
        list.as_ref().map_or(0, |list| list.shape[dimension])
    };
    let configs = lists.into_iter().map(|list| size(list, 0)).max();
    let configs = configs.unwrap_or(0);
    let [kernel, output, input] = lists.map(|list| count(size(list, 1)));
    let mut bounds = Vec::new();
    for config in in_steps(STEPS, 0..configs) {
        for list in lists.into_iter().flatten() {
            let bytes = list.shape[1] * BOUND_BYTES;
            bounds.extend_from_slice(&list.values[config * bytes..][..bytes]);
        }
    }
    Configs::PackedTileConfigs(PackedTileConfigs {
        config_count: count(configs),
        kernel_bound_count: kernel,
        output_bound_count: output,
        input_bound_count: input,
        bounds: bounds.into(),
    })
}
