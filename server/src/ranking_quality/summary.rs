use std::collections::BTreeMap;

use super::graph_quality::{GraphQuality, TimeQuality, mean};

/// How well a model version ranks, over several graphs. Every graph counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QualitySummary {
    /// Number of graphs.
    pub graphs: usize,
    /// Number of distinct measured configurations of all graphs.
    pub measured: usize,
    /// Mean of Kendall's tau.
    pub tau: f64,
    /// Mean share of pairs in the right order.
    pub ordered_pairs: f64,
    /// Mean slowdown of the configuration with the lowest score.
    pub regret: f64,
    /// Predicted over measured run time, if the unit of scores is seconds: the geometric mean, 1 if predictions are right on
    /// average.
    pub time_ratio: Option<f64>,
    /// The larger over the smaller of predicted and measured run time: the geometric mean.
    pub time_error: Option<f64>,
}

impl QualitySummary {
    /// Sums up graphs.
    #[must_use]
    pub fn of(graphs: &[GraphQuality]) -> Self {
        let of = |value: fn(&GraphQuality) -> f64| mean(graphs.iter().map(value));
        let times: Vec<TimeQuality> = graphs.iter().filter_map(|graph| graph.time).collect();
        let time = |value: fn(&TimeQuality) -> f64| {
            (!times.is_empty()).then(|| libm::exp(mean(times.iter().map(value))))
        };
        Self {
            graphs: graphs.len(),
            measured: graphs.iter().map(|graph| graph.measured).sum(),
            tau: of(|graph| graph.tau),
            ordered_pairs: of(|graph| graph.ordered_pairs),
            regret: of(|graph| graph.regret),
            time_ratio: time(|time| time.log_ratio),
            time_error: time(|time| time.log_error),
        }
    }

    /// Sums up graphs by key.
    pub fn by_key<K: Ord>(
        graphs: impl IntoIterator<Item = (K, GraphQuality)>,
    ) -> BTreeMap<K, Self> {
        let mut groups = BTreeMap::<K, Vec<GraphQuality>>::new();
        for (key, graph) in graphs {
            groups.entry(key).or_default().push(graph);
        }
        let groups = groups.into_iter();
        groups
            .map(|(key, graphs)| (key, Self::of(&graphs)))
            .collect()
    }
}
