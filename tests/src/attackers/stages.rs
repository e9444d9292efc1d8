//! The worst requests of the stages of a call that the default limits allow.

use prost::Message as _;

use super::{
    bombs::Bomb,
    messages::{Shape, fused_chain, long_text, many_measurements, many_tiles},
};

/// Stages that one kind of request makes long, and requests of that kind.
#[derive(Clone, Copy)]
pub struct Stage {
    /// The stages, as documentation names them.
    pub name: &'static str,
    /// Returns requests that are sent one after the other.
    pub requests: fn() -> Vec<Bomb>,
}

/// Nodes of a long graph: somewhat fewer than the default of `--max-nodes`.
const NODES: usize = 90_000;

/// Number of long graphs, which is more than a cache of graphs holds.
const GRAPHS: usize = 10;

/// The default of `--max-configs`.
const CONFIGS: usize = 500_000;

/// Maximum number of measured configurations of a call.
const MEASUREMENTS: usize = 2_000;

/// The stages, of which one request may need several.
pub const STAGES: [Stage; 6] = [
    Stage {
        name: "decompression, parts of a message",
        requests: || {
            Shape::ALL
                .map(|shape| Bomb::gzip(shape, (64 << 20) - 1024))
                .into()
        },
    },
    Stage {
        name: "reading a text, checks, hash, segments",
        requests: || {
            (0..GRAPHS)
                .map(|number| Bomb::of(&long_text(NODES, number)))
                .collect()
        },
    },
    Stage {
        name: "planning, runs, sums and heads, ranking",
        requests: || vec![Bomb::of(&many_tiles(CONFIGS).encode_to_vec())],
    },
    Stage {
        name: "learning",
        requests: || vec![Bomb::of(&many_measurements(MEASUREMENTS))],
    },
    Stage {
        name: "kernels of a fusion with many users",
        requests: || vec![Bomb::of(&fused_chain(400, 10_000, 400))],
    },
    Stage {
        name: "runs over the largest kernels",
        requests: || vec![Bomb::of(&fused_chain(500, 4, 500))],
    },
];
