use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use hlorank_client::{
    Adapt, Client, GraphHandle, Measured,
    v1::{self, ConfigBatch, ExportedMeasurements, GraphMeasurements},
};
use hlorank_graph::{
    ConfigurationError, EncodedBatch, FileError, GraphFile, MeasuredGraph, Task, read_exported,
};
use prost::Message as _;
use serde::Serialize;

use crate::cli::{
    error::CommandError,
    input::FILE_LIMITS,
    output::{Format, counted},
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
    /// By default, those of exported files keep the names of their reporters, which needs the scope `admin` if the server has
    /// tokens.
    #[arg(long)]
    as_own: bool,
    #[command(flatten)]
    server: Server,
}

/// What came of the reports.
#[derive(Debug, Default, Serialize)]
struct ImportReport {
    graphs: usize,
    accepted: u64,
    known: u64,
}

/// Measurements of one graph, ready to be reported.
struct Report {
    graph: GraphHandle,
    parts: Vec<Part>,
}

/// Measurements of one reporter.
struct Part {
    /// Empty for the client itself.
    reporter: String,
    measurements: Adapt,
}

/// Maximum number of measurements of one call.
const MAX_MEASUREMENTS: usize = 10_000;

impl Import {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let mut files = Vec::new();
        for path in &self.paths {
            find(path, &mut files).map_err(|source| {
                let path = path.display().to_string();
                CommandError::File(FileError::Io { path, source })
            })?;
        }
        let (mut report, progress) = (ImportReport::default(), Progress::over(files.len()));
        for file in &files {
            progress.show_file(file);
            self.import(&client, file, &mut report).await?;
            progress.advance();
        }
        Ok(format.print(&report)?)
    }

    async fn import(
        &self,
        client: &Client,
        file: &Path,
        report: &mut ImportReport,
    ) -> Result<(), CommandError> {
        for Report { graph, parts } in self.read(file)? {
            report.graphs += 1;
            for Part {
                reporter,
                measurements,
            } in &parts
            {
                let reporter = if self.as_own { "" } else { reporter };
                let answer = client
                    .report_measurements_of(reporter, &graph, measurements)
                    .await;
                let answer = answer.map_err(|source| CommandError::graph(file, 0, source))?;
                report.accepted += u64::from(answer.accepted);
                report.known += u64::from(answer.known);
            }
        }
        Ok(())
    }

    fn read(&self, file: &Path) -> Result<Vec<Report>, CommandError> {
        let path = file.display().to_string();
        let bytes = fs::read(file).map_err(|source| FileError::Io {
            path: path.clone(),
            source,
        })?;
        if bytes.starts_with(b"PK")
            && let Some(exported) = read_exported(file, bytes.clone())?
        {
            let exported = ExportedMeasurements::decode(&*exported);
            let exported = exported.map_err(|source| CommandError::Exported {
                path: path.clone(),
                source,
            })?;
            let report = Report::of(exported).map_err(|source| FileError::Configuration {
                path: path.clone(),
                module: 0,
                source,
            })?;
            return Ok(vec![report.ok_or(CommandError::NoGraph { path })?]);
        }
        let target = self.target.as_deref();
        let target = target.ok_or(CommandError::NoTarget { path })?;
        let graphs = GraphFile::of(file, bytes, Task::Layout, &FILE_LIMITS)?.graphs;
        let reports = graphs
            .iter()
            .filter_map(|measured| Report::of_measured(measured, target));
        Ok(reports.collect())
    }
}

/// Lists the files of a folder, or a file, by name.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut inner = fs::read_dir(path)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    inner.sort();
    let is_measured = |path: &PathBuf| {
        path.is_dir()
            || path
                .extension()
                .is_some_and(|ending| ending == "npz" || ending == "pb")
    };
    inner
        .iter()
        .filter(|path| is_measured(path))
        .try_for_each(|path| find(path, files))
}

impl Report {
    /// Returns nothing if there is no graph.
    fn of(exported: ExportedMeasurements) -> Result<Option<Self>, ConfigurationError> {
        let Some(message) = exported.graph else {
            return Ok(None);
        };
        let slots = message.configurable_nodes.clone();
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
    fn of_measured(measured: &MeasuredGraph, target: &str) -> Option<Self> {
        let measurements = measured.measurements.as_ref()?;
        let times = &measurements.run_times;
        let numbers: Vec<usize> = (0..times.len())
            .filter(|&config| times[config] > 0)
            .collect();
        let parts = numbers.chunks(MAX_MEASUREMENTS).map(|some| {
            #[expect(
                clippy::cast_precision_loss,
                reason = "nanoseconds stay far below 2^53"
            )]
            let time = |&config: &usize| Measured::Time {
                seconds: times[config] as f64 * 1e-9,
                repeats: 1,
            };
            let outcomes: Vec<Measured> = some.iter().map(time).collect();
            let measurements =
                Adapt::new(target).measured(&measurements.configurations.select(some), &outcomes);
            Part {
                reporter: String::new(),
                measurements,
            }
        });
        Some(Self {
            graph: GraphHandle::of(measured),
            parts: parts.collect(),
        })
    }
}

impl Part {
    /// Splits measurements by their reporters.
    fn by_reporter(of: GraphMeasurements, slots: &[u32]) -> Result<Vec<Self>, ConfigurationError> {
        let mut reporters = BTreeMap::<&str, Vec<usize>>::new();
        for (number, reporter) in of.reporters.iter().enumerate() {
            reporters.entry(reporter).or_default().push(number);
        }
        if reporters.len() < 2 {
            return Ok(vec![Self::of_one(of)]);
        }
        let encoded = of.batch.clone().unwrap_or_default().encode_to_vec().into();
        let Some(encoded) = EncodedBatch::of(&encoded)? else {
            return Ok(Vec::new());
        };
        let configurations = encoded.read(encoded.task(), slots, &FILE_LIMITS)?;
        let part = |(reporter, numbers): (&str, Vec<usize>)| {
            let some = configurations.select(&numbers).to_smallest_form();
            Self::of_one(GraphMeasurements {
                target: of.target.clone(),
                batch: Some(ConfigBatch {
                    configs: Some(some),
                }),
                seconds: chosen(&of.seconds, &numbers),
                repeats: chosen(&of.repeats, &numbers),
                failures: chosen(&of.failures, &numbers),
                ids: chosen(&of.ids, &numbers),
                reporters: vec![reporter.to_owned()],
                ..GraphMeasurements::default()
            })
        };
        Ok(reporters.into_iter().map(part).collect())
    }

    /// The measurements of one reporter.
    fn of_one(of: GraphMeasurements) -> Self {
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

/// The values of some numbers. The server refuses lists that are too short.
fn chosen<T: Clone>(values: &[T], numbers: &[usize]) -> Vec<T> {
    numbers
        .iter()
        .filter_map(|&number| values.get(number).cloned())
        .collect()
}

impl Display for ImportReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let [accepted, known] =
            [self.accepted, self.known].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let (accepted, graphs) = (
            counted(accepted, "measurement"),
            counted(self.graphs, "graph"),
        );
        writeln!(
            formatter,
            "{accepted} of {graphs} are new; {known} were known."
        )
    }
}
