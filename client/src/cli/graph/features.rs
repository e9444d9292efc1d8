use std::{
    fmt::{self, Display},
    path::{Path, PathBuf},
};

use clap::Args;
use hlorank_graph::{FeatureFile, FeatureSet, MeasuredGraph, Pad};
use serde::Serialize;

use crate::cli::{
    error::CommandError,
    input::{GRAPH_FILE, GRAPH_FILE_LONG, Selection},
    output::{Format, counted, printable},
    progress::Progress,
};

#[derive(Debug, Args)]
pub(crate) struct Features {
    #[arg(value_name = "FILE", required_unless_present = "digest", requires = "out", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    file: Option<PathBuf>,
    /// npz file to write
    ///
    /// An existing file is replaced, and a pipe or a device is written to.
    #[arg(long, value_name = "F.npz", requires = "file")]
    out: Option<PathBuf>,
    /// Padding of the sequence columns: 0 or -1
    ///
    /// -1 distinguishes padding from the value 0.
    #[arg(long, default_value = "0", allow_negative_numbers = true, value_parser = parse_pad)]
    pad: Pad,
    /// Print the feature digest instead
    ///
    /// A model works only with the digest that it was trained with.
    #[arg(long, conflicts_with_all = ["file", "out"])]
    digest: bool,
    #[command(flatten)]
    selection: Selection,
}

fn parse_pad(text: &str) -> Result<Pad, String> {
    let pad = text.parse().ok().and_then(Pad::from_value);
    pad.ok_or_else(|| "the padding must be 0 or -1".to_owned())
}

/// A file that was written.
#[derive(Debug, Serialize)]
struct FeatureReport {
    path: String,
    name: String,
    pad: f32,
    nodes: usize,
    configurations: usize,
}

/// The feature digest.
#[derive(Debug, Serialize)]
struct DigestReport {
    feature_digest: String,
}

impl Features {
    pub(crate) fn run(self, format: Format) -> Result<(), CommandError> {
        match (&self.file, &self.out) {
            (Some(file), Some(out)) => self.write(file, out, format),
            // clap requires both, except with `--digest`.
            _ => Ok(format.print(&DigestReport {
                feature_digest: FeatureSet::TPUGRAPHS.digest().to_string(),
            })?),
        }
    }

    fn write(&self, file: &Path, out: &Path, format: Format) -> Result<(), CommandError> {
        let measured = self.selection.read_one(file, &Progress::over(1))?.measured;
        // Asked before writing, which replaces a regular file: the path is another file after it.
        let is_printed = !is_standard_output(out);
        FeatureFile::write(out, &measured, self.pad)?;
        if is_printed {
            format.print(&FeatureReport::of(out, &measured, self.pad))?;
        }
        Ok(())
    }
}

/// Returns whether a path is standard output, where a report would follow the file.
#[cfg(unix)]
fn is_standard_output(path: &Path) -> bool {
    use std::{fs, os::unix::fs::MetadataExt as _};
    // Device and inode identify a file. Names do not, because standard output has several of them.
    let place = |path: &Path| {
        fs::metadata(path)
            .ok()
            .map(|found| (found.dev(), found.ino()))
    };
    place(path).is_some_and(|written| place(Path::new("/dev/stdout")) == Some(written))
}

#[cfg(not(unix))]
fn is_standard_output(_: &Path) -> bool {
    false
}

impl FeatureReport {
    fn of(path: &Path, measured: &MeasuredGraph, pad: Pad) -> Self {
        let measurements = measured.measurements.as_ref();
        Self {
            path: path.display().to_string(),
            name: measured.name.clone(),
            pad: pad.value(),
            nodes: measured.graph.len(),
            configurations: measurements.map_or(0, |measured| measured.run_times.len()),
        }
    }
}

impl Display for FeatureReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = counted(self.nodes, "node");
        let configurations = counted(self.configurations, "configuration");
        let name = printable(&self.name);
        let path = &self.path;
        writeln!(formatter, "{path}: {name}, {nodes}, {configurations}")
    }
}

impl Display for DigestReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.feature_digest)
    }
}
