//! Fusions behind the interface of configuration kinds.

use hlorank_proto::v1::{self, config_batch::Configs};

use super::{FusionBatch, describe::describe, rows::FusionRows};
use crate::{
    ConfigurationError, Graph, Limits, SegmentedGraph,
    configuration::{
        Batch, ConfigInput, ConfigValues, Configurations, Distinct, Element, FeatureRows, Kind,
        RowFinder, Scope, Task,
    },
};

pub(in crate::configuration) const KIND: Kind = Kind {
    name: "fusion",
    wire: v1::Task::Fusion,
    scope: Scope::Program,
    element: Element::Float32,
    width: 0,
    array: "fused",
    feature_rows: |slots, limits| {
        Box::new(FusionFeatureRows {
            slots,
            configs: 0,
            fused: Vec::new(),
            limits,
        })
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
        if self.changes() * CHANGE_BYTES + self.len() < self.len() * self.row(0).len() {
            Configs::DeltaFusionConfigs(self.to_delta())
        } else {
            Configs::PackedFusionConfigs(self.to_packed())
        }
    }

    fn describe(&self, config: usize, configurable: &[u32]) -> String {
        describe(self, config, configurable)
    }

    fn into_rows(self: Box<Self>, _: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(FusionRows::new(*self))
    }
}

/// Reads fusions from an npz file: the bytes of the bits of each configuration.
struct FusionFeatureRows {
    slots: usize,
    configs: usize,
    fused: Vec<u8>,
    limits: Limits,
}

impl FeatureRows for FusionFeatureRows {
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

    fn finish(self: Box<Self>) -> Result<Configurations, ConfigurationError> {
        FusionBatch::new(self.configs, self.slots, self.fused, &self.limits)
            .map(Configurations::Fusion)
    }
}
