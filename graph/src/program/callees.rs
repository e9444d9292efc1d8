use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{HloModule, hash::CanonicalForm};

/// The computations that the nodes of a module call, as ranges of nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Callees {
    calls: BTreeMap<u32, Vec<Range<u32>>>,
}

impl Callees {
    pub(crate) fn of(module: &HloModule<'_>) -> Self {
        let called = |node: u32| {
            let ids = module.nodes.callees(node as usize).iter();
            // The reader has refused callees that are missing.
            let computations = ids.filter_map(|&id| module.computations.get(id));
            computations
                .map(|computation| node_range(&computation.nodes))
                .collect::<Vec<_>>()
        };
        let calls = (0..).take(module.len()).map(|node| (node, called(node)));
        Self {
            calls: calls.filter(|(_, called)| !called.is_empty()).collect(),
        }
    }

    /// Returns the number of bytes that this holds.
    pub(crate) fn bytes(&self) -> usize {
        let ranges: usize = self.calls.values().map(Vec::len).sum();
        self.calls.len() * size_of::<(u32, Vec<Range<u32>>)>() + ranges * size_of::<Range<u32>>()
    }

    /// Returns the computations that a node calls itself.
    pub(crate) fn of_node(&self, node: u32) -> &[Range<u32>] {
        self.calls.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Adds every caller with the computations that it calls to a canonical form.
    pub(crate) fn write(&self, form: &mut CanonicalForm) {
        form.count(self.calls.len());
        for (&caller, called) in &self.calls {
            form.numbers([caller].into_iter());
            form.count(called.len());
            form.numbers(called.iter().flat_map(|nodes| [nodes.start, nodes.end]));
        }
    }

    /// Returns the computations that some nodes call, directly or through others, in the order of the module. Stops
    /// after more than `most` nodes.
    pub(crate) fn reached(&self, nodes: &[u32], most: usize) -> Vec<Range<u32>> {
        let direct = |node| self.calls.get(node).into_iter().flatten().cloned();
        let mut waiting: Vec<Range<u32>> = nodes.iter().flat_map(direct).collect();
        // By first node, which is the order of the module.
        let mut reached = BTreeSet::new();
        let mut count = 0;
        while let Some(called) = waiting.pop().filter(|_| count <= most) {
            if reached.insert((called.start, called.end)) {
                count += called.len();
                // The map is ordered by caller, so the callers inside a computation are a range of
                // it.
                waiting.extend(
                    self.calls
                        .range(called)
                        .flat_map(|(_, calls)| calls.clone()),
                );
            }
        }
        reached.into_iter().map(|(start, end)| start..end).collect()
    }
}

/// Returns a range of nodes as node numbers. A module has fewer than 2^32 nodes.
pub(crate) fn node_range(nodes: &Range<usize>) -> Range<u32> {
    let number = |node| u32::try_from(node).unwrap_or(u32::MAX);
    number(nodes.start)..number(nodes.end)
}
