//! Draws configurations for a load.

use fastrand::Rng;
use hlorank_graph::{ConfigurationError, Configurations, MeasuredGraph, NodeDescription};

use crate::cli::configuration::{random_layouts, recombine};

/// The source from which configurations of a graph are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// The configurations that come with the graph.
    Own(&'a Configurations),
    /// Any layout of these nodes.
    AnyLayout(&'a [NodeDescription]),
}

impl<'a> Source<'a> {
    /// Returns the source of a graph, or `None` if its file has neither configurations nor node descriptions.
    pub(super) fn of(graph: &'a MeasuredGraph) -> Option<Self> {
        match &graph.measurements {
            Some(measurements) => Some(Self::Own(&measurements.configurations)),
            // The ranks of tensors suffice to draw layouts. Only the compiler knows the tiles of a
            // kernel.
            None => (!graph.nodes.is_empty()).then_some(Self::AnyLayout(&graph.nodes)),
        }
    }

    /// Draws `count` configurations: different ones if the graph has enough, otherwise recombinations, each slot or
    /// bound of which is taken from any of them. Layouts of nodes have the dimensions of each tensor in random order.
    pub(super) fn draw(
        self,
        count: usize,
        random: &mut Rng,
    ) -> Result<Configurations, ConfigurationError> {
        match self {
            Self::Own(own) if count <= own.len() => {
                // The server evaluates equal configurations once, so a call with repeats would cost
                // less than its number says.
                let mut numbers: Vec<usize> = (0..own.len()).collect();
                random.shuffle(&mut numbers);
                Ok(own.select(&numbers[..count]))
            }
            Self::Own(own) => recombine(own, count, random),
            Self::AnyLayout(nodes) => random_layouts(nodes, count, random),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hlorank_graph::{LayoutBatchBuilder, LayoutEntry, TileBatch, TileConfiguration};

    use super::*;
    use crate::cli::input::FILE_LIMITS;

    const TILES: [[i64; 2]; 3] = [[1, 10], [2, 20], [3, 30]];

    fn own_tiles() -> Configurations {
        let mut batch = TileBatch::default();
        for output_bounds in &TILES {
            let tile = TileConfiguration {
                kernel_bounds: &[7],
                output_bounds,
                input_bounds: &[],
            };
            batch.push(tile, &FILE_LIMITS).unwrap();
        }
        Configurations::Tile(batch)
    }

    fn outputs(drawn: &Configurations) -> Vec<Vec<i64>> {
        let Configurations::Tile(batch) = drawn else {
            unreachable!("tiles of tiles")
        };
        assert!(
            batch.iter().all(|tile| tile.view().kernel_bounds == [7] && tile.view().input_bounds.is_empty())
        );
        batch
            .iter()
            .map(|tile| tile.view().output_bounds.to_vec())
            .collect()
    }

    #[test]
    fn a_few_configurations_are_different_ones_of_the_graph() {
        let own = own_tiles();
        let drawn = outputs(&Source::Own(&own).draw(2, &mut Rng::with_seed(0)).unwrap());
        assert!(drawn.len() == 2 && drawn[0] != drawn[1], "{drawn:?}");
        assert!(
            drawn
                .iter()
                .all(|drawn| TILES.iter().any(|tile| tile[..] == drawn[..])),
            "{drawn:?}"
        );
    }

    #[test]
    fn more_tiles_than_the_graph_has_take_each_bound_from_one_of_them() {
        let own = own_tiles();
        let drawn = outputs(&Source::Own(&own).draw(200, &mut Rng::with_seed(0)).unwrap());
        let distinct: BTreeSet<Vec<i64>> = drawn.into_iter().collect();
        let expected = [1, 2, 3]
            .into_iter()
            .flat_map(|one| [10, 20, 30].map(|two| vec![one, two]));
        assert_eq!(distinct, expected.collect());
    }

    #[test]
    fn more_layouts_than_the_graph_has_take_each_slot_from_one_of_them() {
        let entry = |number| LayoutEntry::from_numbers([number, 0, 0], String::new).unwrap();
        let mut own = LayoutBatchBuilder::new(2, FILE_LIMITS);
        for number in [1, 2] {
            own.push(&[entry(number), entry(10 * number)]).unwrap();
        }
        let own = Configurations::Layout(own.build().unwrap());
        let drawn = Source::Own(&own).draw(100, &mut Rng::with_seed(0)).unwrap();
        let Configurations::Layout(batch) = drawn else {
            unreachable!("layouts of layouts")
        };
        let numbers = |config| [0, 1].map(|slot| batch.entry(config, slot).numbers()[0]);
        let distinct: BTreeSet<[u32; 2]> = (0..batch.len()).map(numbers).collect();
        assert_eq!(
            (batch.len(), distinct),
            (100, [[1, 10], [1, 20], [2, 10], [2, 20]].into())
        );
    }
}
