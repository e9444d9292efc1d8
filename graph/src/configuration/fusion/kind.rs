//! Fusions behind the interface of configuration kinds.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use hlorank_proto::v1::config_batch::Configs;
use prost::encoding::encode_varint;

use super::batch::FusionBatch;
use crate::{
    ConfigurationError, Digest, Graph, Limits, Segment, SegmentedGraph, Task,
    configuration::{
        batch::{Batch, FeatureRows, ReadBatch, append_nodes, malformed, number},
        checks::to_u32,
        distinct::Distinct,
        rows::{
            ConfigInput, ConfigValues, FoundRows, LocalConfigurations, MAX_KERNELS, Row, RowFinder,
            SegmentFacts, TooManyRows, UnscoredConfig,
        },
    },
    fusion::KnownKernel,
};

impl Batch for FusionBatch {
    fn task(&self) -> Task {
        Task::Fusion
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn check(&self, _: &Graph) -> Result<(), ConfigurationError> {
        Ok(())
    }

    fn distinct(&self) -> Distinct {
        Distinct::new(self.len(), |config| self.row(config))
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

    fn to_smallest_form(&self) -> Configs {
        Configs::PackedFusionConfigs(self.to_packed())
    }

    fn canonical(&self, config: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        // The bytes of the bits alone do not say how many of them are slots.
        encode_varint(self.slots() as u64, &mut bytes);
        bytes.extend_from_slice(self.row(config));
        bytes
    }

    fn describe(&self, config: usize, configurable: &[u32]) -> String {
        let slots = configurable.iter().enumerate();
        let (fused, written): (Vec<_>, Vec<_>) =
            slots.partition(|(slot, _)| self.is_fused(config, *slot));
        let mut text = format!("{} of {} nodes fused", fused.len(), configurable.len());
        // If nearly all nodes are fused, the few that are not say more than the first of the others.
        let (named, nodes) = if written.len() < fused.len() {
            (", not ", written)
        } else {
            (": ", fused)
        };
        let nodes = nodes.into_iter().map(|(_, node)| node.to_string());
        append_nodes(&mut text, named, nodes);
        text
    }

    fn into_rows(self: Box<Self>, _: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(FusionRows {
            batch: *self,
            row_of_kernel: HashMap::default(),
            kernels: DistinctKernels::default(),
        })
    }
}

impl ReadBatch for FusionBatch {
    type Rows = FusionFeatureRows;

    fn feature_rows(slots: usize, limits: Limits) -> FusionFeatureRows {
        FusionFeatureRows {
            slots,
            configs: 0,
            fused: Vec::new(),
            limits,
        }
    }

    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        let mut slots = None;
        let mut count = 0;
        let mut fused = Vec::new();
        for mut config in configs {
            let found = number(&mut config)?;
            if *slots.get_or_insert(found) != found {
                return Err(malformed("fusions have different numbers of slots"));
            }
            count += 1;
            fused.extend_from_slice(config);
        }
        let slots = usize::try_from(slots.unwrap_or_default()).unwrap_or(usize::MAX);
        Self::new(count, slots, fused, limits)
    }
}

/// Reads fusions from an npz file: the bytes of the bits of each configuration.
pub(in crate::configuration) struct FusionFeatureRows {
    slots: usize,
    configs: usize,
    fused: Vec<u8>,
    limits: Limits,
}

impl FeatureRows<FusionBatch> for FusionFeatureRows {
    fn push_row(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
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

    fn finish(self) -> Result<FusionBatch, ConfigurationError> {
        FusionBatch::new(self.configs, self.slots, self.fused, &self.limits)
    }
}

/// Finds the rows of fusions: each distinct kernel is one, whichever configurations run it.
pub(super) struct FusionRows {
    batch: FusionBatch,
    row_of_kernel: HashMap<Digest, u32, RandomState>,
    kernels: DistinctKernels,
}

/// The kernel of each row.
#[derive(Default)]
struct DistinctKernels(Vec<Arc<KnownKernel>>);

impl RowFinder for FusionRows {
    fn find_next(
        &mut self,
        graph: &SegmentedGraph,
        found: &mut FoundRows,
    ) -> Result<(), TooManyRows> {
        let Some(config) = found.add_config(graph, |config| self.batch.row(config))? else {
            return Ok(());
        };
        // A kernel beyond a limit leaves its configuration without a score; the others of the batch
        // are scored.
        match graph.kernels(self.batch.row(config)) {
            Ok(kernels) => {
                for kernel in kernels {
                    // The digest is cryptographic and covers all that a model sees of a kernel, so
                    // kernels of one digest are one row.
                    let (rows, kernels) = (&mut found.rows, &mut self.kernels.0);
                    let row = self.row_of_kernel.entry(kernel.digest());
                    let row = row.or_insert_with(|| {
                        rows.push(Row {
                            segment: kernels.len(),
                            local: 0,
                        });
                        kernels.push(kernel);
                        to_u32(rows.len() - 1)
                    });
                    found.row_of.push(*row);
                }
            }
            Err(reason) => found.unscored.push(UnscoredConfig { config, reason }),
        }
        // One configuration adds at most as many kernels as the program has nodes, so checking
        // after each is early enough.
        if self.kernels.0.len() > MAX_KERNELS {
            Err(TooManyRows)
        } else {
            Ok(())
        }
    }

    fn finish(self: Box<Self>) -> Box<dyn LocalConfigurations> {
        Box::new(self.kernels)
    }
}

impl LocalConfigurations for DistinctKernels {
    fn facts(&self, row: Row, _: &SegmentedGraph) -> SegmentFacts {
        let kernel = &self.0[row.segment];
        SegmentFacts {
            digest: kernel.digest(),
            nodes: kernel.len(),
        }
    }

    fn segment<'a>(&'a self, row: Row, graph: &'a SegmentedGraph) -> Cow<'a, Segment> {
        Cow::Owned(self.0[row.segment].segment(&graph.whole))
    }

    /// The kernel is all there is.
    fn hash(&self, _: Row, _: &mut blake3::Hasher) {}

    fn write(&self, _: Row, _: &Segment, _: usize, _: &mut ConfigValues) {}

    fn bytes(&self) -> usize {
        self.0.iter().map(|kernel| kernel.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_list_of_nodes_is_shown_and_many_are_cut_short() {
        let bits = [
            vec![true, false, false],
            vec![true, true, false],
            vec![true; 3],
        ];
        let batch = FusionBatch::from_bits(3, &bits, &Limits::default()).unwrap();
        let text = |config| batch.describe(config, &[7, 8, 9]);
        assert_eq!(text(0), "1 of 3 nodes fused: 7");
        assert_eq!(text(1), "2 of 3 nodes fused, not 9");
        assert_eq!(text(2), "3 of 3 nodes fused");
        let nodes: Vec<u32> = (1000..1100).collect();
        let bits = (0..100).map(|slot| slot % 2 == 0).collect();
        let batch = FusionBatch::from_bits(100, &[bits], &Limits::default()).unwrap();
        let text = batch.describe(0, &nodes);
        assert!(text.ends_with(", …") && text.len() < 100, "{text}");
    }
}
