//! Configurations for a load.

use fastrand::Rng;
use hlorank_graph::{
    ConfigurationError, Configurations, LayoutBatch, LayoutBatchBuilder, LayoutEntry, MeasuredGraph,
    NodeDescription, TileBatch, TileConfiguration,
};

use crate::cli::input::FILE_LIMITS;

/// What configurations of a graph are drawn from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Candidates<'a> {
    /// Those that come with it.
    Own(&'a Configurations),
    /// Any layout of these nodes.
    Any(&'a [NodeDescription]),
}

impl<'a> Candidates<'a> {
    /// `None` where nothing is known of the configurations of a graph.
    pub(super) fn of(graph: &'a MeasuredGraph) -> Option<Self> {
        match &graph.measurements {
            Some(measurements) => Some(Self::Own(&measurements.configurations)),
            None => (!graph.nodes.is_empty()).then_some(Self::Any(&graph.nodes)),
        }
    }

    /// So many: different ones of the graph's own; where it has fewer, they are recombined, each slot or bound taken from one of
    /// them; where it has none, every tensor has its dimensions in some order.
    pub(super) fn draw(self, count: usize, random: &mut Rng) -> Result<Configurations, ConfigurationError> {
        match self {
            Self::Own(own) if count <= own.len() => some_of(own, count, random),
            Self::Own(Configurations::Layout(own)) => {
                let slot = |slot, random: &mut Rng| Ok(own.entry(random.usize(..own.len()), slot));
                layouts(own.slots(), count, random, slot)
            }
            Self::Own(Configurations::Tile(own)) => recombined_tiles(own, count, random),
            Self::Any(nodes) => {
                layouts(nodes.len(), count, random, |slot, random| any_entry(&nodes[slot], random))
            }
        }
    }
}

fn some_of(
    own: &Configurations,
    count: usize,
    random: &mut Rng,
) -> Result<Configurations, ConfigurationError> {
    let mut chosen: Vec<usize> = (0..own.len()).collect();
    random.shuffle(&mut chosen);
    chosen.truncate(count);
    match own {
        Configurations::Layout(own) => part_of_layouts(own, &chosen),
        Configurations::Tile(own) => tiles(chosen.into_iter().map(|config| own.get(config))),
    }
}

fn part_of_layouts(own: &LayoutBatch, chosen: &[usize]) -> Result<Configurations, ConfigurationError> {
    let mut batch = LayoutBatchBuilder::new(own.slots(), FILE_LIMITS);
    for &config in chosen {
        let entries: Vec<_> = (0..own.slots()).map(|slot| own.entry(config, slot)).collect();
        batch.push(&entries)?;
    }
    Ok(Configurations::Layout(batch.build()?))
}

fn layouts(
    slots: usize,
    count: usize,
    random: &mut Rng,
    entry: impl Fn(usize, &mut Rng) -> Result<LayoutEntry, ConfigurationError>,
) -> Result<Configurations, ConfigurationError> {
    let mut batch = LayoutBatchBuilder::new(slots, FILE_LIMITS);
    for _ in 0..count {
        let entries: Vec<_> = (0..slots).map(|slot| entry(slot, random)).collect::<Result<_, _>>()?;
        batch.push(&entries)?;
    }
    Ok(Configurations::Layout(batch.build()?))
}

fn any_entry(node: &NodeDescription, random: &mut Rng) -> Result<LayoutEntry, ConfigurationError> {
    let order = |rank: &u32| {
        let mut dimensions: Vec<i32> = (0..).take(*rank as usize).collect();
        random.shuffle(&mut dimensions);
        dimensions
    };
    LayoutEntry::from_tensors(node.tensor_ranks.iter().map(order), || node.name.clone())
}

fn tiles<'a>(
    tiles: impl Iterator<Item = TileConfiguration<'a>>,
) -> Result<Configurations, ConfigurationError> {
    let mut batch = TileBatch::default();
    for tile in tiles {
        batch.push(tile, &FILE_LIMITS)?;
    }
    Ok(Configurations::Tile(batch))
}

fn recombined_tiles(
    own: &TileBatch,
    count: usize,
    random: &mut Rng,
) -> Result<Configurations, ConfigurationError> {
    let mut batch = TileBatch::default();
    for _ in 0..count {
        let whole = own.get(random.usize(..own.len()));
        let mut bounds = |part: fn(TileConfiguration<'_>) -> &[i64]| -> Vec<i64> {
            let bound = |(place, &bound): (usize, &i64)| {
                // A tile of other bounds may have fewer.
                part(own.get(random.usize(..own.len()))).get(place).copied().unwrap_or(bound)
            };
            part(whole).iter().enumerate().map(bound).collect()
        };
        let (kernel, output, input) = (
            bounds(|tile| tile.kernel_bounds),
            bounds(|tile| tile.output_bounds),
            bounds(|tile| tile.input_bounds),
        );
        let tile = TileConfiguration { kernel_bounds: &kernel, output_bounds: &output, input_bounds: &input };
        batch.push(tile, &FILE_LIMITS)?;
    }
    Ok(Configurations::Tile(batch))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TILES: [[i64; 2]; 3] = [[1, 10], [2, 20], [3, 30]];

    fn own_tiles() -> Configurations {
        let tile = |output: &'static [i64; 2]| TileConfiguration {
            kernel_bounds: &[7],
            output_bounds: output,
            input_bounds: &[],
        };
        tiles(TILES.iter().map(tile)).unwrap()
    }

    fn outputs(drawn: &Configurations) -> Vec<Vec<i64>> {
        let Configurations::Tile(batch) = drawn else { unreachable!("tiles of tiles") };
        assert!(batch.iter().all(|tile| tile.kernel_bounds == [7] && tile.input_bounds.is_empty()));
        batch.iter().map(|tile| tile.output_bounds.to_vec()).collect()
    }

    #[test]
    fn a_few_are_different_ones_of_the_graph() {
        let own = own_tiles();
        let drawn = outputs(&Candidates::Own(&own).draw(2, &mut Rng::with_seed(0)).unwrap());
        assert!(drawn.len() == 2 && drawn[0] != drawn[1], "{drawn:?}");
        assert!(drawn.iter().all(|drawn| TILES.iter().any(|tile| tile[..] == drawn[..])), "{drawn:?}");
    }

    #[test]
    fn more_tiles_than_there_are_take_each_bound_from_one_of_them() {
        let own = own_tiles();
        let drawn = outputs(&Candidates::Own(&own).draw(200, &mut Rng::with_seed(0)).unwrap());
        let distinct: BTreeSet<Vec<i64>> = drawn.into_iter().collect();
        let expected = [1, 2, 3].into_iter().flat_map(|one| [10, 20, 30].map(|two| vec![one, two]));
        assert_eq!(distinct, expected.collect());
    }

    #[test]
    fn more_layouts_than_there_are_take_each_slot_from_one_of_them() {
        let entry = |number| LayoutEntry::from_numbers([number, 0, 0], String::new).unwrap();
        let mut own = LayoutBatchBuilder::new(2, FILE_LIMITS);
        for number in [1, 2] {
            own.push(&[entry(number), entry(10 * number)]).unwrap();
        }
        let own = Configurations::Layout(own.build().unwrap());
        let drawn = Candidates::Own(&own).draw(100, &mut Rng::with_seed(0)).unwrap();
        let Configurations::Layout(batch) = drawn else { unreachable!("layouts of layouts") };
        let numbers = |config| [0, 1].map(|slot| batch.entry(config, slot).numbers()[0]);
        let distinct: BTreeSet<[u32; 2]> = (0..batch.len()).map(numbers).collect();
        assert_eq!((batch.len(), distinct), (100, [[1, 10], [1, 20], [2, 10], [2, 20]].into()));
    }
}
