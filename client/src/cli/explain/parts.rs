//! The parts of layouts and tiles, and what the compared configurations choose in each.

use hlorank_graph::{
    ConfigurationError, Configurations, Graph, LayoutBatch, LayoutBatchBuilder, LayoutEntry,
    MeasuredGraph, SegmentedGraph, TileBatch, TileConfiguration, opcode_name,
};
use serde::Serialize;

use super::exchange::{Exchange, exchanges};
use crate::cli::input::FILE_LIMITS;

/// A part of a graph's configurations: a segment of a module, or a bound of a tile.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    /// Number of the segment, or list and position of the bound.
    pub(crate) name: String,
    /// Nodes of the segment, ascending; empty for a bound.
    pub(crate) nodes: Vec<u32>,
    /// What configurations set in it.
    pub(crate) choices: Vec<Choice>,
    /// What the part does to the score of the best, the reference and the worst.
    pub(crate) effects: [f64; 3],
}

/// What the best, the reference and the worst choose at one place.
#[derive(Debug, Serialize)]
pub(crate) struct Choice {
    /// The node; none for a bound.
    pub(crate) node: Option<u32>,
    /// Opcode of the node, and its name if it is known; the list for a bound.
    pub(crate) what: String,
    pub(crate) values: [String; 3],
}

/// Parts, and the configurations that show what they do: the compared three, and one for each exchange.
pub(super) struct Parts {
    pub(super) list: Vec<Part>,
    /// Number of parts beyond [`MAX_PARTS`].
    pub(super) left_out: usize,
    pub(super) exchanged: Vec<Exchange>,
    pub(super) configurations: Configurations,
}

/// Maximum number of parts that are exchanged. A part takes up to three configurations.
const MAX_PARTS: usize = 1_000;

/// Returns the segments in which the compared layouts differ.
pub(super) fn segments(
    measured: &MeasuredGraph,
    three: &LayoutBatch,
) -> Result<Parts, ConfigurationError> {
    let cut = SegmentedGraph::new(&measured.graph);
    let differs =
        |slot: &usize| (1..3).any(|config| three.entry(config, *slot) != three.entry(0, *slot));
    let mut occurrences: Vec<_> = (0_usize..).zip(&cut.occurrences).collect();
    occurrences.retain(|(_, occurrence)| occurrence.slots.iter().any(differs));
    let left_out = occurrences.len().saturating_sub(MAX_PARTS);
    occurrences.truncate(MAX_PARTS);
    let entries = [0, 1, 2].map(|config| {
        let slots = 0..three.slots();
        slots.map(|slot| three.entry(config, slot)).collect()
    });
    let places = occurrences.iter().map(|(_, each)| each.slots.clone());
    let pairs = exchanges(&entries, &places.collect::<Vec<_>>());
    let (exchanged, rows): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let mut batch = LayoutBatchBuilder::new(three.slots(), FILE_LIMITS);
    for row in entries.iter().chain(&rows) {
        batch.push(row)?;
    }
    let parts = occurrences.into_iter().map(|(number, occurrence)| {
        let slots = occurrence.slots.iter();
        Part {
            name: number.to_string(),
            nodes: occurrence.nodes.clone(),
            choices: slots
                .map(|&slot| layout_choice(measured, three, slot))
                .collect(),
            effects: [0.0; 3],
        }
    });
    Ok(Parts {
        list: parts.collect(),
        left_out,
        exchanged,
        configurations: Configurations::Layout(batch.build()?),
    })
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

/// Returns the name of the opcode of a node.
pub(crate) fn opcode(graph: &Graph, node: u32) -> &'static str {
    graph
        .opcodes()
        .get(node as usize)
        .map_or("", |&id| opcode_name(id))
}

/// Writes minor-to-major lists as HLO does: `{1,0}{0,1}`, and `-` if the compiler decides.
fn layout(entry: LayoutEntry) -> String {
    let list = |tensor: Vec<i32>| {
        format!(
            "{{{}}}",
            tensor
                .iter()
                .map(i32::to_string)
                .collect::<Vec<_>>()
                .join(",")
        )
    };
    match entry.tensors() {
        tensors if tensors.is_empty() => "-".to_owned(),
        tensors => tensors.into_iter().map(list).collect(),
    }
}

/// Returns the bounds in which the compared tiles differ. Tiles of different numbers of bounds have no parts.
pub(super) fn bounds(three: &TileBatch) -> Result<Parts, ConfigurationError> {
    let tiles = [0, 1, 2].map(|config| three.get(config));
    let lists = tiles.each_ref().map(|tile| lists(tile.view()));
    let lengths = lists.each_ref().map(|lists| lists.map(<[i64]>::len));
    let values = lists.each_ref().map(|lists| lists.concat());
    let differs = |place: &usize| values.iter().any(|tile| tile[*place] != values[0][*place]);
    let places: Vec<usize> = if lengths.iter().all(|each| *each == lengths[0]) {
        (0..values[0].len()).filter(differs).collect()
    } else {
        Vec::new()
    };
    let parts = places
        .iter()
        .map(|&place| bound(lengths[0], &values, place));
    let one_each: Vec<_> = places.iter().map(|&place| vec![place]).collect();
    let pairs = exchanges(&values, &one_each);
    let (exchanged, rows): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let mut batch = TileBatch::default();
    for tile in &tiles {
        batch.push(tile.view(), &FILE_LIMITS)?;
    }
    for row in rows {
        let (kernel_bounds, rest) = row.split_at(lengths[0][0]);
        let (output_bounds, input_bounds) = rest.split_at(lengths[0][1]);
        let tile = TileConfiguration {
            kernel_bounds,
            output_bounds,
            input_bounds,
        };
        batch.push(tile, &FILE_LIMITS)?;
    }
    Ok(Parts {
        list: parts.collect(),
        left_out: 0,
        exchanged,
        configurations: Configurations::Tile(batch),
    })
}

fn lists(tile: TileConfiguration<'_>) -> [&[i64]; 3] {
    [tile.kernel_bounds, tile.output_bounds, tile.input_bounds]
}

fn bound(lengths: [usize; 3], values: &[Vec<i64>; 3], place: usize) -> Part {
    let (kernel, output) = (lengths[0], lengths[0] + lengths[1]);
    let (list, position) = match place {
        _ if place < kernel => ("kernel", place),
        _ if place < output => ("output", place - kernel),
        _ => ("input", place - output),
    };
    let values = values.each_ref().map(|tile| tile[place].to_string());
    let choice = Choice {
        node: None,
        what: format!("{list} bound"),
        values,
    };
    Part {
        name: format!("{list}[{position}]"),
        nodes: Vec::new(),
        choices: vec![choice],
        effects: [0.0; 3],
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
        let parts = bounds(&tiles([&[8, 128], &[8, 64], &[16, 64]])).unwrap();
        let names: Vec<_> = parts.list.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["output[0]", "output[1]"]);
        assert_eq!(parts.list[1].choices[0].values, ["128", "64", "64"]);
        let of: Vec<_> = parts
            .exchanged
            .iter()
            .map(|exchange| (exchange.part, exchange.of))
            .collect();
        assert_eq!(of, [(0, 2), (1, 0), (1, 1)]);
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
        let parts = bounds(&tiles([&[8, 128], &[8], &[16, 64]])).unwrap();
        assert!(parts.list.is_empty() && parts.exchanged.is_empty());
    }

    #[test]
    fn a_layout_is_written_as_in_hlo() {
        let entry = LayoutEntry::from_tensors([vec![1, 0], vec![0]].iter(), String::new).unwrap();
        assert_eq!(
            (layout(entry), layout(LayoutEntry::DEFAULT)),
            ("{1,0}{0}".to_owned(), "-".to_owned())
        );
    }
}
