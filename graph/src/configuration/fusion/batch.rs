use crate::{
    ConfigurationError, Limits,
    configuration::checks::{check_count, check_size},
    program::{flip, is_set, row_bytes},
};

/// Fusion configurations of one program, a bit per slot.
#[derive(Clone, Debug, PartialEq)]
pub struct FusionBatch {
    configs: usize,
    slots: usize,
    /// `[configs, ceil(slots / 8)]`, bit i of a row counted from the lowest bit of its first byte. Bits behind the last slot
    /// are 0, so that equal configurations have equal bytes.
    fused: Vec<u8>,
}

impl FusionBatch {
    /// Makes a batch of `[configs, ceil(slots / 8)]` bytes of bits, set where a slot is fused.
    pub fn new(
        configs: usize,
        slots: usize,
        fused: Vec<u8>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        check_size(configs, slots, limits)?;
        let expected = configs * row_bytes(slots);
        check_count("the matrix of bits (in bytes)", fused.len(), expected)?;
        let batch = Self {
            configs,
            slots,
            fused,
        };
        // Bits behind the last slot would make equal configurations differ in bytes, and so be
        // evaluated twice.
        match (0..configs).find(|&config| batch.has_unused_bits(config)) {
            Some(config) => Err(ConfigurationError::UnusedBits { config, slots }),
            None => Ok(batch),
        }
    }

    /// Makes a batch of `[configs, slots]` bits, set where a slot is fused.
    pub fn from_bits(
        slots: usize,
        configs: &[Vec<bool>],
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        let mut fused = vec![0; configs.len() * row_bytes(slots)];
        // Without slots there are no bytes, and the length of a chunk must not be 0.
        for (row, bits) in fused.chunks_exact_mut(row_bytes(slots).max(1)).zip(configs) {
            (0..slots)
                .filter(|&slot| bits[slot])
                .for_each(|slot| flip(row, slot));
        }
        Self::new(configs.len(), slots, fused, limits)
    }

    /// Number of configurations; at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a batch has at least one configuration"
    )]
    pub fn len(&self) -> usize {
        self.configs
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The bits of a configuration.
    pub fn row(&self, config: usize) -> &[u8] {
        let bytes = row_bytes(self.slots);
        &self.fused[config * bytes..][..bytes]
    }

    /// Whether a configuration fuses a slot.
    pub fn is_fused(&self, config: usize, slot: usize) -> bool {
        is_set(self.row(config), slot)
    }

    /// The slots that a configuration fuses, ascending.
    pub fn fused_slots(&self, config: usize) -> impl Iterator<Item = usize> {
        (0..self.slots).filter(move |&slot| self.is_fused(config, slot))
    }

    /// Copies the configurations of these numbers, which must be below the length.
    #[must_use]
    pub fn select(&self, numbers: &[usize]) -> Self {
        let fused = numbers
            .iter()
            .flat_map(|&config| self.row(config))
            .copied()
            .collect();
        Self {
            configs: numbers.len(),
            slots: self.slots,
            fused,
        }
    }

    fn has_unused_bits(&self, config: usize) -> bool {
        let used = self.slots % 8;
        used > 0 && self.row(config).last().is_some_and(|last| last >> used > 0)
    }
}
