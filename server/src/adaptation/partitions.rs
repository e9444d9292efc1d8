use std::collections::BTreeMap;

/// The ways in which the orders of tensors divide the measured configurations.
///
/// Tensors that divide them in the same way have equal variances: of the 78 tensors of a convolutional network, a hundred
/// measurements tell 22 apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Partitions {
    pub(super) all: Vec<Partition>,
    /// `[tensors]` number of each tensor's partition.
    pub(super) of_tensor: Vec<usize>,
}

/// One way in which the orders of a tensor's dimensions divide the configurations.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    /// `[measured]` the part of each configuration, numbered in the order of appearance.
    pub(super) part: Vec<u32>,
    pub(super) parts: usize,
    /// Number of tensors that divide them so.
    pub(super) tensors: f64,
}

impl Partitions {
    /// The partitions of configurations, each of which has an order for every tensor.
    pub(super) fn of(orders: &[&[u32]]) -> Self {
        let mut partitions = Self::default();
        let mut known = BTreeMap::new();
        for tensor in 0..orders.first().map_or(0, |first| first.len()) {
            let part = parts(orders.iter().map(|each| each[tensor]));
            let number = *known.entry(part.clone()).or_insert_with(|| {
                partitions.all.push(Partition::of(part));
                partitions.all.len() - 1
            });
            partitions.all[number].tensors += 1.0;
            partitions.of_tensor.push(number);
        }
        partitions
    }

    /// Number of parts of all partitions.
    pub(super) fn parts(&self) -> usize {
        self.all.iter().map(|partition| partition.parts).sum()
    }
}

impl Partition {
    /// A partition that no tensor makes yet.
    fn of(part: Vec<u32>) -> Self {
        let parts = part.iter().max().map_or(0, |&last| last as usize + 1);
        Self {
            part,
            parts,
            tensors: 0.0,
        }
    }
}

/// Numbers equal orders in the order of appearance.
fn parts(orders: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut known = BTreeMap::new();
    let mut next = 0;
    let number = |order| {
        *known.entry(order).or_insert_with(|| {
            next += 1;
            next - 1
        })
    };
    orders.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_that_divide_alike_are_one_partition() {
        let orders = [[5, 1, 9], [5, 2, 9], [6, 1, 8], [5, 1, 9]];
        let partitions = Partitions::of(&orders.each_ref().map(<[u32; 3]>::as_slice));
        assert_eq!(
            (partitions.of_tensor, partitions.all.len()),
            (vec![0, 1, 0], 2)
        );
        let [first, second] = &partitions.all[..] else {
            panic!("two partitions")
        };
        assert_eq!(
            (&first.part[..], first.parts, first.tensors),
            (&[0, 0, 1, 0][..], 2, 2.0)
        );
        assert_eq!((&second.part[..], second.tensors), (&[0, 1, 0, 0][..], 1.0));
    }
}
