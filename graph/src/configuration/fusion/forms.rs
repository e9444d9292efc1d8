//! Writes the forms of a fusion batch, which are equal in meaning.

use hlorank_proto::v1::{DeltaFusionConfigs, FusionConfig, FusionConfigs, PackedFusionConfigs};

use super::FusionBatch;
use crate::{configuration::count::to_u32, program::is_set};

impl FusionBatch {
    /// Writes the readable form; `nodes` holds the node of each slot.
    #[must_use]
    pub fn to_readable(&self, nodes: &[u32]) -> FusionConfigs {
        let config = |config| FusionConfig {
            fused_nodes: self.fused_slots(config).map(|slot| nodes[slot]).collect(),
        };
        FusionConfigs {
            configs: (0..self.len()).map(config).collect(),
        }
    }

    /// Writes the packed form.
    #[must_use]
    pub fn to_packed(&self) -> PackedFusionConfigs {
        let fused: Vec<u8> = (0..self.len())
            .flat_map(|config| self.row(config))
            .copied()
            .collect();
        PackedFusionConfigs {
            config_count: to_u32(self.len()),
            fused: fused.into(),
        }
    }

    /// Writes the delta form, with the first configuration as the base.
    #[must_use]
    pub fn to_delta(&self) -> DeltaFusionConfigs {
        let base = self.row(0).to_vec();
        let mut message = DeltaFusionConfigs {
            base: base.clone().into(),
            ..DeltaFusionConfigs::default()
        };
        for config in 0..self.len() {
            let before = message.change_slots.len();
            let changed = self.changed_slots(config, &base);
            message.change_slots.extend(changed.map(to_u32));
            let count = message.change_slots.len() - before;
            message.change_counts.push(to_u32(count));
        }
        message
    }

    /// Number of bits of all configurations that differ from those of the first.
    pub(super) fn changes(&self) -> usize {
        let bits = |(one, other): (&u8, &u8)| (one ^ other).count_ones() as usize;
        (0..self.len())
            .flat_map(|config| self.row(config).iter().zip(self.row(0)))
            .map(bits)
            .sum()
    }

    fn changed_slots(&self, config: usize, base: &[u8]) -> impl Iterator<Item = usize> {
        (0..self.slots()).filter(move |&slot| self.is_fused(config, slot) != is_set(base, slot))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::Limits;

    fn batches() -> impl Strategy<Value = (FusionBatch, Vec<u32>)> {
        (1_usize..20, 1_usize..9).prop_flat_map(|(slots, configs)| {
            let nodes = (0..).step_by(3).take(slots).collect::<Vec<u32>>();
            let batch = vec(vec(any::<bool>(), slots), configs);
            let made = move |configs: Vec<_>| {
                FusionBatch::from_bits(slots, &configs, &Limits::default()).unwrap()
            };
            (batch.prop_map(made), Just(nodes))
        })
    }

    proptest! {
        #[test]
        fn every_form_gives_the_batch_back((batch, nodes) in batches()) {
            let limits = Limits::default();
            let readable = batch.to_readable(&nodes);
            prop_assert_eq!(&FusionBatch::from_readable(&readable, &nodes, &limits).unwrap(), &batch);
            let packed = batch.to_packed();
            prop_assert_eq!(&FusionBatch::from_packed(&packed, batch.slots(), &limits).unwrap(), &batch);
            let delta = batch.to_delta();
            prop_assert_eq!(delta.change_slots.len(), batch.changes());
            prop_assert_eq!(&FusionBatch::from_delta(&delta, batch.slots(), &limits).unwrap(), &batch);
        }
    }
}
