//! Bounds as parts of tiles.

use hlorank_graph::{ConfigurationError, Configurations, TileBatch, TileConfiguration};

use super::{
    exchange::exchanges,
    parts::{Choice, Part, Parts},
};
use crate::cli::input::FILE_LIMITS;

/// The lengths of the lists of a tile.
#[derive(Clone, Copy, PartialEq)]
struct Shape {
    kernel: usize,
    output: usize,
    input: usize,
}

/// Returns the bounds in which the compared tiles differ. Tiles of different numbers of bounds have no parts.
pub(super) fn bounds(three: &TileBatch) -> Result<Parts, ConfigurationError> {
    let tiles = [0, 1, 2].map(|config| three.get(config));
    let shapes = tiles.each_ref().map(|tile| Shape::of(tile.view()));
    let values = tiles.each_ref().map(|tile| lists(tile.view()).concat());
    let [shape, ..] = shapes;
    // Bounds at one place of different shapes need not be about the same dimension.
    let places = if shapes == [shape; 3] {
        differing_places(&values)
    } else {
        Vec::new()
    };
    let one_each: Vec<_> = places.iter().map(|&place| vec![place]).collect();
    let (exchanged, rows): (Vec<_>, Vec<_>) = exchanges(&values, &one_each).into_iter().unzip();
    let mut batch = three.clone();
    for row in &rows {
        batch.push(shape.tile(row), &FILE_LIMITS)?;
    }
    let part = |&place: &usize| bound(shape, &values, place);
    Ok(Parts {
        list: places.iter().map(part).collect(),
        left_out: 0,
        exchanged,
        configurations: Configurations::Tile(batch),
    })
}

fn differing_places(values: &[Vec<i64>; 3]) -> Vec<usize> {
    let [first, others @ ..] = values;
    let differs = |place: &usize| others.iter().any(|tile| tile[*place] != first[*place]);
    (0..first.len()).filter(differs).collect()
}

fn lists(tile: TileConfiguration<'_>) -> [&[i64]; 3] {
    [tile.kernel_bounds, tile.output_bounds, tile.input_bounds]
}

impl Shape {
    fn of(tile: TileConfiguration<'_>) -> Self {
        Self {
            kernel: tile.kernel_bounds.len(),
            output: tile.output_bounds.len(),
            input: tile.input_bounds.len(),
        }
    }

    /// Returns the tile with these bounds, one list after the other.
    fn tile(self, bounds: &[i64]) -> TileConfiguration<'_> {
        let (kernel_bounds, rest) = bounds.split_at(self.kernel);
        let (output_bounds, input_bounds) = rest.split_at(self.output);
        TileConfiguration {
            kernel_bounds,
            output_bounds,
            input_bounds,
        }
    }

    /// Returns the list that a place is in, and its position there.
    fn position(self, place: usize) -> (&'static str, usize) {
        let inputs = self.kernel + self.output;
        match place {
            _ if place < self.kernel => ("kernel", place),
            _ if place < inputs => ("output", place - self.kernel),
            _ => ("input", place - inputs),
        }
    }
}

fn bound(shape: Shape, values: &[Vec<i64>; 3], place: usize) -> Part {
    let (list, position) = shape.position(place);
    let choice = Choice {
        node: None,
        what: format!("{list} bound"),
        values: values.each_ref().map(|tile| tile[place].to_string()),
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
}
