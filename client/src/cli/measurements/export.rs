use std::{
    fmt::{self, Display, Formatter},
    fs, mem,
    path::{Path, PathBuf},
};

use clap::Args;
use hlorank_client::{Client, MeasurementsOf, v1::GraphMeasurements};
use hlorank_graph::Digest;
use serde::Serialize;

use super::{
    exported_file::ExportedFile,
    list::{graph_of, of_target},
};
use crate::cli::{
    error::CommandError,
    output::{Align, Format, Table, counted, grouped},
    server::Server,
};

/// Which measurements to write, and where.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder to write to
    ///
    /// It gets TARGET/TASK/HASH.npz for each graph on each target. `training train TASK --data FOLDER/TARGET/TASK` reads
    /// them, `hlorank eval` and `hlorank measurements import` too.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Write only measurements of this target
    ///
    /// By default, those of all targets.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    target: String,
    #[command(flatten)]
    server: Server,
}

/// What was written.
#[derive(Debug, Default, Serialize)]
struct ExportReport {
    files: Vec<FileReport>,
}

#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    target: String,
    task: String,
    graph: String,
    measurements: usize,
    trainable: bool,
}

/// The graph of some measurements, on a target.
#[derive(PartialEq)]
struct Subject {
    target: String,
    graph: Digest,
}

/// Writes measurements as they come from the server.
struct Exporter<'a> {
    client: Client,
    folder: &'a Path,
    /// What `parts` are about; `None` before the first.
    subject: Option<Subject>,
    parts: Vec<GraphMeasurements>,
    report: ExportReport,
}

impl Export {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let mut exporter = Exporter {
            client: self.server.connect().await?,
            folder: &self.out,
            subject: None,
            parts: Vec::new(),
            report: ExportReport::default(),
        };
        exporter.export(of_target(&self.target)).await?;
        Ok(format.print(&exporter.report)?)
    }
}

impl Exporter<'_> {
    async fn export(&mut self, measurements: MeasurementsOf<'_>) -> Result<(), CommandError> {
        let mut after = Vec::new();
        loop {
            let page = self.client.list_measurements(measurements, &after).await?;
            for part in page.graphs {
                self.add(part).await?;
            }
            after = page.next;
            if after.is_empty() {
                return self.write().await;
            }
        }
    }

    // The server lists by target and graph, and a graph may continue on the next page. Its file is
    // complete when another graph begins, so the measurements of one graph are in memory at a time.
    async fn add(&mut self, part: GraphMeasurements) -> Result<(), CommandError> {
        let subject = Subject {
            target: part.target.clone(),
            graph: graph_of(&part),
        };
        if self.subject.as_ref() != Some(&subject) {
            self.write().await?;
            self.subject = Some(subject);
        }
        self.parts.push(part);
        Ok(())
    }

    /// Writes the file of the current graph, if there is one.
    async fn write(&mut self) -> Result<(), CommandError> {
        let Some(Subject {
            target,
            graph: hash,
        }) = self.subject.take()
        else {
            return Ok(());
        };
        let graph = self.client.measured_graph(&target, hash).await?;
        let file = ExportedFile::new(hash, graph, mem::take(&mut self.parts))?;
        let path = self.folder.join(file.path());
        create_folder_of(&path)?;
        self.report.files.push(FileReport {
            path: path.display().to_string(),
            target,
            task: file.task().to_string(),
            graph: file.hash().to_string(),
            measurements: file.measurements(),
            trainable: file.is_trainable(),
        });
        file.write(&path)
    }
}

fn create_folder_of(path: &Path) -> Result<(), CommandError> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.map_err(|source| CommandError::WrittenFile {
        path: path.display().to_string(),
        source,
    })
}

const COLUMNS: [(&str, Align); 4] = [
    ("file", Align::Left),
    ("target", Align::Left),
    ("measurements", Align::Right),
    ("for training", Align::Left),
];

impl Display for ExportReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.files.is_empty() {
            return writeln!(formatter, "The server keeps no such measurements.");
        }
        let mut table = Table::new(&COLUMNS);
        self.files.iter().for_each(|file| table.row(file.cells()));
        let all = self.files.iter().map(|file| file.measurements).sum();
        let measurements = counted(all, "measurement");
        let files = counted(self.files.len(), "file");
        write!(formatter, "{table}\n{measurements} in {files}.")
    }
}

impl FileReport {
    fn cells(&self) -> [String; COLUMNS.len()] {
        let trainable = if self.trainable { "yes" } else { "no" };
        [
            self.path.clone(),
            self.target.clone(),
            grouped(self.measurements),
            trainable.to_owned(),
        ]
    }
}
