//! What a page shows of one graph beside its ranking.

use super::{drawing::Drawing, plot::Point};
use crate::cli::{
    explain::{Explained, Explanation},
    job::Job,
};

/// An explanation, its drawings, and what was measured.
pub(crate) struct Section {
    pub(super) explanation: Explanation,
    /// The drawings of the first [`MAX_DRAWN`] parts; `None` for a part that has no nodes or too many.
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
        let draw = |nodes: &[u32]| Drawing::of(graph, nodes, best, worst);
        // The largest effects come first, so the parts that are not drawn matter least.
        let drawn = explanation.parts.iter().take(MAX_DRAWN);
        let parts = drawn.map(|part| draw(&part.nodes)).collect();
        let has_segments = explanation.parts.iter().any(|part| !part.nodes.is_empty());
        // Without segments, the graph is one kernel or program, which is drawn as a whole.
        let whole = if has_segments {
            None
        } else {
            draw(&(0..).take(graph.len()).collect::<Vec<_>>())
        };
        Self {
            parts,
            whole,
            points: points(job, scores),
            explanation,
        }
    }

    /// Returns the explained configurations that were measured.
    pub(super) fn named(&self) -> Vec<(&str, Point)> {
        let named = |explained: &Explained| {
            let point = Point::of(explained.score, explained.run_time_ns)?;
            Some((explained.role, point))
        };
        let explained = self.explanation.configurations.iter();
        explained.filter_map(named).collect()
    }
}

fn points(job: &Job<'_>, scores: &[f32]) -> Vec<Point> {
    let point = |(config, &score): (usize, &f32)| Point::of(score, job.run_time(config));
    scores.iter().enumerate().filter_map(point).collect()
}
