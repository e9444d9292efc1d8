//! Fusions: JSON and random draws.

use fastrand::Rng;
use hlorank_client::v1::{self, config_batch::Configs};
use hlorank_graph::{ConfigurationError, Configurations, EncodedBatch, FusionBatch, Task};
use serde::{Deserialize, Serialize};

use crate::cli::input::FILE_LIMITS;

/// One fusion as JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FusionForm {
    #[serde(default)]
    fused_nodes: Vec<u32>,
}

/// Fusions of a program, in this order: nothing fused, one slot fused, and random ones.
pub(crate) struct DrawnFusions {
    /// All fusions.
    pub(crate) configurations: Configurations,
    /// Number of fusions of one slot: the slots of the program.
    pub(crate) single: usize,
    /// Number of random fusions.
    pub(crate) random: usize,
}

/// Converts fusions from JSON. `slots` lists the node of each slot.
pub(super) fn from_forms(
    forms: &[FusionForm],
    slots: &[u32],
) -> Result<Configurations, ConfigurationError> {
    let configs = forms.iter().map(|form| v1::FusionConfig {
        fused_nodes: form.fused_nodes.clone(),
    });
    let message = v1::FusionConfigs {
        configs: configs.collect(),
    };
    let batch = EncodedBatch::try_from(&Configs::FusionConfigs(message))?;
    batch.read(Task::Fusion, slots, &FILE_LIMITS)
}

/// Returns random fusions, each slot of which is taken from any of these fusions.
pub(super) fn recombine(
    own: &FusionBatch,
    count: usize,
    random: &mut Rng,
) -> Result<Configurations, ConfigurationError> {
    // Each slot is drawn by itself, so it is fused as often as in the own fusions.
    let bits = (0..count).map(|_| {
        (0..own.slots())
            .map(|slot| own.is_fused(random.usize(..own.len()), slot))
            .collect()
    });
    build(own.slots(), &bits.collect::<Vec<_>>())
}

/// Draws fusions of a program with this many slots, at least one. A random fusion fuses a random share of them.
pub(crate) fn draw_fusions(
    slots: usize,
    random: usize,
    rng: &mut Rng,
) -> Result<DrawnFusions, ConfigurationError> {
    let mut bits = vec![vec![false; slots]];
    // Compared with the program without fusion, these show what each slot does by itself.
    bits.extend((0..slots).map(|fused| (0..slots).map(|slot| slot == fused).collect()));
    for _ in 0..random {
        // A fixed share would give nearly all random fusions about the same number of fused slots.
        let share = rng.f64();
        bits.push((0..slots).map(|_| rng.f64() < share).collect());
    }
    Ok(DrawnFusions {
        configurations: build(slots, &bits)?,
        single: slots,
        random,
    })
}

fn build(slots: usize, configs: &[Vec<bool>]) -> Result<Configurations, ConfigurationError> {
    let batch = FusionBatch::from_bits(slots, configs, &FILE_LIMITS)?;
    Ok(Configurations::Fusion(batch))
}

impl FusionForm {
    pub(super) fn of(batch: &FusionBatch, slots: &[u32], config: usize) -> Self {
        Self {
            fused_nodes: batch.fused_slots(config).map(|slot| slots[slot]).collect(),
        }
    }
}

/// Returns a fusion, the program without fusion and another fusion.
pub(super) fn with_unfused(
    batch: &FusionBatch,
    best: usize,
    worst: usize,
) -> Result<Configurations, ConfigurationError> {
    let bits = |config| -> Vec<_> {
        let slots = 0..batch.slots();
        slots.map(|slot| batch.is_fused(config, slot)).collect()
    };
    let three = [bits(best), vec![false; batch.slots()], bits(worst)];
    build(batch.slots(), &three)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_single_slots_come_before_random_fusions() {
        let drawn = draw_fusions(9, 4, &mut Rng::with_seed(0)).unwrap();
        let Configurations::Fusion(batch) = &drawn.configurations else {
            unreachable!("fusions of fusions")
        };
        assert_eq!((batch.len(), drawn.single, drawn.random), (14, 9, 4));
        let fused = |config| batch.fused_slots(config).collect::<Vec<_>>();
        assert_eq!((fused(0), fused(1), fused(9)), (vec![], vec![0], vec![8]));
        assert!((10..14).any(|config| fused(config).len() > 1));
    }
}
