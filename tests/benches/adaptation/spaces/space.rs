//! The measured lists: `KERNEL.GPU.npz`.

use hlorank_proto::v1::{Adapt, FeatureGraph};
use hlorank_tests::prelude::*;

/// All valid configurations of a kernel, measured on one GPU.
pub(super) struct Space {
    pub(super) kernel: String,
    /// The GPU.
    pub(super) target: String,
    pub(super) columns: Vec<String>,
    /// `[n, columns]`
    pub(super) values: Vec<f32>,
    /// `[n]`, infinite if the configuration failed.
    pub(super) seconds: Vec<f64>,
}

impl Space {
    /// Reads the lists of a folder, by kernel and then by GPU.
    pub(super) fn read_all(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir(folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut spaces: Vec<Self> = paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "npz"))
            .map(|path| Self::read(&path))
            .collect();
        spaces
            .sort_by(|one, other| (&one.kernel, &one.target).cmp(&(&other.kernel, &other.target)));
        spaces
    }

    fn read(path: &Path) -> Self {
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let (kernel, target) = name
            .and_then(|name| name.split_once('.'))
            .expect("a file that is named by kernel and GPU");
        let mut arrays = Arrays::open(path);
        let parameters: Vec<f64> = arrays.values("params");
        #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
        let values = parameters.into_iter().map(|value| value as f32).collect();
        Self {
            kernel: kernel.to_owned(),
            target: target.to_owned(),
            columns: arrays.values("names"),
            values,
            seconds: arrays.values("seconds"),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.seconds.len()
    }

    /// Returns the graph of one node that stands for the kernel.
    pub(super) fn graph(&self) -> Graph {
        graph_of(Source::FeatureGraph(FeatureGraph {
            feature_set: self.kernel.clone(),
            nodes: 1,
            config_columns: self.columns.clone(),
            ..FeatureGraph::default()
        }))
    }

    /// Returns the chosen configurations, packed.
    pub(super) fn configs(&self, chosen: &[usize]) -> Configs {
        let width = self.columns.len();
        let values = chosen
            .iter()
            .flat_map(|&config| &self.values[config * width..][..width]);
        let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
        let count = |count: usize| u32::try_from(count).expect("a count of 32 bits");
        Configs::NodeFeatureConfigs(NodeFeatureConfigs {
            config_count: count(chosen.len()),
            features: bytes.into(),
            column_count: count(width),
            ..NodeFeatureConfigs::default()
        })
    }

    /// Returns what measuring the configurations gives.
    pub(super) fn outcomes(&self, measured: &[usize]) -> Adapt {
        let mut outcomes = Adapt {
            target: self.target.clone(),
            ..Adapt::default()
        };
        for &config in measured {
            let seconds = self.seconds[config];
            let (seconds, failure) = if seconds.is_finite() {
                (seconds, MeasurementFailure::Unspecified)
            } else {
                (0.0, MeasurementFailure::Crash)
            };
            outcomes.seconds.push(seconds);
            outcomes.failures.push(failure.into());
        }
        outcomes
    }
}
