use std::{borrow::Cow, collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;

use super::FusionBatch;
use crate::{
    Digest, Segment, SegmentedGraph,
    configuration::{
        ConfigValues,
        count::to_u32,
        rows::{
            FoundRows, LocalConfigurations, MAX_KERNELS, Row, RowFinder, SegmentFacts, TooManyRows,
            Unscored,
        },
    },
    fusion::KnownKernel,
};

/// Finds the rows of fusions: each distinct kernel is one, whichever configurations run it.
pub(super) struct FusionRows {
    batch: FusionBatch,
    row_of_kernel: HashMap<Digest, u32, RandomState>,
    kernels: DistinctKernels,
}

/// The kernel of each row.
#[derive(Default)]
struct DistinctKernels(Vec<Arc<KnownKernel>>);

impl FusionRows {
    pub(super) fn new(batch: FusionBatch) -> Self {
        Self {
            batch,
            row_of_kernel: HashMap::default(),
            kernels: DistinctKernels::default(),
        }
    }

    fn row(&mut self, kernel: Arc<KnownKernel>, rows: &mut Vec<Row>) -> u32 {
        // The digest is cryptographic and covers all that a model sees of a kernel, so kernels of
        // one digest are one row.
        let kernels = &mut self.kernels.0;
        *self
            .row_of_kernel
            .entry(kernel.digest())
            .or_insert_with(|| {
                rows.push(Row {
                    segment: kernels.len(),
                    local: 0,
                });
                kernels.push(kernel);
                to_u32(rows.len() - 1)
            })
    }
}

impl RowFinder for FusionRows {
    fn configs(&self) -> usize {
        self.batch.len()
    }

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
                    let row = self.row(kernel, &mut found.rows);
                    found.row_of.push(row);
                }
            }
            Err(reason) => found.unscored.push(Unscored { config, reason }),
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
