//! `hlorank measurements import`: reports the measurements of files.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use hlorank_client::{
    Adapt, Client, GraphHandle, MeasuredOutcome, ReportDetails,
    v1::{self, ConfigBatch, ExportedMeasurements, GraphMeasurements},
};
use hlorank_graph::{
    Configurations, FileError, Graph, GraphFile, MeasuredGraph, Task, read_exported, read_input,
};
use prost::Message as _;
use serde::Serialize;

use super::export::read_configurations;
use crate::{
    configuration::FILE_LIMITS,
    error::CommandError,
    failure::Failure,
    output::{Format, counted, grouped},
    progress::Progress,
    server::Server,
};

/// Which measurements to report.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Files of `hlorank measurements export`, other files with run times, or folders of them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Target of files that name none
    ///
    /// Exported files have the names of their targets. Other files, such as those of TpuGraphs, have none.
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Report all of them as measurements of this client
    ///
    /// By default, those of exported files keep the names of their reporters and the times of their reports, which needs the
    /// scope `admin` if the server has tokens; otherwise the scope `report` is enough.
    #[arg(long)]
    as_own: bool,
    #[command(flatten)]
    server: Server,
}

/// What came of the reports.
#[derive(Debug, Default, Serialize)]
struct ImportReport {
    graphs: usize,
    accepted: usize,
    known: usize,
    failures: Vec<Failure>,
}

impl Import {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let mut files = Vec::new();
        for path in &self.paths {
            let found = find(path, &mut files);
            found.map_err(|error| CommandError::input(path.display(), error))?;
        }
        let mut report = ImportReport::default();
        let progress = Progress::over(files.len());
        let mut whole = 0;
        for file in &files {
            progress.show_file(file);
            // What was reported is kept, and known if the file is imported again.
            match self.report(&client, file, &mut report).await {
                Ok(()) => whole += 1,
                // The other files would have no answer either.
                Err(error) if error.is_no_answer() => return Err(error),
                Err(error) => {
                    let subject = file.display().to_string();
                    report.failures.push(Failure::new(subject, error));
                }
            }
            progress.advance();
        }
        if whole > 0 || report.failures.len() != 1 {
            format.print(&report)?;
        }
        Failure::check(report.failures, whole)
    }

    /// Reports the measurements of a file.
    async fn report(
        &self,
        client: &Client,
        file: &Path,
        report: &mut ImportReport,
    ) -> Result<(), CommandError> {
        for GraphImport { graph, parts } in self.read(file)? {
            report.graphs += 1;
            for part in &parts {
                let machine = part.details.machine.clone();
                let own = ReportDetails {
                    machine,
                    ..ReportDetails::default()
                };
                let details = if self.as_own { &own } else { &part.details };
                let answer = client
                    .report_measurements_with(details, &graph, &part.measurements)
                    .await?;
                report.accepted += answer.accepted as usize;
                report.known += answer.known as usize;
            }
        }
        Ok(())
    }

    fn read(&self, file: &Path) -> Result<Vec<GraphImport>, CommandError> {
        let wrong = |problem: &dyn Display| CommandError::input(file.display(), problem);
        let bytes = read_input(file).map_err(|error| wrong(&error))?;
        // An npz file is a zip archive. Those of TpuGraphs begin with `PK` as well, but have no
        // exported measurements.
        if bytes.starts_with(b"PK")
            && let Some(exported) = read_exported(file, bytes.clone())?
        {
            return Ok(vec![GraphImport::decode(file, &exported)?]);
        }
        let target = self.target.as_deref();
        let target = target.ok_or_else(|| {
            wrong(&"names no target; pass --target with the hardware, compiler and flags that were measured")
        })?;
        let graphs = GraphFile::parse(file, bytes, Task::Layout, &FILE_LIMITS)?.graphs;
        let report = |measured| GraphImport::from_measured(measured, target);
        Ok(graphs.iter().filter_map(report).collect())
    }
}

/// Lists the files of a folder, or a file, by name.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut inner = entries.collect::<io::Result<Vec<_>>>()?;
    // A file system lists in any order, but the first file with an error should always be the same.
    inner.sort();
    // Exports may stand beside other files. A file that the user names is read whatever its ending.
    let is_measured = |path: &&PathBuf| {
        let ending = path.extension();
        path.is_dir() || ending.is_some_and(|ending| ending == "npz" || ending == "pb")
    };
    for path in inner.iter().filter(is_measured) {
        find(path, files)?;
    }
    Ok(())
}

impl Display for ImportReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let accepted = counted(self.accepted, "measurement");
        let known = grouped(self.known);
        let graphs = counted(self.graphs, "graph");
        writeln!(
            formatter,
            "{accepted} of {graphs} are new; {known} were known."
        )?;
        Failure::write_all(&self.failures, formatter)
    }
}

/// Measurements of one graph, ready to be reported.
struct GraphImport {
    graph: GraphHandle,
    parts: Vec<ImportPart>,
}

/// Measurements of one reporter and one machine.
struct ImportPart {
    details: ReportDetails,
    measurements: Adapt,
}

/// Maximum number of measurements of one call, which is the limit of the server.
const MAX_MEASUREMENTS: usize = 10_000;

impl GraphImport {
    /// Reads the exported measurements of a file.
    fn decode(file: &Path, exported: &[u8]) -> Result<Self, CommandError> {
        let wrong = |problem: &dyn Display| CommandError::input(file.display(), problem);
        let exported = ExportedMeasurements::decode(exported).map_err(|error| {
            wrong(&format_args!(
                "its exported measurements cannot be read: {error}"
            ))
        })?;
        let message = exported.graph.unwrap_or_default();
        let task = Task::from_wire(message.task()).unwrap_or(Task::Layout);
        let unreadable = |source| FileError::Configuration {
            path: file.display().to_string(),
            module: 0,
            source,
        };
        // A hash alone is no graph: the server that the file came from kept none.
        let Some(graph) = GraphHandle::of_message(message.clone()) else {
            return Err(wrong(
                &"has no graph, because the server that it came from kept none; report these measurements with their graph",
            ));
        };
        let mut parts = Vec::new();
        for part in exported.measurements {
            // The common case: the batch stays as it is, and neither it nor the graph is read.
            if are_equal(&part.reporters) && are_equal(&part.machines) {
                parts.push(ImportPart::from_one(part));
                continue;
            }
            let graph = Graph::of_message(&message, task, &FILE_LIMITS);
            let graph = graph.map_err(|source| FileError::Graph {
                path: file.display().to_string(),
                module: 0,
                source,
            })?;
            let configurations = read_configurations(&part, &graph).map_err(unreadable)?;
            parts.extend(ImportPart::by_origin(&part, &configurations));
        }
        Ok(Self { graph, parts })
    }

    /// Takes the run times of a file as measurements of the client itself; `None` if there are none.
    fn from_measured(measured: &MeasuredGraph, target: &str) -> Option<Self> {
        let measurements = measured.measurements.as_ref()?;
        let times = &measurements.run_times;
        // A run time of 0 means not measured.
        let configs = (0..times.len()).filter(|&config| times[config] > 0);
        let configs: Vec<usize> = configs.collect();
        // The file does not say how many runs a time is the mean of. 1 gives it the least weight.
        #[expect(
            clippy::cast_precision_loss,
            reason = "nanoseconds stay far below 2^53"
        )]
        let time = |&config: &usize| MeasuredOutcome::Time {
            seconds: times[config] as f64 * 1e-9,
            repeats: 1,
        };
        let part = |configs: &[usize]| {
            let outcomes: Vec<MeasuredOutcome> = configs.iter().map(time).collect();
            let configurations = measurements.configurations.select(configs);
            ImportPart {
                details: ReportDetails::default(),
                measurements: Adapt::new(target).measured(&configurations, &outcomes),
            }
        };
        Some(Self {
            graph: GraphHandle::from_measured(measured),
            parts: configs.chunks(MAX_MEASUREMENTS).map(part).collect(),
        })
    }
}

impl ImportPart {
    /// Splits measurements by their reporters and machines.
    fn by_origin(of: &GraphMeasurements, all: &Configurations) -> Vec<Self> {
        let mut numbers = BTreeMap::<[&str; 2], Vec<usize>>::new();
        for number in 0..of.seconds.len() {
            let origin = [
                name_of(&of.reporters, number),
                name_of(&of.machines, number),
            ];
            numbers.entry(origin).or_default().push(number);
        }
        let part = |([reporter, machine], numbers): ([&str; 2], Vec<usize>)| {
            let configs = all.select(&numbers).to_smallest_form();
            Self::from_one(GraphMeasurements {
                target: of.target.clone(),
                batch: Some(ConfigBatch {
                    configs: Some(configs),
                }),
                seconds: values(&of.seconds, &numbers),
                repeats: values(&of.repeats, &numbers),
                failures: values(&of.failures, &numbers),
                ids: values(&of.ids, &numbers),
                reporters: vec![reporter.to_owned()],
                machines: vec![machine.to_owned()],
                reported_at: values(&of.reported_at, &numbers),
                ..GraphMeasurements::default()
            })
        };
        numbers.into_iter().map(part).collect()
    }

    /// Takes the measurements of one reporter and one machine.
    fn from_one(of: GraphMeasurements) -> Self {
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
            details: ReportDetails {
                reporter: of.reporters.into_iter().next().unwrap_or_default(),
                reported_at: of.reported_at,
                machine: of.machines.into_iter().next().unwrap_or_default(),
                ..ReportDetails::default()
            },
            measurements: adapt.into(),
        }
    }
}

/// Returns a name. An older server sends no machines, and one before it no reporters.
fn name_of(names: &[String], number: usize) -> &str {
    names.get(number).map_or("", String::as_str)
}

fn are_equal(names: &[String]) -> bool {
    names.windows(2).all(|pair| pair[0] == pair[1])
}

/// Returns the values of some numbers.
fn values<T: Clone>(values: &[T], numbers: &[usize]) -> Vec<T> {
    // An empty list is valid and stays empty. The server refuses one that is too short.
    let chosen = numbers.iter().filter_map(|&number| values.get(number));
    chosen.cloned().collect()
}
