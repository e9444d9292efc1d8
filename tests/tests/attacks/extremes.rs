//! The largest calls that the limits allow, in few bytes: a few rows stand for many, a list of zeros for many configurations, and a
//! short line of text for a long one.

use hlorank_proto::v1::{
    Adapt, FusionConfig, FusionConfigs, PackedFusionConfigs, ParameterConfig, ParameterConfigs,
    SuggestionSource, Task,
};
use hlorank_tests::attackers::{
    graphs::{GRAPHS, of_task, parameter, space_of, text},
    messages::{all_fused_but, chain_text, fused_chain},
};
use hlorank_tests::prelude::*;

use crate::cases::Case;

/// A form of configurations, and how it is made large.
struct Form {
    /// Its field in a batch.
    field: &'static str,
    /// A graph that it belongs to; another number is another graph.
    graph: fn(u32) -> Graph,
    /// This many configurations. They differ if that takes few bytes.
    batch: fn(usize) -> Configs,
    /// What suggestions are chosen from.
    source: SuggestionSource,
}

/// How large the calls are.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Configurations of a call, measured ones of it, and those of a report.
    configs: usize,
    learned: usize,
    reported: usize,
    /// Columns of measured configurations of two nodes.
    columns: usize,
    /// Nodes of a graph.
    nodes: usize,
    /// Whether combinations are searched, which takes thousands of runs.
    searches: bool,
}

/// As large as the limits allow by default.
pub(crate) const LARGEST: Sizes = Sizes {
    configs: CONFIGS,
    learned: LEARNED,
    reported: REPORTED,
    columns: ENTRIES / 2 / LEARNED,
    nodes: 90_000,
    searches: true,
};

/// So large that a debug build answers at once.
pub(crate) const BRIEF: Sizes = Sizes {
    configs: CONFIGS / 256,
    learned: LEARNED / 32,
    reported: REPORTED / 32,
    columns: ENTRIES / 2 / LEARNED / 8,
    nodes: 9_000,
    searches: false,
};

/// Configurable nodes with which the most configurations have the most entries.
const SLOTS: usize = 134;

/// The default of `--max-configs`, and of `--max-config-entries`.
const CONFIGS: usize = 500_000;
const ENTRIES: usize = 64 << 20;

/// Maximum numbers of measurements of a call and of a report.
const LEARNED: usize = 2_000;
const REPORTED: usize = 10_000;

/// Distinct rows of nodes, two of which make a configuration: their pairs are more than a call learns from.
const ROWS: usize = 45;

const FORMS: [Form; 9] = [
    Form {
        field: "layout_configs",
        graph: layout_graph,
        batch: |count| {
            Configs::LayoutConfigs(LayoutConfigs {
                configs: vec![LayoutConfig::default(); count],
            })
        },
        source: SuggestionSource::Batch,
    },
    Form {
        field: "packed_layout_configs",
        graph: layout_graph,
        batch: |count| {
            let count = count.min(CONFIGS / 8);
            Configs::PackedLayoutConfigs(PackedLayoutConfigs {
                config_count: number(count),
                tables: vec![table(); SLOTS],
                indices: (0..count * SLOTS).map(|at| u8::from(at % 7 == 0)).collect(),
            })
        },
        source: SuggestionSource::Nodes,
    },
    Form {
        field: "delta_layout_configs",
        graph: layout_graph,
        batch: |count| {
            Configs::DeltaLayoutConfigs(DeltaLayoutConfigs {
                tables: vec![table(); SLOTS],
                base: vec![0; SLOTS],
                change_counts: vec![1; count],
                change_slots: (0..count).map(|config| number(config % SLOTS)).collect(),
                change_entries: vec![1; count],
            })
        },
        source: SuggestionSource::Segments,
    },
    Form {
        field: "tile_configs",
        graph: kernel,
        batch: |count| {
            Configs::TileConfigs(TileConfigs {
                configs: vec![TileConfig::default(); count],
            })
        },
        source: SuggestionSource::Batch,
    },
    Form {
        field: "packed_tile_configs",
        graph: kernel,
        batch: |count| {
            let bounds = (0..count).flat_map(|config| [config / 1000 + 1, config % 1000 + 1]);
            let bounds = bounds.flat_map(|bound| number(bound).to_le_bytes());
            Configs::PackedTileConfigs(PackedTileConfigs {
                config_count: number(count),
                output_bound_count: 2,
                bounds: bounds.collect::<Vec<u8>>().into(),
                ..PackedTileConfigs::default()
            })
        },
        source: SuggestionSource::Batch,
    },
    Form {
        field: "fusion_configs",
        graph: program,
        batch: |count| {
            Configs::FusionConfigs(FusionConfigs {
                configs: vec![FusionConfig::default(); count],
            })
        },
        source: SuggestionSource::Batch,
    },
    Form {
        field: "packed_fusion_configs",
        graph: program,
        batch: |count| {
            // All are one configuration, except for what is measured.
            let bytes = SLOTS.div_ceil(8);
            let mut fused = vec![0; count * bytes];
            for config in 0..count.min(LEARNED) {
                let slot = config % SLOTS;
                fused[config * bytes + slot / 8] = 1 << (slot % 8);
            }
            Configs::PackedFusionConfigs(PackedFusionConfigs {
                config_count: number(count),
                fused: fused.into(),
            })
        },
        source: SuggestionSource::Batch,
    },
    Form {
        field: "node_feature_configs",
        graph: |number| space(2, ENTRIES / 2 / CONFIGS, number),
        batch: |count| rows(count, ENTRIES / 2 / CONFIGS),
        source: SuggestionSource::Batch,
    },
    Form {
        field: "parameter_configs",
        graph: |number| space(1, 1, number),
        batch: |count| {
            let value = |config: usize| ParameterConfig {
                values: vec![(config % 1000) as f32],
            };
            Configs::ParameterConfigs(ParameterConfigs {
                configs: (0..count).map(value).collect(),
            })
        },
        source: SuggestionSource::Batch,
    },
];

/// The fields of all forms.
pub(crate) fn fields() -> Vec<&'static str> {
    FORMS.iter().map(|form| form.field).collect()
}

/// Every form in every call that keeps nothing, and graphs that are long in few bytes.
pub(crate) fn extremes(sizes: Sizes) -> Vec<Case> {
    let (_, others) = all(sizes);
    others
}

/// All calls, in two parts: those that report, or use what was reported, and the others.
fn all(sizes: Sizes) -> (Vec<Case>, Vec<Case>) {
    let of_forms = FORMS.iter().flat_map(|form| {
        let case = |name: &str, method, messages: fn(&Form, Sizes, u32) -> Vec<Vec<u8>>| {
            let name = format!("{name}{}", form.field);
            Case::new(&name, method, move |number| messages(form, sizes, number))
        };
        [
            case("", "RankConfigs", rank),
            case("", "SuggestConfigs", suggest),
            case("", "RankConfigsStream", stream),
            case("", "ReportMeasurements", report),
            // What was reported, to its own target and to another.
            case("stored ", "RankConfigs", |form, _, number| {
                use_stored(form, number, "board")
            }),
            case("stored elsewhere ", "RankConfigs", |form, _, number| {
                use_stored(form, number, "other")
            }),
        ]
    });
    let wide: [(&str, &str, SizedMessage); 3] = [
        ("many columns", "RankConfigs", rank_many_columns),
        ("many columns", "ReportMeasurements", report_many_columns),
        ("many stored columns", "RankConfigs", use_many_columns),
    ];
    let wide = wide.into_iter().map(|(name, method, message)| {
        Case::new(name, method, move |number| {
            vec![message(sizes.columns, number)]
        })
    });
    let graphs = put_graphs(sizes.nodes);
    let fused = Case::new("a chain that 10,000 nodes read", "RankConfigs", |_| {
        vec![fused_chain(400, 10_000, 60)]
    });
    let all = of_forms.chain(wide).chain(graphs).chain([fused]);
    let wanted = std::env::var("ATTACK_CASES").unwrap_or_default();
    let all = all.filter(|case| case.name.contains(&wanted));
    all.partition(|case| case.name.contains("Report") || case.name.contains("stored"))
}

fn put_graphs(nodes: usize) -> impl Iterator<Item = Case> {
    GRAPHS.into_iter().map(move |(name, graph)| {
        Case::new(name, "PutGraph", move |number| {
            let graph = Some(graph(nodes, number));
            vec![PutGraphRequest { graph }.encode_to_vec()]
        })
    })
}

/// Every form in a report as large as the limits allow, with all that a measurement may have, and the calls that use what was
/// reported.
pub(crate) fn reports(sizes: Sizes) -> Vec<Case> {
    let whole = move |number: u32| {
        let id = |at: usize| format!("{at:060}{}", number % 10).into_bytes().into();
        let request = ReportMeasurementsRequest {
            ids: (0..sizes.reported).map(id).collect(),
            target: format!("{number:0256}"),
            repeats: vec![1; sizes.reported],
            failures: vec![0; sizes.reported],
            ..report_of(&FORMS[4], sizes, number)
        };
        vec![request.encode_to_vec()]
    };
    let whole = Case::new("a target of its own, and ids", "ReportMeasurements", whole);
    let (of_store, _) = all(sizes);
    of_store.into_iter().chain([whole]).collect()
}

/// Calls whose answers leave something in every cache: graphs, kernels of programs, embeddings, and what was learned.
pub(crate) fn cached_cases() -> Vec<Case> {
    let kernels = Case::new("many kernels", "RankConfigs", |number| {
        vec![rank_many_kernels(number)]
    });
    let learned = Case::new("many columns", "RankConfigs", |number| {
        vec![rank_many_columns(256, number)]
    });
    // Each of these graphs takes some megabytes.
    let graphs = put_graphs(BRIEF.nodes)
        .filter(|case| case.name.contains("nodes") || case.name.contains("names"));
    [kernels, learned].into_iter().chain(graphs).collect()
}

/// As many equal configurations as the limits allow, of which one is suggested.
pub(crate) fn equal_candidates() -> Vec<Case> {
    let forms = FORMS.iter();
    let forms = forms
        .filter(|form| ["packed_fusion_configs", "node_feature_configs"].contains(&form.field));
    let case = |form: &'static Form| {
        Case::new(form.field, "SuggestConfigs", move |number| {
            let request = SuggestConfigsRequest {
                graph: Some((form.graph)(number)),
                batch: Some(config_batch((form.batch)(CONFIGS))),
                count: 8,
                ..SuggestConfigsRequest::default()
            };
            vec![request.encode_to_vec()]
        })
    };
    forms.map(case).collect()
}

/// Makes a message of a size with a number.
type SizedMessage = fn(usize, u32) -> Vec<u8>;

/// A graph of nodes whose layouts are chosen.
fn layout_graph(number: u32) -> Graph {
    let dots = (2..).take(SLOTS).map(|id| operation("dot", id, &[1, 1]));
    let module = single([parameter(number)].into_iter().chain(dots).collect());
    of_task(Task::Layout, graph_of_module(module))
}

fn kernel(number: u32) -> Graph {
    let shape = format!("f32[640,{}]", 480 + number);
    let call = "  p1 = f32[8] custom-call(p0)\n".to_owned();
    text(Task::Tile, 0, &shape, [call])
}

fn program(number: u32) -> Graph {
    let text = chain_text(SLOTS, 1).replace("f32[8]", &format!("f32[{}]", 8 + number));
    of_task(Task::Fusion, graph_of_text(text))
}

/// A graph of a feature set that it describes.
fn space(nodes: u32, columns: usize, number: u32) -> Graph {
    let names = (0..columns).map(|column| format!("c{column}")).collect();
    space_of(nodes, names, number)
}

/// Configurations of two nodes, as pairs of a few rows. Many are all equal.
fn rows(count: usize, columns: usize) -> Configs {
    let table = (0..ROWS).flat_map(|row| vec![row as f32; columns]);
    let pair = |config: usize| match count {
        ..=LEARNED => [config % ROWS, config / ROWS % ROWS],
        _ => [0, 0],
    };
    let indices = (0..count).flat_map(pair).map(number);
    Configs::NodeFeatureConfigs(NodeFeatureConfigs {
        config_count: number(count),
        rows: table.flat_map(f32::to_le_bytes).collect::<Vec<u8>>().into(),
        row_indices: indices
            .flat_map(u32::to_le_bytes)
            .collect::<Vec<u8>>()
            .into(),
        column_count: number(columns),
        ..NodeFeatureConfigs::default()
    })
}

fn table() -> LayoutTable {
    // The default, and both orders of two dimensions.
    LayoutTable {
        entries: vec![0, 0, 0, 9, 0, 0, 15, 9, 0],
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a small number")
}

fn seconds(count: usize) -> Vec<f64> {
    let time = |config: usize| 1e-3 + 1e-6 * (config % 97) as f64;
    (0..count).map(time).collect()
}

fn adapt(number: u32, configs: Configs, count: usize) -> Adapt {
    Adapt {
        target: format!("board {number}"),
        batch: Some(config_batch(configs)),
        seconds: seconds(count),
        ..Adapt::default()
    }
}

fn rank(form: &Form, sizes: Sizes, number: u32) -> Vec<Vec<u8>> {
    let request = RankConfigsRequest {
        top_k: 10,
        adapt: Some(adapt(number, (form.batch)(sizes.learned), sizes.learned)),
        ..rank_request((form.graph)(number), (form.batch)(sizes.configs))
    };
    vec![request.encode_to_vec()]
}

fn suggest(form: &Form, sizes: Sizes, number: u32) -> Vec<Vec<u8>> {
    let request = SuggestConfigsRequest {
        graph: Some((form.graph)(number)),
        batch: Some(config_batch((form.batch)(sizes.configs))),
        adapt: Some(adapt(number, (form.batch)(sizes.learned), sizes.learned)),
        count: 64,
        pending: (0..256).collect(),
        source: if sizes.searches {
            form.source.into()
        } else {
            SuggestionSource::Batch.into()
        },
        ..SuggestConfigsRequest::default()
    };
    vec![request.encode_to_vec()]
}

fn stream(form: &Form, sizes: Sizes, number: u32) -> Vec<Vec<u8>> {
    let start = RankConfigsStart {
        graph: Some((form.graph)(number)),
        adapt: Some(adapt(number, (form.batch)(sizes.learned), sizes.learned)),
        top_k: 10,
        ..RankConfigsStart::default()
    };
    let batch = stream_batch((form.batch)(sizes.configs));
    vec![
        stream_start_with(start).encode_to_vec(),
        batch.encode_to_vec(),
    ]
}

fn report(form: &Form, sizes: Sizes, number: u32) -> Vec<Vec<u8>> {
    vec![report_of(form, sizes, number).encode_to_vec()]
}

fn report_of(form: &Form, sizes: Sizes, number: u32) -> ReportMeasurementsRequest {
    ReportMeasurementsRequest {
        graph: Some((form.graph)(0)),
        target: "board".to_owned(),
        batch: Some(config_batch((form.batch)(sizes.reported))),
        seconds: seconds(sizes.reported)
            .into_iter()
            .map(|time| time + 1e-9 * f64::from(number))
            .collect(),
        ..ReportMeasurementsRequest::default()
    }
}

fn use_stored(form: &Form, number: u32, target: &str) -> Vec<Vec<u8>> {
    let adapt = Adapt {
        target: target.to_owned(),
        use_stored: true,
        all_other_targets: true,
        ..adapt(number, (form.batch)(16), 16)
    };
    let request = RankConfigsRequest {
        adapt: Some(adapt),
        ..rank_request((form.graph)(0), (form.batch)(1_000))
    };
    vec![request.encode_to_vec()]
}

/// A chain that each configuration cuts in three at two nodes, so that nearly all kernels differ.
fn rank_many_kernels(step: u32) -> Vec<u8> {
    let cuts = (0..SLOTS).flat_map(|last| (0..last).map(move |first| [first, last]));
    let cuts: Vec<[usize; 2]> = cuts.step_by(5).collect();
    let fused = cuts.iter().flat_map(|cut| all_fused_but(SLOTS, cut));
    let fusions = Configs::PackedFusionConfigs(PackedFusionConfigs {
        config_count: number(cuts.len()),
        fused: fused.collect::<Vec<u8>>().into(),
    });
    rank_request(program(step), fusions).encode_to_vec()
}

fn rank_many_columns(columns: usize, number: u32) -> Vec<u8> {
    RankConfigsRequest {
        adapt: Some(adapt(number, rows(LEARNED, columns), LEARNED)),
        ..rank_request(space(2, columns, number), rows(LEARNED, columns))
    }
    .encode_to_vec()
}

fn report_many_columns(columns: usize, number: u32) -> Vec<u8> {
    ReportMeasurementsRequest {
        graph: Some(space(2, columns, 0)),
        target: format!("board {}", number % 20),
        batch: Some(config_batch(rows(LEARNED, columns))),
        seconds: seconds(LEARNED),
        ..ReportMeasurementsRequest::default()
    }
    .encode_to_vec()
}

fn use_many_columns(columns: usize, number: u32) -> Vec<u8> {
    let adapt = Adapt {
        target: "board 0".to_owned(),
        use_stored: true,
        all_other_targets: true,
        ..adapt(number, rows(16, columns), 16)
    };
    RankConfigsRequest {
        adapt: Some(adapt),
        ..rank_request(space(2, columns, 0), rows(1_000, columns))
    }
    .encode_to_vec()
}
