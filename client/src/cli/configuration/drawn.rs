//! Draws layouts of a graph whose file contains none.

use std::iter::once;

use fastrand::Rng;
use hlorank_graph::{
    ConfigurationError, Configurations, LayoutBatchBuilder, LayoutEntry, NodeDescription,
};

use crate::cli::input::FILE_LIMITS;

/// Layouts of a graph, in this order: the compiler's default, single deviations from it, and random ones.
pub(crate) struct DrawnLayouts {
    /// All layouts.
    pub(crate) configurations: Configurations,
    /// Number of single deviations: layouts that set one tensor of one node.
    pub(crate) deviations: usize,
    /// Number of single deviations that the graph has.
    pub(crate) possible_deviations: usize,
    /// Number of random layouts.
    pub(crate) random: usize,
}

/// Maximum number of single deviations. If a graph has more, this number of them is drawn.
pub(crate) const MAX_DEVIATIONS: usize = 2_000;

/// Maximum number of dimensions of a tensor that a layout can set.
const MAX_RANK: u32 = 6;

/// A tensor that has several orders of its dimensions.
#[derive(Clone, Copy)]
struct Tensor {
    slot: usize,
    /// Position in the entry: output, first operand, second operand.
    position: usize,
    rank: u32,
}

/// A tensor, and the number of the order that a layout gives its dimensions.
#[derive(Clone, Copy)]
struct Choice {
    tensor: Tensor,
    order: usize,
}

/// Draws layouts of these nodes.
pub(crate) fn draw_layouts(
    nodes: &[NodeDescription],
    random: usize,
    rng: &mut Rng,
) -> Result<DrawnLayouts, ConfigurationError> {
    let tensors = tensors(nodes);
    let possible_deviations = tensors.iter().map(|tensor| orders(tensor.rank)).sum();
    let chosen = some_of(possible_deviations, MAX_DEVIATIONS, rng);
    // A deviation shows what one tensor does, and random layouts show how nodes act together.
    let deviations = chosen
        .iter()
        .map(|&number| vec![deviation(&tensors, number)]);
    let random_layouts = (0..random).map(|_| random_layout(&tensors, rng));
    let layouts = once(Vec::new()).chain(deviations).chain(random_layouts);
    Ok(DrawnLayouts {
        configurations: build(nodes.len(), layouts)?,
        deviations: chosen.len(),
        possible_deviations,
        random,
    })
}

fn build(
    slots: usize,
    layouts: impl Iterator<Item = Vec<Choice>>,
) -> Result<Configurations, ConfigurationError> {
    let mut batch = LayoutBatchBuilder::new(slots, FILE_LIMITS);
    for layout in layouts {
        batch.push(&entries(slots, &layout)?)?;
    }
    Ok(Configurations::Layout(batch.build()?))
}

/// Returns the tensors that a layout can set. A tensor of one dimension has only one layout.
fn tensors(nodes: &[NodeDescription]) -> Vec<Tensor> {
    let of_node = |(slot, node)| tensors_of(slot, node);
    let all = nodes.iter().enumerate().flat_map(of_node);
    all.filter(|tensor| (2..=MAX_RANK).contains(&tensor.rank))
        .collect()
}

fn tensors_of(slot: usize, node: &NodeDescription) -> impl Iterator<Item = Tensor> {
    let tensors = node.tensor_ranks.iter().enumerate();
    tensors.map(move |(position, &rank)| Tensor {
        slot,
        position,
        rank,
    })
}

/// Returns the number of orders of this many dimensions.
fn orders(rank: u32) -> usize {
    (1..=rank as usize).product()
}

/// Returns `limit` different numbers below `count` in ascending order, or all of them if there are no more.
fn some_of(count: usize, limit: usize, rng: &mut Rng) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    if count > limit {
        rng.shuffle(&mut numbers);
        numbers.truncate(limit);
        // Ascending numbers keep the deviations of a node together, as they are without a limit.
        numbers.sort_unstable();
    }
    numbers
}

/// Returns what a single deviation sets.
fn deviation(tensors: &[Tensor], mut number: usize) -> Choice {
    let mut all = tensors.iter();
    // The orders of the first tensor have the lowest numbers, then come those of the second.
    loop {
        let tensor = *all
            .next()
            .expect("the number is below the number of all orders");
        match number.checked_sub(orders(tensor.rank)) {
            Some(rest) => number = rest,
            None => {
                return Choice {
                    tensor,
                    order: number,
                };
            }
        }
    }
}

/// Sets a random share of the nodes. Each tensor of these has a random order, or is left to the compiler as often as it
/// has any one order.
fn random_layout(tensors: &[Tensor], rng: &mut Rng) -> Vec<Choice> {
    // A fixed share would give all random layouts about the same number of set nodes, by the law of
    // large numbers. With a share of its own for each layout, every number is about equally likely.
    let share = rng.f64();
    let of_node = |tensors: &[Tensor]| -> Vec<Choice> {
        if rng.f64() > share {
            return Vec::new();
        }
        let drawn = tensors.iter().map(|&tensor| Choice {
            tensor,
            order: rng.usize(..=orders(tensor.rank)),
        });
        // The number one above the last order stands for the compiler's choice.
        drawn
            .filter(|choice| choice.order < orders(choice.tensor.rank))
            .collect()
    };
    tensors
        .chunk_by(|one, other| one.slot == other.slot)
        .flat_map(of_node)
        .collect()
}

/// Returns the entry of every slot for a layout that sets these tensors, in the order of their slots.
fn entries(slots: usize, layout: &[Choice]) -> Result<Vec<LayoutEntry>, ConfigurationError> {
    let mut entries = vec![LayoutEntry::DEFAULT; slots];
    for of_slot in layout.chunk_by(|one, other| one.tensor.slot == other.tensor.slot) {
        // An empty list leaves its tensor to the compiler.
        let mut tensors = [const { Vec::new() }; 3];
        for Choice { tensor, order } in of_slot {
            tensors[tensor.position] = dimensions(tensor.rank, *order);
        }
        let slot = of_slot[0].tensor.slot;
        entries[slot] = LayoutEntry::from_tensors(tensors.iter(), || format!("slot {slot}"))?;
    }
    Ok(entries)
}

/// Returns the dimensions in one of their [`orders`], which are numbered in lexicographic order.
fn dimensions(rank: u32, order: usize) -> Vec<i32> {
    let mut left: Vec<i32> = (0..).take(rank as usize).collect();
    let mut rest = order;
    // The digits of the number in the factorial number system (the Lehmer code of the permutation)
    // say which of the dimensions that are left comes next.
    let place = |places: u32| {
        let following = orders(places - 1);
        let next = left.remove(rest / following);
        rest %= following;
        next
    };
    (1..=rank).rev().map(place).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn node(tensor_ranks: &[u32]) -> NodeDescription {
        let (name, opcode) = ("dot.1".to_owned(), "dot".to_owned());
        NodeDescription {
            node: 0,
            name,
            opcode,
            dimensions: vec![],
            tensor_ranks: tensor_ranks.to_vec(),
        }
    }

    fn drawn(nodes: &[NodeDescription], random: usize) -> (DrawnLayouts, Vec<Vec<Vec<Vec<i32>>>>) {
        let drawn = draw_layouts(nodes, random, &mut Rng::with_seed(0)).unwrap();
        let Configurations::Layout(batch) = &drawn.configurations else {
            unreachable!("layouts of layouts")
        };
        let slots = |config| {
            (0..batch.slots())
                .map(|slot| batch.entry(config, slot).tensors())
                .collect()
        };
        let layouts = (0..batch.len()).map(slots).collect();
        (drawn, layouts)
    }

    #[test]
    fn the_default_comes_first_and_every_order_of_one_tensor_follows() {
        let (drawn, layouts) = drawn(&[node(&[2, 1]), node(&[0, 3])], 0);
        assert_eq!(
            (drawn.deviations, drawn.possible_deviations, layouts.len()),
            (8, 8, 9)
        );
        assert_eq!(layouts[0], [vec![], vec![]] as [Vec<Vec<i32>>; 2]);
        assert_eq!(layouts[1], [vec![vec![0, 1]], vec![]]);
        assert_eq!(layouts[2], [vec![vec![1, 0]], vec![]]);
        let of_operand = layouts[3..].iter().map(|layout| {
            let [none, set] = &layout[..] else {
                unreachable!("two nodes")
            };
            assert!(none.is_empty() && set[0].is_empty(), "{layout:?}");
            set[1].clone()
        });
        assert_eq!(of_operand.collect::<BTreeSet<_>>().len(), 6);
    }

    #[test]
    fn more_deviations_than_the_maximum_are_drawn_without_repetition() {
        let (drawn, layouts) = drawn(&vec![node(&[4, 4, 4]); 40], 0);
        assert_eq!(
            (drawn.deviations, drawn.possible_deviations),
            (MAX_DEVIATIONS, 40 * 3 * 24)
        );
        assert_eq!(
            layouts.iter().collect::<BTreeSet<_>>().len(),
            MAX_DEVIATIONS + 1
        );
    }

    #[test]
    fn random_layouts_have_orders_of_the_tensors_and_leave_some_to_the_compiler() {
        let (_, layouts) = drawn(&vec![node(&[2, 3, 1]); 20], 50);
        let random = &layouts[1 + 20 * 8..];
        let mut set = 0;
        for tensors in random
            .iter()
            .flatten()
            .filter(|tensors| !tensors.is_empty())
        {
            set += 1;
            for (tensor, rank) in tensors.iter().zip([2, 3]) {
                let mut sorted = tensor.clone();
                sorted.sort_unstable();
                assert!(
                    tensor.is_empty() || sorted.into_iter().eq(0..rank),
                    "{tensors:?}"
                );
            }
            assert!(tensors.len() <= 2, "{tensors:?}");
        }
        assert!(
            random.len() == 50 && (100..900).contains(&set),
            "{set} of 1,000 nodes are set"
        );
    }

    #[test]
    fn a_tensor_of_seven_dimensions_is_left_to_the_compiler() {
        let (drawn, layouts) = drawn(&[node(&[7, 7])], 3);
        assert_eq!((drawn.possible_deviations, layouts.len()), (0, 4));
        assert!(layouts.iter().flatten().all(Vec::is_empty));
    }
}
