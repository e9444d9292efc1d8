//! Measurements that cannot be.

use hlorank_proto::v1::Adapt;
use hlorank_tests::prelude::*;

use super::request::{node, packed, readable, sound, tables, tiles};

/// A valid request with some measurements of two configurations, all of them sound.
fn measured(change: impl FnOnce(&mut Adapt)) -> RankConfigsRequest {
    let batch = Some(config_batch(packed(2, tables(), &[0, 0, 1, 1])));
    let mut adapt = Adapt {
        target: "cpu".to_owned(),
        batch,
        seconds: vec![0.5, 0.25],
        ..Adapt::default()
    };
    change(&mut adapt);
    RankConfigsRequest {
        adapt: Some(adapt),
        ..sound()
    }
}

#[tokio::test]
async fn impossible_measurements_are_refused() {
    let server = TestServer::start().await;
    let time = |seconds: f64| measured(|adapt| adapt.seconds[1] = seconds);
    let out_of_range = |words| invalid("VALUE_OUT_OF_RANGE", words);
    let cases = vec![
        (time(0.0), out_of_range(&["adapt.seconds[1]", "1e-12"])),
        (time(-1.0), out_of_range(&["adapt.seconds[1]", "-1"])),
        (time(f64::NAN), out_of_range(&["adapt.seconds[1]", "NaN"])),
        (
            time(f64::INFINITY),
            out_of_range(&["adapt.seconds[1]", "inf"]),
        ),
        (time(1e300), out_of_range(&["adapt.seconds[1]", "1e9"])),
        (
            measured(|adapt| adapt.repeats = vec![1, 0]),
            out_of_range(&["adapt.repeats[1]", "from 1"]),
        ),
        (
            measured(|adapt| adapt.failures = vec![0, 9]),
            out_of_range(&["adapt.failures[1]", "9"]),
        ),
        (
            measured(|adapt| adapt.failures = vec![0, 1]),
            out_of_range(&["adapt.seconds[1]", "failed"]),
        ),
        (
            measured(|adapt| adapt.seconds.truncate(1)),
            invalid("WRONG_COUNT", &["adapt.seconds", "1 values"]),
        ),
        (
            measured(|adapt| adapt.batch = None),
            invalid("WRONG_COUNT", &["adapt.seconds", "2 values", "0 measured"]),
        ),
        (
            measured(|adapt| adapt.repeats = vec![1]),
            invalid("WRONG_COUNT", &["adapt.repeats"]),
        ),
        (
            measured(|adapt| adapt.target.clear()),
            invalid("FIELD_MISSING", &["adapt.target", "hardware"]),
        ),
        (
            measured(|adapt| adapt.target = "c".repeat(257)),
            invalid("FIELD_INVALID", &["adapt.target", "257"]),
        ),
    ];
    server.refuses(&sound(), cases).await;
}

#[tokio::test]
async fn measured_configurations_are_of_the_graph_and_not_too_many() {
    let server = TestServer::start().await;
    let of = |configs, count: usize| {
        measured(|adapt| {
            (adapt.batch, adapt.seconds) = (Some(config_batch(configs)), vec![1.0; count]);
        })
    };
    let many = packed(2_001, tables(), &[0; 4_002]);
    let cases = vec![
        (
            of(readable(vec![node(0, &[0, 1])]), 1),
            invalid("NODE_NOT_CONFIGURABLE", &["adapt.batch", "node 0"]),
        ),
        (
            of(readable(vec![node(3, &[0, 0])]), 1),
            invalid("LAYOUT_INVALID", &["adapt.batch"]),
        ),
        (
            of(tiles(), 1),
            invalid("GRAPH_TASK_MISMATCH", &["adapt.batch"]),
        ),
        (
            of(many, 2_001),
            invalid("TOO_MANY_MEASUREMENTS", &["adapt.batch", "2001", "2000"]),
        ),
    ];
    server.refuses(&sound(), cases).await;
}
