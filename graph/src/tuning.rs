//! `TpuGraphs`' files of measured configurations as protobuf: `TuningData` and `ModuleTuningData` (spec §1.1).

use hlorank_proto::tpu_graphs::{
    ConfigProfile, HloOpConfig, config_profile::Config, layout_config::NodeLayoutConfig,
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
        for field in Fields::new(bytes) {
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
        let slots = self.configurable.len();
        match self.task() {
            Task::Tile => {
                let mut batch = TileBatch::default();
                // The reference counts a tile only from 2 ns.
                let measured = self.measured(2, |_, config| {
                    let Config::OpConfig(HloOpConfig {
                        tile_size_config: Some(tile),
                    }) = config
                    else {
                        return Ok(false);
                    };
                    batch.push((&tile).into(), limits).map(|()| true)
                })?;
                let batch = || Ok(batch.into());
                let mut measurements = self.measurements_of(measured, batch)?;
                // The reference divides each time by that of the default of its kernel, which makes
                // times of different kernels comparable.
                if let Some(measurements) = &mut measurements {
                    let run_times = &measurements.run_times;
                    let default = measurements.default.map(|default| run_times[default]);
                    measurements.normalizers = default.map(|time| vec![time; run_times.len()]);
                }
                Ok(measurements)
            }
            Task::Fusion => {
                let mut fused = Vec::new();
                let measured = self.measured(1, |_, config| {
                    if let Config::ModuleConfig(config) = config
                        && let Some(bits) = config.fusion_config.map(|config| config.fused)
                        && bits.len() == row_bytes(slots)
                    {
                        fused.extend_from_slice(&bits);
                        return Ok(true);
                    }
                    Ok(false)
                })?;
                let configs = measured.numbers.len();
                let batch = || Ok(FusionBatch::new(configs, slots, fused, limits)?.into());
                self.measurements_of(measured, batch)
            }
            // `task` tells no other kind: its files are npz.
            _ => {
                let mut builder = LayoutBatchBuilder::new(slots, *limits);
                let measured = self.measured(1, |number, config| {
                    let Config::ModuleConfig(config) = config else {
                        return Ok(false);
                    };
                    let nodes = config.layout_config.map(|config| config.nodes);
                    let Some(nodes) = nodes.filter(|nodes| nodes.len() == slots) else {
                        return Ok(false);
                    };
                    let entry = |(slot, node): (usize, &NodeLayoutConfig)| {
                        // A layout has six features per tensor, so further dimensions are dropped.
                        let tensors = node.tensors.iter();
                        let tensors = tensors.map(|one| &one.dims[..one.dims.len().min(6)]);
                        let what = || format!("run {number}, slot {slot}");
                        LayoutEntry::from_tensors_of(tensors, what)
                    };
                    let entries = nodes.iter().enumerate().map(entry);
                    let entries: Vec<LayoutEntry> = entries.collect::<Result<_, _>>()?;
                    builder.push(&entries).map(|()| true)
                })?;
                self.measurements_of(measured, || Ok(builder.build()?.into()))
            }
        }
    }

    /// Reads the runs that succeeded and took at least `least` nanoseconds. `push` takes the number and the configuration of a
    /// run, and returns whether it fits the graph.
    fn measured(
        &self,
        least: i64,
        mut push: impl FnMut(usize, Config) -> Result<bool, ConfigurationError>,
    ) -> Result<MeasuredRuns, ConfigurationError> {
        let mut measured = MeasuredRuns::default();
        for (number, run) in self.runs.iter().enumerate() {
            let run = ConfigProfile::decode(*run).ok().filter(|run| !run.error);
            let Some(ConfigProfile {
                config: Some(config),
                profile: Some(profile),
                is_default,
                ..
            }) = run
            else {
                continue;
            };
            let time = profile.compute_time_ns;
            if time < least || !push(number, config)? {
                continue;
            }
            if is_default {
                // Several runs may be marked; the first one is the default.
                measured.default.get_or_insert(measured.run_times.len());
            }
            measured.numbers.push(number);
            measured.run_times.push(time);
        }
        Ok(measured)
    }

    /// Returns the measurements of runs whose batch `batch` makes; `None` if there are no runs.
    fn measurements_of(
        &self,
        measured: MeasuredRuns,
        batch: impl FnOnce() -> Result<Configurations, ConfigurationError>,
    ) -> Result<Option<Measurements>, ConfigurationError> {
        let MeasuredRuns {
            numbers,
            run_times,
            default,
        } = measured;
        if run_times.is_empty() {
            return Ok(None);
        }
        Ok(Some(Measurements {
            configurations: batch()?,
            numbers,
            skipped: self.runs.len() - run_times.len(),
            run_times,
            normalizers: None,
            default,
        }))
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

/// The runs that were measured and fit the graph.
#[derive(Default)]
struct MeasuredRuns {
    numbers: Vec<usize>,
    run_times: Vec<i64>,
    default: Option<usize>,
}
