//! Fusions behind the interface of configuration kinds.

use hlorank_proto::v1::config_batch::Configs;

use super::{
    FusionBatch, canonical,
    describe::describe,
    encoded::{DELTA_FUSIONS, PACKED_FUSIONS, READABLE_FUSIONS},
    rows::FusionRows,
};
use crate::{
    ConfigurationError, Graph, Limits, SegmentedGraph, Task,
    configuration::{
        Batch, ConfigInput, ConfigValues, Distinct, Form, RowFinder, encoded_form::EncodedForm,
        feature_rows::FeatureRows, read_batch::ReadBatch,
    },
};

/// Maximum number of bytes of a change in the delta form, for programs of at most 16,384 slots.
const CHANGE_BYTES: usize = 2;

impl Batch for FusionBatch {
    fn task(&self) -> Task {
        Task::Fusion
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn check(&self, _: &Graph) -> Result<(), ConfigurationError> {
        Ok(())
    }

    fn distinct(&self) -> Distinct {
        Distinct::of(self.len(), |config| self.row(config))
    }

    /// A model of kernels takes no configurations, so this is what tells them apart: a value per slot, 1 if it is fused.
    fn input(&self, configs: &[usize]) -> ConfigInput {
        let bits =
            |&config| (0..self.slots()).map(move |slot| f32::from(self.is_fused(config, slot)));
        let values = configs.iter().flat_map(bits).collect();
        ConfigInput {
            shape: vec![configs.len(), self.slots()],
            values: ConfigValues::Float32(values),
        }
    }

    fn feature_row(&self, config: usize) -> Vec<f32> {
        self.row(config).iter().copied().map(f32::from).collect()
    }

    fn to_forms(&self, configurable: &[u32]) -> Vec<Configs> {
        vec![
            Configs::FusionConfigs(self.to_readable(configurable)),
            Configs::PackedFusionConfigs(self.to_packed()),
            Configs::DeltaFusionConfigs(self.to_delta()),
        ]
    }

    /// The delta form if there are few changes, as in a step of a search, else the packed form.
    fn to_smallest_form(&self) -> Configs {
        // The delta form takes the changes of a configuration and their count, of one byte if it is
        // below 128. The packed form takes the bytes of its bits.
        if self.changes() * CHANGE_BYTES + self.len() < self.len() * self.row(0).len() {
            Configs::DeltaFusionConfigs(self.to_delta())
        } else {
            Configs::PackedFusionConfigs(self.to_packed())
        }
    }

    fn canonical(&self, config: usize) -> Vec<u8> {
        canonical::write(self, config)
    }

    fn describe(&self, config: usize, configurable: &[u32]) -> String {
        describe(self, config, configurable)
    }

    fn into_rows(self: Box<Self>, _: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(FusionRows::new(*self))
    }
}

impl ReadBatch for FusionBatch {
    const FORMS: &'static [EncodedForm<Self>] = &[READABLE_FUSIONS, PACKED_FUSIONS, DELTA_FUSIONS];

    fn form(configs: &Configs) -> Option<&dyn Form> {
        match configs {
            Configs::FusionConfigs(message) => Some(message),
            Configs::PackedFusionConfigs(message) => Some(message),
            Configs::DeltaFusionConfigs(message) => Some(message),
            _ => None,
        }
    }

    fn feature_rows(slots: usize, limits: Limits) -> Box<dyn FeatureRows<Self>> {
        Box::new(FusionFeatureRows {
            slots,
            configs: 0,
            fused: Vec::new(),
            limits,
        })
    }

    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        canonical::read(configs, limits)
    }
}

/// Reads fusions from an npz file: the bytes of the bits of each configuration.
struct FusionFeatureRows {
    slots: usize,
    configs: usize,
    fused: Vec<u8>,
    limits: Limits,
}

impl FeatureRows<FusionBatch> for FusionFeatureRows {
    fn push(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
        for &value in row {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be the same"
            )]
            let byte = value as u8;
            if f32::from(byte) != value {
                let what = format!("the bits of configuration {}", self.configs);
                return Err(ConfigurationError::NotWhole { what });
            }
            self.fused.push(byte);
        }
        self.configs += 1;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<FusionBatch, ConfigurationError> {
        FusionBatch::new(self.configs, self.slots, self.fused, &self.limits)
    }
}
