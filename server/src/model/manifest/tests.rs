use hlorank_graph::Pad;
use serde_json::{Value, json};

use super::*;
use crate::model::{Chunking, ModelNodes, Permutations, WholeGraphSettings};

fn manifest() -> Value {
    json!({
        "schema": 1, "name": "m", "version": 3, "task": "tile", "architecture": "a", "kind": "segment",
        "feature_digest": FeatureSet::TPUGRAPHS.digest().to_string(), "embedding_size": 64,
        "buckets": [8, 64, 512], "pad_value": -1, "batch_dependent": false, "files": {},
        "training_data_digest": "00".repeat(32), "measured_quality": {"kendall_tau": 0.5}, "licence": "Apache-2.0"
    })
}

/// Changes fields of a manifest; `null` removes one.
fn changed<const N: usize>(mut manifest: Value, changes: [(&str, Value); N]) -> Value {
    let fields = manifest.as_object_mut().unwrap();
    for (field, value) in changes {
        if value.is_null() {
            fields.remove(field);
        } else {
            fields.insert(field.to_owned(), value);
        }
    }
    manifest
}

fn whole_graph_manifest() -> Value {
    let changes = [
        ("kind", json!("graph")),
        ("chunk_configs", json!(5)),
        ("embedding_size", Value::Null),
        ("buckets", Value::Null),
    ];
    changed(manifest(), changes)
}

fn read(manifest: &Value) -> Result<Manifest, Rejection> {
    Manifest::read(manifest.to_string().as_bytes())
}

#[test]
fn a_sound_manifest_is_read() {
    let manifest = read(&manifest()).unwrap();
    assert_eq!(manifest.kind.to_string(), "segment");
    let ModelKind::Segment(settings) = &manifest.kind else {
        panic!("a segment model")
    };
    assert_eq!(manifest.task, Task::Tile);
    assert_eq!(manifest.pad, Pad::MinusOne);
    assert_eq!(
        [1, 8, 9, 512].map(|nodes| settings.bucket(nodes)),
        [8, 8, 64, 512]
    );
}

#[test]
fn what_is_expected_of_run_times_is_the_models_or_follows_from_the_unit() {
    let unit = ("unit", json!("seconds"));
    let of = |slope: f64, spread: f64| ("prior", json!({"slope": slope, "spread": spread}));
    for (written, [slope, spread]) in [
        (manifest(), [0.05, 0.5]),
        (changed(manifest(), [unit.clone()]), [1.0, 0.5]),
        (changed(manifest(), [unit, of(0.076, 0.2)]), [0.076, 0.2]),
    ] {
        let prior = Prior::of_model(slope, spread);
        assert_eq!(read(&written).unwrap().prior, prior, "{written}");
    }
    for wrong in [
        json!(1),
        json!({"slope": 1}),
        json!({"slope": 0, "spread": 1}),
        json!({"slope": 1, "spread": 1, "mean": 0}),
    ] {
        let refused = read(&changed(manifest(), [("prior", wrong)])).unwrap_err();
        assert_names(&refused, "prior");
        assert!(refused.message.contains("slope and spread"), "{refused}");
    }
}

#[test]
fn a_newer_format_is_told_before_its_fields_are_read() {
    let newer = Manifest::read(br#"{"schema": 2, "task": 5}"#);
    assert_eq!(newer.unwrap_err().reason, "MANIFEST_NEWER");
}

#[test]
fn a_whole_graph_model_says_how_many_configurations_it_takes() {
    for batch_dependent in [false, true] {
        let written = changed(
            whole_graph_manifest(),
            [("batch_dependent", json!(batch_dependent))],
        );
        let manifest = read(&written).unwrap();
        let expected = WholeGraphSettings {
            chunk_configs: 5,
            batch_dependent,
            nodes: ModelNodes::All,
            chunking: Chunking::Full,
            permutations: None,
        };
        assert_eq!(manifest.kind, ModelKind::WholeGraph(expected));
        assert_eq!(manifest.kind.to_string(), "graph");
        assert!(manifest.kind.allows_partial());
    }
}

#[test]
fn a_whole_graph_model_of_layouts_may_take_pruned_nodes_and_average_even_chunks() {
    let changes = [
        ("task", json!("layout")),
        ("batch_dependent", json!(true)),
        ("nodes", json!("pruned")),
        ("chunking", json!("even")),
        ("permutations", json!({"count": 10, "seed": u64::MAX})),
    ];
    let manifest = read(&changed(whole_graph_manifest(), changes)).unwrap();
    let permutations = Permutations {
        count: 10,
        seed: u64::MAX,
    };
    let expected = WholeGraphSettings {
        chunk_configs: 5,
        batch_dependent: true,
        nodes: ModelNodes::Pruned,
        chunking: Chunking::Even,
        permutations: Some(permutations),
    };
    assert_eq!(manifest.kind, ModelKind::WholeGraph(expected));
    assert!(!manifest.kind.allows_partial());
}

#[test]
fn segments_of_kernels_may_be_larger() {
    let of = |task, nodes, largest| {
        let changes = [
            ("task", json!(task)),
            ("max_segment_nodes", json!(nodes)),
            ("buckets", json!([8, largest])),
        ];
        read(&changed(manifest(), changes))
    };
    let read = of("tile", 2048, 2048).unwrap();
    let ModelKind::Segment(settings) = &read.kind else {
        panic!("a segment model")
    };
    assert_eq!(settings.max_segment_nodes, 2048);
    assert!(of("layout", 512, 512).is_ok());
    for (task, nodes, largest, named) in [
        ("tile", 2049, 2048, "max_segment_nodes"),
        ("tile", 256, 512, "max_segment_nodes"),
        ("tile", 1024, 512, "buckets"),
        ("layout", 1024, 1024, "max_segment_nodes"),
    ] {
        assert_names(&of(task, nodes, largest).unwrap_err(), named);
    }
}

#[test]
fn a_long_value_is_shortened_in_a_message() {
    let long = "é".repeat(1 << 20);
    for (field, value) in [
        ("task", json!(long)),
        ("version", json!(long)),
        ("buckets", json!(vec![4; 1 << 20])),
        ("feature_digest", json!(long)),
        ("training_data_digest", json!(long)),
    ] {
        let written = changed(manifest(), [(field, value)]);
        let message = read(&written).unwrap_err().to_string();
        assert!(message.len() < 400, "{field}: {} bytes", message.len());
    }
}

fn assert_names(refused: &Rejection, field: &str) {
    let is_named = refused.message.contains(&format!("`{field}` is `"));
    assert!(
        refused.reason == "MANIFEST_INVALID" && is_named,
        "{refused}"
    );
}

fn assert_each_is_named<const N: usize>(manifest: &Value, wrong: [(&str, Value); N]) {
    for (field, value) in wrong {
        let written = changed(manifest.clone(), [(field, value)]);
        assert_names(&read(&written).unwrap_err(), field);
    }
}

#[test]
fn each_wrong_field_is_named() {
    let wrong = [
        ("task", json!("schedule")),
        ("unit", json!("hours")),
        ("kind", json!("node")),
        ("batch_dependent", json!(true)),
        ("version", json!(0)),
        ("embedding_size", Value::Null),
        ("embedding_size", json!(0)),
        ("chunk_configs", json!(5)),
        ("nodes", json!("pruned")),
        ("chunking", json!("even")),
        ("permutations", json!({"count": 10, "seed": 101})),
        ("pad_value", json!(1)),
        ("buckets", Value::Null),
        ("buckets", json!([8, 4, 512])),
        ("buckets", json!([8, 256])),
        ("buckets", json!([6, 512])),
        ("buckets", json!([8, 200_000])),
        ("embedding_size", json!(1_000_000)),
        ("buckets", json!([])),
        ("training_data_digest", json!("none")),
    ];
    assert_each_is_named(&manifest(), wrong);
}

fn named_manifest() -> Value {
    let set =
        json!({"name": "loops", "node_features": ["depth", "flops"], "config_features": ["tile"]});
    let json = r#"["loops",["depth","flops"],["tile"]]"#;
    let digest = blake3::hash(json.as_bytes()).to_string();
    let changes = [
        ("pad_value", Value::Null),
        ("task", json!("feature-set")),
        ("feature_set", set),
        ("feature_digest", json!(digest)),
    ];
    changed(whole_graph_manifest(), changes)
}

#[test]
fn a_model_of_a_feature_set_names_its_columns() {
    let manifest = read(&named_manifest()).unwrap();
    assert_eq!((manifest.task, manifest.pad), (Task::FeatureSet, Pad::Zero));
    let set = manifest.features.named().unwrap();
    assert_eq!(
        (
            set.name(),
            set.node_features().len(),
            set.config_features().len()
        ),
        ("loops", 2, 1)
    );
}

#[test]
fn each_wrong_field_of_a_model_of_a_feature_set_is_named() {
    let set = |name: &str, nodes: Value| json!({"name": name, "node_features": nodes, "config_features": ["t"]});
    let wrong = [
        ("pad_value", json!(0)),
        ("feature_set", Value::Null),
        ("feature_set", json!("loops")),
        (
            "feature_set",
            json!({"name": "loops", "node_features": ["a"]}),
        ),
        ("feature_set", set("a\"b", json!(["a"]))),
        (
            "feature_set",
            json!({"name": "loops", "node_features": [], "config_features": []}),
        ),
        ("feature_set", set("loops", json!(["a", "a"]))),
        ("nodes", json!("pruned")),
    ];
    assert_each_is_named(&named_manifest(), wrong);
    let mut other = named_manifest();
    other["feature_set"]["config_features"] = json!(["tiles"]);
    assert_eq!(read(&other).unwrap_err().reason, "FEATURE_DIGEST_MISMATCH");
    let of_segments = [
        ("kind", json!("segment")),
        ("chunk_configs", Value::Null),
        ("embedding_size", json!(64)),
        ("buckets", json!([8, 512])),
    ];
    let segment = changed(named_manifest(), of_segments);
    assert_names(&read(&segment).unwrap_err(), "kind");
    assert_each_is_named(&manifest(), [("feature_set", set("loops", json!(["a"])))]);
}

#[test]
fn each_wrong_field_of_a_whole_graph_model_is_named() {
    let wrong = [
        ("chunk_configs", Value::Null),
        ("chunk_configs", json!(0)),
        ("embedding_size", json!(64)),
        ("buckets", json!([512])),
        ("max_segment_nodes", json!(512)),
        ("pad_value", json!(1)),
        ("nodes", json!("pruned")),
        ("nodes", json!("half")),
        ("chunking", json!("even")),
        ("chunking", json!("odd")),
        ("permutations", json!({"count": 10, "seed": 101})),
    ];
    assert_each_is_named(&whole_graph_manifest(), wrong);
    let dependent = changed(whole_graph_manifest(), [("batch_dependent", json!(true))]);
    let wrong = [0, 65].map(|count| ("permutations", json!({"count": count, "seed": 1})));
    assert_each_is_named(&dependent, wrong);
}

#[test]
fn targets_of_a_manifest_are_checked() {
    let one = json!({"hardware": "AMD EPYC", "compiler": "IREE", "version": "3.13.0", "flags": ["1 thread"]});
    let written = changed(manifest(), [("targets", json!([one]))]);
    let targets = read(&written).unwrap().targets;
    assert_eq!(targets[0].to_string(), "AMD EPYC, IREE 3.13.0, 1 thread");
    let long = "x".repeat(300);
    for wrong in [
        json!([]),
        json!({}),
        json!("AMD EPYC, IREE"),
        json!([{"hardware": "AMD EPYC"}]),
        json!([{"hardware": "", "compiler": "IREE"}]),
        json!([{"hardware": "AMD, EPYC", "compiler": "IREE"}]),
        json!([{"hardware": "AMD EPYC", "compiler": "XLA of jax"}]),
        json!([{"hardware": "AMD EPYC", "compiler": "IREE", "cores": 2}]),
        json!([{"hardware": long, "compiler": "IREE"}]),
        json!(vec![one; 17]),
    ] {
        assert_each_is_named(&manifest(), [("targets", wrong)]);
    }
}
