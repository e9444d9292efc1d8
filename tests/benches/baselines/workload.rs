//! Workloads: new configurations of measured graphs, drawn from seeds so that every system gets the same.

use hlorank_graph::FeatureFile;
use hlorank_tests::prelude::*;

/// A graph, and how its configurations are drawn.
pub(crate) struct Workload {
    /// Part of the names of its figures.
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) what: &'static str,
    /// Configurations of one request.
    pub(crate) configs: usize,
    pub(crate) graph: MeasuredGraph,
    pub(crate) hash: Digest,
    draw: Draw,
}

/// Target ratios of hlorank's throughput to that of another system: where rows are new, and where they repeat.
const NEW_ROWS: f64 = 2.0;
const REPEATED_ROWS: f64 = 5.0;

/// How configurations are drawn.
enum Draw {
    /// Every entry of every layout is drawn from the measured ones.
    Entries,
    /// Children of one random layout, each with 1 to 3 changed entries, as in a genetic search.
    Children,
    /// Measured layouts, none twice in a request.
    Measured,
    /// Tiles of random bounds.
    Tiles,
}

/// Requests of different phases differ.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    Check,
    WarmUp,
    Loaded,
    Alone,
}

/// Maximum bound of random tiles, large enough that no two tiles of a run are equal.
const LARGEST_BOUND: i32 = 4096;

impl Workload {
    /// Returns the workloads whose graphs are available.
    pub(crate) fn all() -> Vec<Self> {
        let window = fixture("measured/layout_random_window_nchw_train.pb");
        let kernels = fixture("measured/tile_kernels.pb");
        let mut workloads = vec![
            Self::new(
                "window",
                "64 random layouts of a window-attention training step",
                64,
                &window,
                Draw::Entries,
            ),
            Self::new(
                "search",
                "100 children of a random layout of that step, 1 to 3 nodes changed in each",
                100,
                &window,
                Draw::Children,
            ),
            Self::new(
                "tiles",
                "64 random tiles of a convolution kernel",
                64,
                &kernels,
                Draw::Tiles,
            ),
        ];
        if let Some(alexnet) = shared("data/tpu/alexnet_layout.npz") {
            let random = "1,000 random layouts of AlexNet (TpuGraphs)";
            let measured = "1,000 of the layouts that TpuGraphs measured of AlexNet";
            workloads.push(Self::new("alexnet", random, 1000, &alexnet, Draw::Entries));
            workloads.push(Self::new(
                "alexnet_measured",
                measured,
                1000,
                &alexnet,
                Draw::Measured,
            ));
        }
        workloads
    }

    fn new(
        name: &'static str,
        what: &'static str,
        configs: usize,
        file: &Path,
        draw: Draw,
    ) -> Self {
        let graph = read_graphs(file).remove(0);
        let hash = graph.graph.hash();
        Self {
            name,
            what,
            configs,
            graph,
            hash,
            draw,
        }
    }

    /// Target ratio of hlorank's throughput to that of another system.
    pub(crate) fn target(&self) -> f64 {
        match self.draw {
            Draw::Measured => REPEATED_ROWS,
            Draw::Entries | Draw::Children | Draw::Tiles => NEW_ROWS,
        }
    }

    /// Writes the features of the graph where the Python systems read them.
    pub(crate) fn write_graph(&self, graphs: &Path) {
        let folder = graphs.join(self.graph.graph.task().name());
        fs::create_dir_all(&folder).expect("target can be written");
        let file = folder.join(format!("{}.npz", self.hash));
        FeatureFile::write(&file, &self.graph, Pad::Zero).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Returns the configurations of one request. They depend only on the arguments.
    pub(crate) fn configs(&self, round: u64, phase: Phase, request: usize) -> Configs {
        let seed = self
            .name
            .bytes()
            .fold(round * 4 + phase as u64, |seed, byte| {
                seed * 257 + u64::from(byte)
            });
        let random = &mut Rng::with_seed(seed.wrapping_mul(1 << 24).wrapping_add(request as u64));
        // The other systems know these two kinds.
        match configurations(&self.graph) {
            Configurations::Layout(batch) => {
                Configs::PackedLayoutConfigs(layouts(batch, &self.draw, self.configs, random))
            }
            Configurations::Tile(batch) => {
                Configs::PackedTileConfigs(tiles(batch, self.configs, random))
            }
            _ => unreachable!("no such workload"),
        }
    }
}

fn layouts(
    batch: &LayoutBatch,
    draw: &Draw,
    configs: usize,
    random: &mut Rng,
) -> PackedLayoutConfigs {
    let entry = |random: &mut Rng, slot: usize| {
        u8::try_from(random.usize(..batch.table(slot).len()))
            .expect("tables of at most 256 entries")
    };
    let layout = |random: &mut Rng| -> Vec<u8> {
        (0..batch.slots()).map(|slot| entry(random, slot)).collect()
    };
    let indices: Vec<u8> = match draw {
        Draw::Children => {
            let parent = layout(random);
            let child = |random: &mut Rng| {
                let mut child = parent.clone();
                for _ in 0..random.usize(1..=3) {
                    let slot = random.usize(..batch.slots());
                    child[slot] = entry(random, slot);
                }
                child
            };
            (0..configs).flat_map(|_| child(random)).collect()
        }
        Draw::Measured => {
            let chosen = random.choose_multiple(0..batch.len(), configs);
            let indices = chosen.into_iter().flat_map(|config| batch.row(config));
            indices
                .map(|&index| u8::try_from(index).expect("tables of at most 256 entries"))
                .collect()
        }
        Draw::Entries | Draw::Tiles => (0..configs).flat_map(|_| layout(random)).collect(),
    };
    PackedLayoutConfigs {
        config_count: count(configs),
        indices: indices.into(),
        tables: tables(batch),
    }
}

fn tables(batch: &LayoutBatch) -> Vec<LayoutTable> {
    let table = |slot| {
        let entries = batch.table(slot).iter();
        LayoutTable {
            entries: entries.flat_map(|entry| entry.numbers()).collect(),
        }
    };
    (0..batch.slots()).map(table).collect()
}

fn tiles(batch: &TileBatch, configs: usize, random: &mut Rng) -> PackedTileConfigs {
    let like = batch.get(0);
    let like = like.view();
    let counts = [like.kernel_bounds, like.output_bounds, like.input_bounds].map(<[i64]>::len);
    let bounds = (0..configs * counts.iter().sum::<usize>())
        .flat_map(|_| random.i32(1..=LARGEST_BOUND).to_le_bytes());
    let [kernel_bound_count, output_bound_count, input_bound_count] = counts.map(count);
    PackedTileConfigs {
        config_count: count(configs),
        kernel_bound_count,
        output_bound_count,
        input_bound_count,
        bounds: bounds.collect::<Vec<u8>>().into(),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a small number")
}
