//! The space of a table: its graph, its configurations, and what came of measuring them.

use std::{collections::BTreeMap, fs, path::PathBuf};

use clap::Args;
use hlorank_client::{Adapt, ClientError, GraphHandle, Measured};
use hlorank_graph::{Configurations, FeatureGraph, NodeFeatureBatch};
use serde_json::Value;

use super::{columns::Columns, table};
use crate::cli::{
    error::CommandError, input::FILE_LIMITS, server::Server, table_error::TableError,
};

const FILE_LONG: &str = r#"Table of configurations: CSV with a header, or a JSON list.

CSV has a column for each parameter, and the columns `seconds`, `failure` and `repeats` if rows were measured:
block_m,vectorize,seconds
16,true,0.0021
32,true,
JSON has the same as {"configuration": {"block_m": 16, "vectorize": true}, "seconds": 0.0021}.
Failures are `compile`, `crash`, `wrong_result` and `timeout`"#;

/// Maximum number of measurements of a report.
const REPORTED: usize = 10_000;

/// The arguments of every command about a table.
#[derive(Debug, Args)]
pub(super) struct SpaceFile {
    /// Table of configurations; `--help` has the form
    #[arg(value_name = "FILE", long_help = FILE_LONG)]
    file: PathBuf,
    /// Hardware, compiler and flags that are measured
    ///
    /// Times of different targets must not be in one table.
    #[arg(long, value_name = "NAME")]
    pub(super) target: String,
    /// Name of the space [default: that of the file]
    ///
    /// Tables of one space have the same parameters.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What is tuned, such as a problem size
    ///
    /// Only if it is one of several with these parameters. Instances share no measurements.
    #[arg(long, value_name = "NAME", default_value = "")]
    instance: String,
    #[command(flatten)]
    pub(super) server: Server,
}

/// The arguments that name other targets.
#[derive(Debug, Args)]
pub(super) struct Sources {
    /// Target whose kept measurements say what to expect; up to 16 times
    #[arg(long, value_name = "NAME")]
    other_target: Vec<String>,
    /// Use all other targets that have measurements of the space
    #[arg(long)]
    all_other_targets: bool,
}

/// The rows of a table.
pub(super) struct Rows {
    pub(super) name: String,
    pub(super) graph: GraphHandle,
    /// The configurations of the rows that were not measured.
    pub(super) unmeasured: Vec<Unmeasured>,
    columns: Columns,
    measured: Vec<(usize, Measured)>,
}

/// A row that was not measured.
pub(super) struct Unmeasured {
    /// Number of the row, from 0.
    pub(super) number: usize,
    /// The value of each parameter.
    pub(super) configuration: BTreeMap<String, Value>,
}

impl Sources {
    /// Lets the server learn also from what it keeps of the target, and of these other targets.
    fn add_to(&self, adapt: Adapt) -> Adapt {
        let adapt = adapt.use_stored().other_targets(&self.other_target);
        if self.all_other_targets {
            return adapt.all_other_targets();
        }
        adapt
    }
}

impl SpaceFile {
    /// Reads the table.
    pub(super) fn read(&self) -> Result<Rows, CommandError> {
        let text = fs::read_to_string(&self.file);
        let text = text.map_err(|source| CommandError::ConfigurationFile {
            path: self.file.display().to_string(),
            source,
        })?;
        self.rows(&text).map_err(|source| self.wrong(source))
    }

    /// Returns the rows without a time, and what the server learns from before it predicts them.
    pub(super) fn candidates_of(
        &self,
        rows: &Rows,
        sources: &Sources,
    ) -> Result<(Configurations, Adapt), CommandError> {
        let wrong = |source| self.wrong(source);
        let measured = rows.adapt(&self.target).map_err(wrong)?;
        let candidates = rows.candidates().map_err(wrong)?;
        Ok((candidates, sources.add_to(measured)))
    }

    /// Returns the error of a table that cannot be used.
    pub(super) fn wrong(&self, source: TableError) -> CommandError {
        CommandError::Table {
            path: self.file.display().to_string(),
            source,
        }
    }

    /// Returns the error of a call about the table.
    pub(super) fn failed(&self, source: ClientError) -> CommandError {
        CommandError::graph(&self.file, 0, source)
    }

    fn rows(&self, text: &str) -> Result<Rows, TableError> {
        let rows = table::read(text)?;
        let columns = Columns::of(&rows)?;
        let name = self.name();
        let graph = self.graph(&name, &columns)?;
        let mut unmeasured = Vec::new();
        let mut measured = Vec::new();
        for (number, row) in rows.into_iter().enumerate() {
            match row.measured {
                Some(outcome) => measured.push((number, outcome)),
                None => unmeasured.push(Unmeasured {
                    number,
                    configuration: row.configuration,
                }),
            }
        }
        Ok(Rows {
            name,
            graph: GraphHandle::feature_graph(&graph),
            unmeasured,
            columns,
            measured,
        })
    }
}

impl SpaceFile {
    fn name(&self) -> String {
        let stem = self.file.file_stem().unwrap_or_default();
        let name = self.name.clone();
        name.unwrap_or_else(|| stem.to_string_lossy().into_owned())
    }

    fn graph(&self, name: &str, columns: &Columns) -> Result<FeatureGraph, TableError> {
        // A flat space has no structure: it is one node without features, whose configuration
        // columns are the parameters. Its name, instance and parameters distinguish it from others.
        let graph = FeatureGraph::new(name.to_owned(), 1, Vec::new(), Vec::new(), &FILE_LIMITS)?;
        let graph = graph.of_instance(self.instance.clone())?;
        Ok(graph.described(Vec::new(), columns.names.clone())?)
    }
}

impl Rows {
    /// Returns the configurations that were not measured, of which there is at least one.
    fn candidates(&self) -> Result<Configurations, TableError> {
        if self.unmeasured.is_empty() {
            return Err(TableError::AllMeasured);
        }
        self.configurations(self.unmeasured.iter().map(|row| row.number))
    }

    /// Returns all measurements, from which a server learns in a call.
    fn adapt(&self, target: &str) -> Result<Adapt, TableError> {
        self.adapt_of(target, &self.measured)
    }

    /// Returns the measurements, of which there is at least one, in parts that a report takes.
    pub(super) fn reports(&self, target: &str) -> Result<Vec<Adapt>, TableError> {
        if self.measured.is_empty() {
            return Err(TableError::NothingMeasured);
        }
        let parts = self.measured.chunks(REPORTED);
        parts.map(|part| self.adapt_of(target, part)).collect()
    }

    fn adapt_of(&self, target: &str, measured: &[(usize, Measured)]) -> Result<Adapt, TableError> {
        let adapt = Adapt::new(target);
        // A batch has at least one configuration, and a server can learn from what it keeps alone.
        if measured.is_empty() {
            return Ok(adapt);
        }
        let configurations = self.configurations(measured.iter().map(|(row, _)| *row))?;
        let outcomes: Vec<Measured> = measured.iter().map(|(_, outcome)| *outcome).collect();
        Ok(adapt.measured(&configurations, &outcomes))
    }

    fn configurations(
        &self,
        rows: impl Iterator<Item = usize>,
    ) -> Result<Configurations, TableError> {
        let width = self.columns.names.len();
        let row = |row: usize| &self.columns.values[row * width..][..width];
        let values: Vec<f32> = rows.flat_map(row).copied().collect();
        let batch = NodeFeatureBatch::from_values([1, width], &values, &FILE_LIMITS)?;
        Ok(Configurations::FeatureSet(batch))
    }
}
