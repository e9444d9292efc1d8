//! What holds for configurations of every kind and in every form.

use hlorank_proto::v1::config_batch::Configs;
use proptest::{array::uniform3, collection::vec, prelude::*, sample::Index};

use hlorank_graph::{
    ConfigurationError, Configurations, EncodedBatch, FusionBatch, LayoutBatchBuilder, LayoutEntry,
    Limits, NodeFeatureBatch, Task, TileBatch, TileConfiguration,
};

use crate::forms::{forms, slots};

const LIMITS: fn() -> Limits = Limits::default;

fn tiles(tiles: &[[Vec<i64>; 3]]) -> Configurations {
    let mut batch = TileBatch::default();
    for [kernel_bounds, output_bounds, input_bounds] in tiles {
        let tile = TileConfiguration {
            kernel_bounds,
            output_bounds,
            input_bounds,
        };
        batch.push(tile, &LIMITS()).unwrap();
    }
    Configurations::Tile(batch)
}

fn layouts(layouts: &[Vec<[u32; 3]>]) -> Configurations {
    let mut builder = LayoutBatchBuilder::new(layouts[0].len(), LIMITS());
    for layout in layouts {
        let entry = |numbers: &[u32; 3]| LayoutEntry::from_numbers(*numbers, String::new).unwrap();
        builder
            .push(&layout.iter().map(entry).collect::<Vec<_>>())
            .unwrap();
    }
    Configurations::Layout(builder.build().unwrap())
}

/// Batches of every kind, some of which have equal configurations.
fn batches() -> impl Strategy<Value = Configurations> {
    let bounds = |most| vec(prop_oneof![0_i64..9, any::<i64>()], 0..most);
    let tile = [bounds(4), bounds(4), bounds(4)];
    let entry = uniform3(prop_oneof![0_u32..3, 0_u32..117_649]);
    let shapes = (1_usize..12, 1_usize..4, 1_usize..9);
    prop_oneof![
        vec(tile, 1..6).prop_map(|all| tiles(&all)),
        vec(
            [vec(0_i64..1000, 2), vec(0_i64..1000, 4), vec(-1_i64..5, 1)],
            1..6
        )
        .prop_map(|all| tiles(&all)),
        (1_usize..5, 1_usize..9)
            .prop_flat_map(move |(slots, configs)| vec(vec(entry.clone(), slots), configs))
            .prop_map(|all| layouts(&all)),
        (1_usize..20, 1_usize..9).prop_flat_map(|(slots, configs)| {
            let bits = vec(vec(any::<bool>(), slots), configs);
            bits.prop_map(move |bits| {
                Configurations::Fusion(FusionBatch::from_bits(slots, &bits, &LIMITS()).unwrap())
            })
        }),
        shapes.prop_flat_map(|(nodes, columns, configs)| {
            let values = vec((-1_i8..2).prop_map(f32::from), configs * nodes * columns);
            values.prop_map(move |values| {
                let batch = NodeFeatureBatch::from_values([nodes, columns], &values, &LIMITS());
                Configurations::FeatureSet(batch.unwrap())
            })
        }),
    ]
}

/// Returns a node for every slot of a batch.
fn nodes(batch: &Configurations) -> Vec<u32> {
    (0..).step_by(3).take(slots(batch)).collect()
}

fn read(form: &Configs, task: Task, nodes: &[u32]) -> Configurations {
    let encoded = EncodedBatch::try_from(form).unwrap();
    encoded.read(task, nodes, &LIMITS()).unwrap()
}

fn round_trip(batch: &Configurations) -> Configurations {
    let bytes: Vec<Vec<u8>> = (0..batch.len()).map(|each| batch.canonical(each)).collect();
    let bytes = bytes.iter().map(Vec::as_slice);
    Configurations::from_canonical(batch.task(), bytes, &LIMITS()).unwrap()
}

proptest! {
    #[test]
    fn every_form_gives_the_batch_back(batch in batches()) {
        let nodes = nodes(&batch);
        prop_assert!(!batch.is_empty());
        for form in forms(&batch, &nodes).iter().chain([&batch.to_smallest_form()]) {
            prop_assert_eq!(&read(form, batch.task(), &nodes), &batch);
        }
    }

    #[test]
    fn configurations_come_back_from_their_bytes(batch in batches()) {
        prop_assert_eq!(&round_trip(&batch), &batch);
    }

    #[test]
    fn a_selection_holds_what_it_selects(batch in batches(), numbers in vec(any::<Index>(), 1..9)) {
        let numbers: Vec<usize> = numbers.iter().map(|number| number.index(batch.len())).collect();
        let selected = batch.select(&numbers);
        prop_assert_eq!(selected.len(), numbers.len());
        for (place, &number) in numbers.iter().enumerate() {
            prop_assert_eq!(selected.canonical(place), batch.canonical(number));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..40)) {
        for task in Task::ALL {
            let read = Configurations::from_canonical(task, [bytes.as_slice()], &LIMITS());
            // A varint may have zeros at its end, so equal configurations are all that can be asked for.
            if let Ok(read) = read {
                prop_assert_eq!(&round_trip(&read), &read);
            }
        }
    }
}

#[test]
fn nothing_is_no_batch() {
    for task in Task::ALL {
        let read = Configurations::from_canonical(task, [], &LIMITS());
        assert_eq!(read, Err(ConfigurationError::Empty));
    }
    assert!(tiles(&[]).is_empty());
}

#[test]
fn the_smallest_form_that_can_hold_a_batch_is_sent() {
    let two_tiles = |outputs: [Vec<i64>; 2]| tiles(&outputs.map(|output| [vec![], output, vec![]]));
    let changed_layouts = |changed: usize| {
        let layout = |config| {
            let mut entries = vec![[0; 3]; 40];
            entries[..changed].fill([config, 0, 0]);
            entries
        };
        layouts(&(0..10).map(layout).collect::<Vec<_>>())
    };
    let other_list = tiles(&[[vec![1], vec![], vec![]], [vec![], vec![1], vec![]]]);
    for (batch, form) in [
        (two_tiles([vec![1], vec![2]]), "packed_tile_configs"),
        (two_tiles([vec![1], vec![2, 3]]), "tile_configs"),
        (two_tiles([vec![1], vec![1 << 40]]), "tile_configs"),
        (other_list, "tile_configs"),
        (changed_layouts(3), "delta_layout_configs"),
        (changed_layouts(30), "packed_layout_configs"),
    ] {
        let encoded = EncodedBatch::try_from(&batch.to_smallest_form()).unwrap();
        assert_eq!(encoded.field(), form, "{batch:?}");
    }
}

#[test]
fn a_short_message_is_weighed_by_the_batch_that_it_holds() {
    const SLOTS: usize = 500;
    const CONFIGS: usize = 40;
    let bits = vec![vec![true; SLOTS]; CONFIGS];
    let values = vec![0.5; CONFIGS * SLOTS];
    for (batch, bytes) in [
        (
            layouts(&vec![vec![[0; 3]; SLOTS]; CONFIGS]),
            CONFIGS * SLOTS * size_of::<u16>(),
        ),
        (
            Configurations::Fusion(FusionBatch::from_bits(SLOTS, &bits, &LIMITS()).unwrap()),
            CONFIGS * SLOTS / 8,
        ),
        (
            Configurations::FeatureSet(
                NodeFeatureBatch::from_values([SLOTS, 1], &values, &LIMITS()).unwrap(),
            ),
            CONFIGS * SLOTS * size_of::<f32>(),
        ),
        (
            tiles(&vec![[vec![], vec![], vec![]]; CONFIGS]),
            CONFIGS * size_of::<u32>(),
        ),
    ] {
        let encoded = EncodedBatch::try_from(&batch.to_smallest_form()).unwrap();
        let read = encoded.read_bytes(SLOTS, &LIMITS());
        assert!(read >= bytes, "{:?}: {read}, not {bytes}", batch.task());
    }
}
