//! Writes the configurations of a call as `hlorank.v1.ConfigBatch`.

use hlorank_graph::{
    ConfigurationError, LAYOUT_VALUES, LayoutBatchBuilder, LayoutEntry, Limits, pace::in_steps,
};
use hlorank_proto::v1::{PackedFusionConfigs, PackedTileConfigs, config_batch::Configs};

use super::{
    inputs::CONFIGURATIONS,
    tensor::{Tensor, Tensors},
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
        batch.check()?;
        Ok(batch)
    }

    /// Checks that the inputs are those of one task, and have one number of configurations.
    fn check(&self) -> Result<(), ServiceError> {
        let tensors = self.0.iter().flatten();
        let counts: Vec<usize> = tensors.map(|tensor| tensor.shape[0]).collect();
        if self.tasks() == 1 && counts.iter().all(|count| *count == counts[0]) {
            return Ok(());
        }
        let found = format!("configurations {counts:?}");
        let expected =
            "layouts, fused, or kernel_bounds, output_bounds and input_bounds of one number";
        Err(ServiceError::invalid("inputs", found, expected))
    }

    /// Returns the number of tasks whose inputs were sent.
    fn tasks(&self) -> usize {
        let [layouts, fused, bounds @ ..] = &self.0;
        // A tile need not have all three lists of bounds.
        let has_bounds = bounds.iter().any(Option::is_some);
        [layouts.is_some(), fused.is_some(), has_bounds]
            .map(usize::from)
            .iter()
            .sum()
    }

    /// Maximum number of bytes that [`Self::pack`] takes.
    pub(super) fn bytes_to_pack(&self) -> usize {
        let tensors = self.0.iter().flatten();
        PACKING_BYTES * tensors.map(|tensor| tensor.values.len()).sum::<usize>()
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
        builder.push(&entries(values, config)?)?;
    }
    Ok(Configs::PackedLayoutConfigs(builder.build()?.to_packed()))
}

/// Reads the slots of a layout from signed bytes.
fn entries(values: &[u8], config: usize) -> Result<Vec<LayoutEntry>, ConfigurationError> {
    let slots = values.as_chunks::<LAYOUT_VALUES>().0.iter().enumerate();
    let entry = |(slot, values): (usize, &[u8; LAYOUT_VALUES])| {
        let values = values.map(|value| i32::from(value.cast_signed()));
        LayoutEntry::from_values(&values, || format!("configuration {config}, slot {slot}"))
    };
    in_steps(STEPS, slots).map(entry).collect()
}

/// Packs the bounds of each configuration one behind the other.
fn pack_tiles(lists: [&Option<Tensor>; 3]) -> Configs {
    let size = |list: &Option<Tensor>, dimension: usize| {
        list.as_ref().map_or(0, |list| list.shape[dimension])
    };
    // All lists that were sent are for the same number of configurations.
    let configs = lists.into_iter().map(|list| size(list, 0)).max();
    let configs = configs.unwrap_or(0);
    let [kernel, output, input] = lists.map(|list| count(size(list, 1)));
    let bounds = by_configuration(&lists, configs);
    Configs::PackedTileConfigs(PackedTileConfigs {
        config_count: count(configs),
        kernel_bound_count: kernel,
        output_bound_count: output,
        input_bound_count: input,
        bounds: bounds.into(),
    })
}

/// Returns the bounds of all lists for the first configuration, then for the second, and so on.
fn by_configuration(lists: &[&Option<Tensor>], configs: usize) -> Vec<u8> {
    let mut bounds = Vec::new();
    for config in in_steps(STEPS, 0..configs) {
        for list in lists.iter().copied().flatten() {
            let bytes = list.shape[1] * BOUND_BYTES;
            bounds.extend_from_slice(&list.values[config * bytes..][..bytes]);
        }
    }
    bounds
}
