//! What a page shows of one graph beside its ranking.

use super::{
    drawing::{Drawing, MAX_NODES},
    plot::Point,
};
use crate::cli::{
    explain::{Explained, Explanation},
    job::Job,
};

/// An explanation, its drawings, and what was measured.
pub(crate) struct Section {
    pub(super) explanation: Explanation,
    /// The drawing of each part; `None` for parts that have too many nodes, or that come after [`MAX_DRAWN`] others.
    pub(super) parts: Vec<Option<Drawing>>,
    /// The whole graph, if configurations have no segments.
    pub(super) whole: Option<Drawing>,
    /// Measured configurations.
    pub(super) points: Vec<Point>,
}

/// Maximum number of segments that are drawn.
const MAX_DRAWN: usize = 24;

impl Section {
    /// Prepares the drawings of a ranking with all scores.
    pub(crate) fn of(job: &Job<'_>, scores: &[f32], explanation: Explanation) -> Self {
        let explained = explanation.configurations.each_ref();
        let [best, _, worst] = explained.map(|explained| &*explained.set_nodes);
        let graph = &job.measured.graph;
        let parts = explanation.parts.iter().enumerate();
        let parts = parts.map(|(number, part)| {
            let is_drawn = number < MAX_DRAWN;
            is_drawn
                .then(|| Drawing::of(graph, &part.nodes, best, worst))
                .flatten()
        });
        let has_segments = explanation.parts.iter().any(|part| !part.nodes.is_empty());
        // Without segments, the graph is one kernel or program, which is drawn as a whole.
        let nodes: Vec<u32> = if has_segments || graph.len() > MAX_NODES {
            Vec::new()
        } else {
            (0..).take(graph.len()).collect()
        };
        let point = |(config, &score): (usize, &f32)| {
            let nanoseconds = job.run_time(config).filter(|_| score.is_finite())?;
            Some(Point { score, nanoseconds })
        };
        Self {
            parts: parts.collect(),
            whole: Drawing::of(graph, &nodes, best, worst),
            points: scores.iter().enumerate().filter_map(point).collect(),
            explanation,
        }
    }

    /// Returns the explained configurations that were measured.
    pub(super) fn named(&self) -> Vec<(&str, Point)> {
        let named = |explained: &'_ Explained| {
            let nanoseconds = explained
                .run_time_ns
                .filter(|_| explained.score.is_finite())?;
            Some((
                explained.role,
                Point {
                    score: explained.score,
                    nanoseconds,
                },
            ))
        };
        self.explanation
            .configurations
            .iter()
            .filter_map(named)
            .collect()
    }
}
