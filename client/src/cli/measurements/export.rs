use std::{
    fmt::{self, Display, Formatter},
    fs, mem,
    path::PathBuf,
};

use clap::Args;
use hlorank_client::{Client, MeasurementsOf, v1::GraphMeasurements};
use hlorank_graph::Digest;
use serde::Serialize;

use super::exported_file::ExportedFile;
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
type Subject = (String, Digest);

impl Export {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let (mut report, mut after) = (ExportReport::default(), Vec::new());
        let (mut parts, mut current) = (Vec::new(), None);
        loop {
            let page = client.list_measurements(self.chosen(), &after).await?;
            for part in page.graphs {
                let of = subject(&part);
                if current.as_ref() != Some(&of) {
                    self.write(
                        &client,
                        current.replace(of),
                        mem::take(&mut parts),
                        &mut report,
                    )
                    .await?;
                }
                parts.push(part);
            }
            after = page.next;
            if after.is_empty() {
                break;
            }
        }
        self.write(&client, current, parts, &mut report).await?;
        Ok(format.print(&report)?)
    }

    fn chosen(&self) -> MeasurementsOf<'_> {
        match self.target.as_str() {
            "" => MeasurementsOf::All,
            target => MeasurementsOf::Target(target),
        }
    }

    async fn write(
        &self,
        client: &Client,
        subject: Option<Subject>,
        parts: Vec<GraphMeasurements>,
        report: &mut ExportReport,
    ) -> Result<(), CommandError> {
        let Some((target, hash)) = subject else {
            return Ok(());
        };
        let graph = client.measured_graph(&target, hash).await?;
        let file = ExportedFile::new(hash, graph, parts)?;
        let path = self.out.join(file.path());
        let io_error = |source| CommandError::OutputFile {
            path: path.display().to_string(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(io_error)?;
        }
        report.files.push(FileReport {
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

fn subject(part: &GraphMeasurements) -> Subject {
    let hash = part
        .graph_hash
        .as_ref()
        .try_into()
        .map_or(Digest([0; 32]), Digest);
    (part.target.clone(), hash)
}

impl Display for ExportReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.files.is_empty() {
            return writeln!(formatter, "The server keeps no such measurements.");
        }
        let columns = [
            ("file", Align::Left),
            ("target", Align::Left),
            ("measurements", Align::Right),
            ("for training", Align::Left),
        ];
        let mut table = Table::new(&columns);
        for file in &self.files {
            let trainable = if file.trainable { "yes" } else { "no" }.to_owned();
            table.row([
                file.path.clone(),
                file.target.clone(),
                grouped(file.measurements),
                trainable,
            ]);
        }
        let measurements = self.files.iter().map(|file| file.measurements).sum();
        let (measurements, files) = (
            counted(measurements, "measurement"),
            counted(self.files.len(), "file"),
        );
        write!(formatter, "{table}\n{measurements} in {files}.")
    }
}
