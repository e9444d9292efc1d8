//! Segments as parts of layouts.

use hlorank_graph::{
    ConfigurationError, Configurations, Graph, LayoutBatch, LayoutBatchBuilder, LayoutEntry,
    MeasuredGraph, Occurrence, SegmentedGraph,
};

use super::{
    exchange::exchanges,
    parts::{Choice, Part, Parts, opcode},
};
use crate::cli::input::FILE_LIMITS;

/// Maximum number of parts that are exchanged. A part takes up to three configurations.
const MAX_PARTS: usize = 1_000;

/// Returns the segments in which the compared layouts differ.
pub(super) fn segments(
    measured: &MeasuredGraph,
    three: &LayoutBatch,
) -> Result<Parts, ConfigurationError> {
    let mut segments = differing_segments(&measured.graph, three);
    let left_out = segments.len().saturating_sub(MAX_PARTS);
    // All exchanges are one call, whose size this bounds. The first segments are kept, since
    // effects are not known yet.
    segments.truncate(MAX_PARTS);
    let places = segments.iter().map(|(_, each)| each.slots.clone());
    let places: Vec<_> = places.collect();
    let entries = [0, 1, 2].map(|config| entries(three, config));
    let (exchanged, rows): (Vec<_>, Vec<_>) = exchanges(&entries, &places).into_iter().unzip();
    let part = |(number, occurrence)| segment(number, occurrence, measured, three);
    Ok(Parts {
        list: segments.into_iter().map(part).collect(),
        left_out,
        exchanged,
        configurations: layouts(entries.iter().chain(&rows), three.slots())?,
    })
}

fn entries(three: &LayoutBatch, config: usize) -> Vec<LayoutEntry> {
    let slots = 0..three.slots();
    slots.map(|slot| three.entry(config, slot)).collect()
}

fn layouts<'a>(
    rows: impl Iterator<Item = &'a Vec<LayoutEntry>>,
    slots: usize,
) -> Result<Configurations, ConfigurationError> {
    let mut batch = LayoutBatchBuilder::new(slots, FILE_LIMITS);
    for row in rows {
        batch.push(row)?;
    }
    Ok(Configurations::Layout(batch.build()?))
}

/// Returns the segments that the three set differently, with their numbers in the graph.
fn differing_segments(graph: &Graph, three: &LayoutBatch) -> Vec<(usize, Occurrence)> {
    // A segment that the three set equally has no effect, and each part costs up to three
    // configurations of the call.
    let differs =
        |slot: &usize| (1..3).any(|config| three.entry(config, *slot) != three.entry(0, *slot));
    let occurrences = SegmentedGraph::new(graph).occurrences;
    let numbered = occurrences.into_iter().enumerate();
    numbered
        .filter(|(_, occurrence)| occurrence.slots.iter().any(differs))
        .collect()
}

fn segment(
    number: usize,
    occurrence: Occurrence,
    measured: &MeasuredGraph,
    three: &LayoutBatch,
) -> Part {
    let slots = occurrence.slots.iter();
    let choices = slots.map(|&slot| layout_choice(measured, three, slot));
    Part {
        name: number.to_string(),
        choices: choices.collect(),
        nodes: occurrence.nodes,
        effects: [0.0; 3],
    }
}

fn layout_choice(measured: &MeasuredGraph, three: &LayoutBatch, slot: usize) -> Choice {
    let node = measured.graph.configurable()[slot];
    let mut what = opcode(&measured.graph, node).to_owned();
    if let Some(description) = measured.nodes.get(slot) {
        what = format!("{what} {}", description.name);
    }
    Choice {
        node: Some(node),
        what,
        values: [0, 1, 2].map(|config| layout(three.entry(config, slot))),
    }
}

/// Writes minor-to-major lists as HLO does: `{1,0}{0,1}`, and `-` if the compiler decides.
fn layout(entry: LayoutEntry) -> String {
    let list = |tensor: Vec<i32>| {
        let dimensions: Vec<_> = tensor.iter().map(i32::to_string).collect();
        format!("{{{}}}", dimensions.join(","))
    };
    match entry.tensors() {
        tensors if tensors.is_empty() => "-".to_owned(),
        tensors => tensors.into_iter().map(list).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_written_as_in_hlo() {
        let entry = LayoutEntry::from_tensors([vec![1, 0], vec![0]].iter(), String::new).unwrap();
        assert_eq!(
            (layout(entry), layout(LayoutEntry::DEFAULT)),
            ("{1,0}{0}".to_owned(), "-".to_owned())
        );
    }
}
