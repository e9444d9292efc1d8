//! `TpuGraphs`' files of measured configurations as protobuf: `TuningData` and `ModuleTuningData` (spec §1.1).

use hlorank_proto::tpu_graphs::{
    ConfigProfile, HloModuleConfig, HloOpConfig, config_profile::Config,
    layout_config::NodeLayoutConfig,
};
use prost::{Message as _, encoding::decode_varint};

use crate::{
    ConfigurationError, Configurations, FusionBatch, GraphError, HloModule, LayoutBatchBuilder,
    LayoutEntry, Limits, Measurements, Task, TileBatch,
    program::row_bytes,
    wire::{Fields, Payload},
};

/// A `ModuleTuningData` whose runs are still serialized.
pub(crate) struct TuningModule<'a> {
    /// The serialized `HloModuleProto`.
    pub(crate) module: &'a [u8],
    configurable: Vec<u64>,
    runs: Vec<&'a [u8]>,
}

impl<'a> TuningModule<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, GraphError> {
        let mut tuning = Self {
            module: &[],
            configurable: Vec::new(),
            runs: Vec::new(),
        };
        for field in Fields::of(bytes) {
            match field.map_err(|error| malformed(&error))? {
                // The last value of a field that is not repeated counts, as protobuf defines it.
                (1, Payload::Bytes(module)) => tuning.module = module,
                (3, Payload::Bytes(run)) => tuning.runs.push(run),
                // A repeated number may be packed or not, whatever its declaration says.
                (4, Payload::Varint(node)) => tuning.configurable.push(node),
                (4, Payload::Bytes(nodes)) => tuning.configurable.extend(packed(nodes)?),
                _ => {}
            }
        }
        Ok(tuning)
    }

    /// The task of the file: files of layouts and fusions list configurable nodes, tile files do not. The first run tells
    /// layouts and fusions apart.
    pub(crate) fn task(&self) -> Task {
        let first = self
            .runs
            .first()
            .and_then(|run| ConfigProfile::decode(*run).ok());
        match first.and_then(|run| run.config) {
            // A kernel has no configurable nodes, so the guard comes before what its runs hold.
            _ if self.configurable.is_empty() => Task::Tile,
            Some(Config::ModuleConfig(config)) if config.fusion_config.is_some() => Task::Fusion,
            _ => Task::Layout,
        }
    }

    /// Node numbers in slot order.
    pub(crate) fn configurable(&self, module: &HloModule<'_>) -> Result<Vec<u32>, GraphError> {
        let nodes = module.len();
        let node = |&node: &u64| {
            u32::try_from(node).map_err(|_| GraphError::UnknownConfigurableNode { node, nodes })
        };
        self.configurable.iter().map(node).collect()
    }

    /// Reads the runs that succeeded; `None` if there are none.
    pub(crate) fn measurements(
        &self,
        limits: &Limits,
    ) -> Result<Option<Measurements>, ConfigurationError> {
        match self.task() {
            Task::Tile => self.tiles(limits),
            Task::Fusion => self.fusions(limits),
            // `task` tells no other kind: its files are npz.
            _ => self.layouts(limits),
        }
    }

    /// Reads the runs that succeeded and took at least `least` nanoseconds.
    fn runs(&self, least: i64) -> impl Iterator<Item = Run> {
        self.runs
            .iter()
            .enumerate()
            .filter_map(move |(number, run)| Run::read(number, run, least))
    }

    fn layouts(&self, limits: &Limits) -> Result<Option<Measurements>, ConfigurationError> {
        let slots = self.configurable.len();
        let mut builder = LayoutBatchBuilder::new(slots, *limits);
        let mut measured = Measured::default();
        for run in self.runs(1) {
            let Config::ModuleConfig(config) = &run.config else {
                continue;
            };
            let Some(entries) = layout_entries(run.number, config, slots) else {
                continue;
            };
            builder.push(&entries?)?;
            measured.push(&run);
        }
        if measured.run_times.is_empty() {
            return Ok(None);
        }
        Ok(Some(measured.finish(
            Configurations::Layout(builder.build()?),
            self.runs.len(),
        )))
    }

    fn fusions(&self, limits: &Limits) -> Result<Option<Measurements>, ConfigurationError> {
        let slots = self.configurable.len();
        let mut fused = Vec::new();
        let mut measured = Measured::default();
        for run in self.runs(1) {
            // Runs that do not fit the graph count as skipped.
            if let Config::ModuleConfig(config) = &run.config
                && let Some(bits) = config.fusion_config.as_ref().map(|config| &config.fused)
                && bits.len() == row_bytes(slots)
            {
                fused.extend_from_slice(bits);
                measured.push(&run);
            }
        }
        let configs = measured.run_times.len();
        if configs == 0 {
            return Ok(None);
        }
        let batch = FusionBatch::new(configs, slots, fused, limits)?;
        Ok(Some(
            measured.finish(Configurations::Fusion(batch), self.runs.len()),
        ))
    }

    fn tiles(&self, limits: &Limits) -> Result<Option<Measurements>, ConfigurationError> {
        let mut batch = TileBatch::default();
        let mut measured = Measured::default();
        // The reference counts a tile only from 2 ns.
        for run in self.runs(2) {
            let Config::OpConfig(HloOpConfig {
                tile_size_config: Some(tile),
            }) = &run.config
            else {
                continue;
            };
            batch.push(tile.into(), limits)?;
            measured.push(&run);
        }
        if measured.run_times.is_empty() {
            return Ok(None);
        }
        let mut measurements = measured.finish(Configurations::Tile(batch), self.runs.len());
        // The reference divides each time by that of the default of its kernel, which makes times
        // of different kernels comparable.
        let run_times = &measurements.run_times;
        let default = measurements.default.map(|default| run_times[default]);
        measurements.normalizers = default.map(|time| vec![time; run_times.len()]);
        Ok(Some(measurements))
    }
}

/// The error for tuning data around a module that cannot be read.
pub(crate) fn malformed(error: &impl ToString) -> GraphError {
    GraphError::Malformed {
        place: "the tuning data".to_owned(),
        detail: error.to_string(),
    }
}

fn packed(mut bytes: &[u8]) -> Result<Vec<u64>, GraphError> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        values.push(decode_varint(&mut bytes).map_err(|error| malformed(&error))?);
    }
    Ok(values)
}

/// A run that succeeded.
struct Run {
    number: usize,
    config: Config,
    time: i64,
    is_default: bool,
}

impl Run {
    /// Returns `None` for a run that failed, or that took less than `least` nanoseconds.
    fn read(number: usize, bytes: &[u8], least: i64) -> Option<Self> {
        let run = ConfigProfile::decode(bytes).ok().filter(|run| !run.error)?;
        let time = run
            .profile
            .map(|profile| profile.compute_time_ns)
            .filter(|time| *time >= least)?;
        Some(Self {
            number,
            config: run.config?,
            time,
            is_default: run.is_default,
        })
    }
}

/// Reads one entry per slot; `None` if the run lists another number of nodes.
fn layout_entries(
    run: usize,
    config: &HloModuleConfig,
    slots: usize,
) -> Option<Result<Vec<LayoutEntry>, ConfigurationError>> {
    let nodes = &config.layout_config.as_ref()?.nodes;
    let entry = |(slot, node): (usize, &NodeLayoutConfig)| {
        let tensors = node
            .tensors
            .iter()
            // A layout has six features per tensor, so further dimensions are dropped.
            .map(|tensor| &tensor.dims[..tensor.dims.len().min(6)]);
        LayoutEntry::from_tensors_of(tensors, || format!("run {run}, slot {slot}"))
    };
    (nodes.len() == slots).then(|| nodes.iter().enumerate().map(entry).collect())
}

#[derive(Default)]
struct Measured {
    numbers: Vec<usize>,
    run_times: Vec<i64>,
    default: Option<usize>,
}

impl Measured {
    fn push(&mut self, run: &Run) {
        if run.is_default {
            // Several runs may be marked; the first one is the default.
            self.default.get_or_insert(self.run_times.len());
        }
        self.numbers.push(run.number);
        self.run_times.push(run.time);
    }

    fn finish(self, configurations: Configurations, runs: usize) -> Measurements {
        Measurements {
            configurations,
            numbers: self.numbers,
            skipped: runs - self.run_times.len(),
            run_times: self.run_times,
            normalizers: None,
            default: self.default,
        }
    }
}
