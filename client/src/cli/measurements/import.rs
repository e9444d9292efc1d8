use std::{
    fmt::{self, Display, Formatter},
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use hlorank_client::Client;
use hlorank_graph::{FileError, GraphFile, Task, read_exported};
use serde::Serialize;

use super::report::Report;
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
    /// tokens; otherwise the scope `report` is enough.
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

impl Import {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let files = self.files()?;
        let mut report = ImportReport::default();
        let progress = Progress::over(files.len());
        for file in &files {
            progress.show_file(file);
            self.import(&client, file, &mut report).await?;
            progress.advance();
        }
        Ok(format.print(&report)?)
    }

    fn files(&self) -> Result<Vec<PathBuf>, FileError> {
        let mut files = Vec::new();
        for path in &self.paths {
            find(path, &mut files).map_err(|source| FileError::Io {
                path: path.display().to_string(),
                source,
            })?;
        }
        Ok(files)
    }

    async fn import(
        &self,
        client: &Client,
        file: &Path,
        report: &mut ImportReport,
    ) -> Result<(), CommandError> {
        for Report { graph, parts } in self.read(file)? {
            report.graphs += 1;
            for part in &parts {
                let reporter = if self.as_own { "" } else { &part.reporter };
                let answer = client
                    .report_measurements_of(reporter, &graph, &part.measurements)
                    .await
                    .map_err(|source| CommandError::graph(file, 0, source))?;
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
        // An npz file is a zip archive. Those of TpuGraphs begin with `PK` as well, but have no
        // exported measurements.
        if bytes.starts_with(b"PK")
            && let Some(exported) = read_exported(file, bytes.clone())?
        {
            return Ok(vec![Report::decode(path, &exported)?]);
        }
        let target = self.target.as_deref();
        let target = target.ok_or(CommandError::NoTarget { path })?;
        let graphs = GraphFile::of(file, bytes, Task::Layout, &FILE_LIMITS)?.graphs;
        let report = |measured| Report::of_measured(measured, target);
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
        let [accepted, known] =
            [self.accepted, self.known].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let accepted = counted(accepted, "measurement");
        let graphs = counted(self.graphs, "graph");
        writeln!(
            formatter,
            "{accepted} of {graphs} are new; {known} were known."
        )
    }
}
