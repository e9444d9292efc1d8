//! The parts in which configurations differ, and what each does to the score.

use hlorank_graph::{
    ConfigurationError, Configurations, Graph, LayoutBatch, LayoutBatchBuilder, LayoutEntry,
    MeasuredGraph, SegmentedGraph, TileBatch, TileConfiguration, opcode_name,
};
use serde::Serialize;

use crate::configuration::FILE_LIMITS;

/// A part of a graph's configurations: a segment of a module, or a bound of a tile.
#[derive(Debug, Serialize)]
pub(super) struct ReportPart {
    /// Number of the segment, or list and position of the bound.
    pub(super) name: String,
    /// Nodes of the segment, ascending; empty for a bound.
    pub(super) nodes: Vec<u32>,
    /// What configurations set in it.
    pub(super) choices: Vec<Choice>,
    /// What the part does to the score of the best, the reference and the worst.
    pub(super) effects: [f64; 3],
}

/// What the best, the reference and the worst choose at one place.
#[derive(Debug, Serialize)]
pub(super) struct Choice {
    /// The node; none for a bound.
    pub(super) node: Option<u32>,
    /// Opcode of the node, and its name if it is known; the list for a bound.
    pub(super) what: String,
    pub(super) values: [String; 3],
}

/// Parts, and the configurations that show what they do.
pub(super) struct Parts {
    list: Vec<ReportPart>,
    /// Number of parts beyond the limit.
    pub(super) left_out: usize,
    /// For each configuration after the compared three: the part, and which of the three took it from another.
    exchanges: Vec<(usize, usize)>,
    /// The compared three, and one for each exchange.
    pub(super) configurations: Configurations,
}

/// Maximum number of parts that are exchanged. A part takes up to three configurations.
const MAX_PARTS: usize = 1_000;

/// The configuration from which each of the three takes a part: the best and the worst take the reference's, and the
/// reference takes the best's.
const FROM: [usize; 3] = [1, 0, 1];

/// Returns what each exchange that changes something makes of its configuration. A part is a set of places of a
/// configuration, and all three have the same number of places.
fn exchanges<T: Copy + PartialEq>(
    three: &[Vec<T>; 3],
    parts: &[Vec<usize>],
) -> (Vec<(usize, usize)>, Vec<Vec<T>>) {
    let mut exchanges = (Vec::new(), Vec::new());
    for (part, places) in parts.iter().enumerate() {
        for (of, own) in three.iter().enumerate() {
            let mut changed = own.clone();
            for &place in places {
                changed[place] = three[FROM[of]][place];
            }
            // An exchange that changes nothing has no effect, so it need not be scored.
            if changed != *own {
                exchanges.0.push((part, of));
                exchanges.1.push(changed);
            }
        }
    }
    exchanges
}

impl Parts {
    /// Returns the segments in which the compared layouts differ.
    pub(super) fn segments(
        measured: &MeasuredGraph,
        three: &LayoutBatch,
    ) -> Result<Self, ConfigurationError> {
        // A segment that the three set equally has no effect, and each part costs up to three
        // configurations of the call.
        let differs = |slot: &usize| {
            let first = three.entry(0, *slot);
            (1..3).any(|config| three.entry(config, *slot) != first)
        };
        let segments = SegmentedGraph::new(&measured.graph).occurrences;
        let segments = segments.into_iter().enumerate();
        let mut segments: Vec<_> = segments
            .filter(|(_, segment)| segment.slots.iter().any(differs))
            .collect();
        let left_out = segments.len().saturating_sub(MAX_PARTS);
        // All exchanges are one call, whose size this bounds. The first segments are kept, since
        // effects are not known yet.
        segments.truncate(MAX_PARTS);
        let places = segments.iter().map(|(_, segment)| segment.slots.clone());
        let entries = [0, 1, 2].map(|config| -> Vec<LayoutEntry> {
            let slots = 0..three.slots();
            slots.map(|slot| three.entry(config, slot)).collect()
        });
        let (exchanges, rows) = exchanges(&entries, &places.collect::<Vec<_>>());
        let mut batch = LayoutBatchBuilder::new(three.slots(), FILE_LIMITS);
        for row in entries.iter().chain(&rows) {
            batch.push(row)?;
        }
        let choice = |&slot: &usize| {
            let node = measured.graph.configurable()[slot];
            let opcode = opcode(&measured.graph, node);
            let description = measured.nodes.get(slot);
            Choice {
                node: Some(node),
                what: description.map_or_else(
                    || opcode.to_owned(),
                    |described| format!("{opcode} {}", described.name),
                ),
                values: [0, 1, 2].map(|config| layout(three.entry(config, slot))),
            }
        };
        let list = segments.into_iter().map(|(number, segment)| ReportPart {
            name: number.to_string(),
            choices: segment.slots.iter().map(choice).collect(),
            nodes: segment.nodes,
            effects: [0.0; 3],
        });
        Ok(Self {
            list: list.collect(),
            left_out,
            exchanges,
            configurations: Configurations::Layout(batch.build()?),
        })
    }

    /// Returns the bounds in which the compared tiles differ. Tiles of different numbers of bounds have no parts, since bounds at
    /// one place need not be about the same dimension.
    pub(super) fn bounds(three: &TileBatch) -> Result<Self, ConfigurationError> {
        let tiles = [0, 1, 2].map(|config| three.get(config));
        let lists = tiles.each_ref().map(|tile| {
            let tile = tile.view();
            [tile.kernel_bounds, tile.output_bounds, tile.input_bounds].map(<[i64]>::to_vec)
        });
        let lengths = lists.each_ref().map(|lists| lists.each_ref().map(Vec::len));
        let [kernel, output, _] = lengths[0];
        let values = lists.map(|lists| lists.concat());
        let differs = |place: &usize| (1..3).any(|tile| values[tile][*place] != values[0][*place]);
        let places: Vec<usize> = if lengths == [lengths[0]; 3] {
            (0..values[0].len()).filter(differs).collect()
        } else {
            Vec::new()
        };
        let each: Vec<_> = places.iter().map(|&place| vec![place]).collect();
        let (exchanges, rows) = exchanges(&values, &each);
        let mut batch = three.clone();
        for row in &rows {
            let (kernel_bounds, rest) = row.split_at(kernel);
            let (output_bounds, input_bounds) = rest.split_at(output);
            let tile = TileConfiguration {
                kernel_bounds,
                output_bounds,
                input_bounds,
            };
            batch.push(tile, &FILE_LIMITS)?;
        }
        let part = |&place: &usize| {
            let (list, position) = match place {
                _ if place < kernel => ("kernel", place),
                _ if place < kernel + output => ("output", place - kernel),
                _ => ("input", place - kernel - output),
            };
            ReportPart {
                name: format!("{list}[{position}]"),
                nodes: Vec::new(),
                choices: vec![Choice {
                    node: None,
                    what: format!("{list} bound"),
                    values: values.each_ref().map(|tile| tile[place].to_string()),
                }],
                effects: [0.0; 3],
            }
        };
        Ok(Self {
            list: places.iter().map(part).collect(),
            left_out: 0,
            exchanges,
            configurations: Configurations::Tile(batch),
        })
    }

    /// Returns the parts with what they do to the scores, the largest effect first. The scores are those of `configurations`.
    /// For the best and the worst, it is by how much the score is higher than with the reference's part; for the reference, by
    /// how much it would be higher with the best's part.
    pub(super) fn with_effects(self, scores: &[f32]) -> Vec<ReportPart> {
        let (three, exchanged) = scores.split_at(3);
        let mut parts = self.list;
        for ((part, of), &score) in self.exchanges.into_iter().zip(exchanged) {
            let without = f64::from(three[of]) - f64::from(score);
            parts[part].effects[of] = if of == 1 { -without } else { without };
        }
        let size = |part: &ReportPart| part.effects[0].abs().max(part.effects[2].abs());
        parts.sort_by(|one, other| size(other).total_cmp(&size(one)));
        parts
    }
}

/// Returns the name of the opcode of a node.
pub(super) fn opcode(graph: &Graph, node: u32) -> &'static str {
    let id = graph.opcodes().get(node as usize);
    id.map_or("", |&id| opcode_name(id))
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

    fn tiles(outputs: [&[i64]; 3]) -> TileBatch {
        let mut batch = TileBatch::default();
        for output_bounds in outputs {
            let tile = TileConfiguration {
                kernel_bounds: &[3],
                output_bounds,
                input_bounds: &[],
            };
            batch.push(tile, &FILE_LIMITS).unwrap();
        }
        batch
    }

    #[test]
    fn bounds_that_differ_are_parts() {
        let parts = Parts::bounds(&tiles([&[8, 128], &[8, 64], &[16, 64]])).unwrap();
        let names: Vec<_> = parts.list.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["output[0]", "output[1]"]);
        assert_eq!(parts.list[1].choices[0].values, ["128", "64", "64"]);
        assert_eq!(parts.exchanges, [(0, 2), (1, 0), (1, 1)]);
        let Configurations::Tile(batch) = parts.configurations else {
            unreachable!("tiles of tiles")
        };
        assert_eq!(batch.len(), 6);
        assert_eq!(
            batch.get(3).view().output_bounds,
            [8, 64],
            "the worst with the reference's first bound"
        );
    }

    #[test]
    fn tiles_of_different_shapes_have_no_parts() {
        let parts = Parts::bounds(&tiles([&[8, 128], &[8], &[16, 64]])).unwrap();
        assert!(parts.list.is_empty() && parts.exchanges.is_empty());
    }

    #[test]
    fn a_part_that_is_equal_is_not_exchanged() {
        let three = [vec![1, 2, 3], vec![1, 0, 0], vec![9, 0, 3]];
        let (exchanged, rows) = exchanges(&three, &[vec![0], vec![1, 2]]);
        assert_eq!(exchanged, [(0, 2), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(rows, [[1, 0, 3], [1, 0, 0], [1, 2, 3], [9, 0, 0]]);
    }

    #[test]
    fn a_layout_is_written_as_in_hlo() {
        let entry = LayoutEntry::from_tensors([vec![1, 0], vec![0]]).unwrap();
        assert_eq!(
            (layout(entry), layout(LayoutEntry::DEFAULT)),
            ("{1,0}{0}".to_owned(), "-".to_owned())
        );
    }
}
