//! What is reported to a server: the measurements of one graph.

use std::collections::BTreeMap;

use hlorank_client::{
    Adapt, GraphHandle, Measured,
    v1::{self, ConfigBatch, ExportedMeasurements, GraphMeasurements},
};
use hlorank_graph::{ConfigurationError, Configurations, FileError, MeasuredGraph, Measurements};
use prost::Message as _;

use super::exported_file::read_configurations;
use crate::cli::error::CommandError;

/// Measurements of one graph, ready to be reported.
pub(super) struct Report {
    pub(super) graph: GraphHandle,
    pub(super) parts: Vec<Part>,
}

/// Measurements of one reporter.
pub(super) struct Part {
    /// Empty for the client itself.
    pub(super) reporter: String,
    pub(super) measurements: Adapt,
}

/// Maximum number of measurements of one call, which is the limit of the server.
const MAX_MEASUREMENTS: usize = 10_000;

impl Report {
    /// Reads the exported measurements of a file.
    pub(super) fn decode(path: String, exported: &[u8]) -> Result<Self, CommandError> {
        let exported = ExportedMeasurements::decode(exported);
        let exported = exported.map_err(|source| CommandError::Exported {
            path: path.clone(),
            source,
        })?;
        let report = Self::of(exported).map_err(|source| FileError::Configuration {
            path: path.clone(),
            module: 0,
            source,
        })?;
        report.ok_or(CommandError::NoGraph { path })
    }

    /// Returns nothing if there is no graph.
    fn of(exported: ExportedMeasurements) -> Result<Option<Self>, ConfigurationError> {
        let Some(message) = exported.graph else {
            return Ok(None);
        };
        let slots = message.configurable_nodes.clone();
        // A hash alone is no graph: the server that the file came from kept none.
        let Some(graph) = GraphHandle::of_message(message) else {
            return Ok(None);
        };
        let mut parts = Vec::new();
        for part in exported.measurements {
            parts.extend(Part::by_reporter(part, &slots)?);
        }
        Ok(Some(Self { graph, parts }))
    }

    /// A run time of 0 means not measured.
    pub(super) fn of_measured(measured: &MeasuredGraph, target: &str) -> Option<Self> {
        let measurements = measured.measurements.as_ref()?;
        let times = &measurements.run_times;
        let configs = (0..times.len()).filter(|&config| times[config] > 0);
        let configs: Vec<usize> = configs.collect();
        let part = |configs| Part::of_run_times(measurements, configs, target);
        Some(Self {
            graph: GraphHandle::of(measured),
            parts: configs.chunks(MAX_MEASUREMENTS).map(part).collect(),
        })
    }
}

impl Part {
    /// The run times of some configurations of a file, as measurements of the client itself.
    fn of_run_times(measurements: &Measurements, configs: &[usize], target: &str) -> Self {
        // The file does not say how many runs a time is the mean of. 1 gives it the least weight.
        #[expect(
            clippy::cast_precision_loss,
            reason = "nanoseconds stay far below 2^53"
        )]
        let time = |&config: &usize| Measured::Time {
            seconds: measurements.run_times[config] as f64 * 1e-9,
            repeats: 1,
        };
        let outcomes: Vec<Measured> = configs.iter().map(time).collect();
        let configurations = measurements.configurations.select(configs);
        Self {
            reporter: String::new(),
            measurements: Adapt::new(target).measured(&configurations, &outcomes),
        }
    }

    /// Splits measurements by their reporters.
    fn by_reporter(of: GraphMeasurements, slots: &[u32]) -> Result<Vec<Self>, ConfigurationError> {
        let reporters = numbers_by_reporter(&of.reporters);
        // The common case: the batch stays as it is, without being read.
        if reporters.len() < 2 {
            return Ok(vec![Self::of_one(of)]);
        }
        let Some(configurations) = read_configurations(&of, slots)? else {
            return Ok(Vec::new());
        };
        let part = |(reporter, numbers): (&str, Vec<usize>)| {
            Self::of_one(chosen(&of, &configurations, &numbers, reporter))
        };
        Ok(reporters.into_iter().map(part).collect())
    }

    /// The measurements of one reporter.
    fn of_one(of: GraphMeasurements) -> Self {
        // With its id, a measurement that the server has already is counted as known and not kept
        // twice.
        let adapt = v1::Adapt {
            target: of.target,
            batch: of.batch,
            seconds: of.seconds,
            repeats: of.repeats,
            failures: of.failures,
            ids: of.ids,
            ..v1::Adapt::default()
        };
        Self {
            reporter: of.reporters.into_iter().next().unwrap_or_default(),
            measurements: adapt.into(),
        }
    }
}

fn numbers_by_reporter(reporters: &[String]) -> BTreeMap<&str, Vec<usize>> {
    let mut numbers = BTreeMap::<&str, Vec<usize>>::new();
    for (number, reporter) in reporters.iter().enumerate() {
        numbers.entry(reporter).or_default().push(number);
    }
    numbers
}

/// Returns the measurements of these numbers, which are of one reporter.
fn chosen(
    of: &GraphMeasurements,
    all: &Configurations,
    numbers: &[usize],
    reporter: &str,
) -> GraphMeasurements {
    GraphMeasurements {
        target: of.target.clone(),
        batch: Some(ConfigBatch {
            configs: Some(all.select(numbers).to_smallest_form()),
        }),
        seconds: values(&of.seconds, numbers),
        repeats: values(&of.repeats, numbers),
        failures: values(&of.failures, numbers),
        ids: values(&of.ids, numbers),
        reporters: vec![reporter.to_owned()],
        ..GraphMeasurements::default()
    }
}

/// The values of some numbers.
fn values<T: Clone>(values: &[T], numbers: &[usize]) -> Vec<T> {
    // An empty list is valid and stays empty. The server refuses one that is too short.
    numbers
        .iter()
        .filter_map(|&number| values.get(number).cloned())
        .collect()
}
