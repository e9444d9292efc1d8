//! Invalid configurations.

use hlorank_tests::prelude::*;

use super::request::{delta, node, packed, readable, sound, tables, with_configs};

/// Returns a good tile, and one with these output bounds.
fn tile_of(output_bounds: &[i64]) -> RankConfigsRequest {
    let tile = |bounds: &[i64]| TileConfig {
        output_bounds: bounds.to_vec(),
        ..TileConfig::default()
    };
    let configs = TileConfigs {
        configs: vec![tile(&[8]), tile(output_bounds)],
    };
    let graph = kernel_graph(graph_of_module(two_dots()));
    rank_request(graph, Configs::TileConfigs(configs))
}

#[tokio::test]
async fn tiles_that_xla_refuses_are_refused() {
    let refusal = |words| invalid("VALUE_OUT_OF_RANGE", words);
    let cases = [
        (
            tile_of(&[8, 0]),
            refusal(&["configuration 1", "output_bounds is 0"]),
        ),
        (
            tile_of(&[-1]),
            refusal(&["configuration 1", "output_bounds is -1"]),
        ),
        (
            tile_of(&[i64::MIN, 2]),
            refusal(&["configuration 1", "at least 1"]),
        ),
        (
            tile_of(&[i64::MAX, i64::MAX]),
            refusal(&["configuration 1", "2^63 elements"]),
        ),
    ];
    let server = TestServer::start().await;
    server.refuses(&tile_of(&[i64::MAX]), cases).await;
}

#[tokio::test]
async fn broken_configurations_are_refused() {
    let cases = vec![
        (
            readable(vec![node(2, &[0, 1])]),
            invalid("NODE_NOT_CONFIGURABLE", &["configuration 0", "node 2"]),
        ),
        (
            readable(vec![node(3, &[0]), node(3, &[1])]),
            invalid("NODE_SET_TWICE", &["configuration 0", "node 3"]),
        ),
        (
            readable(vec![node(4, &[0, 6])]),
            invalid(
                "VALUE_OUT_OF_RANGE",
                &["configuration 0, node 4", "6", "-1..5"],
            ),
        ),
        (
            readable(vec![node(4, &[i32::MAX])]),
            invalid("VALUE_OUT_OF_RANGE", &["node 4", "2147483647"]),
        ),
        (
            readable(vec![node(4, &[i32::MIN])]),
            invalid("VALUE_OUT_OF_RANGE", &["node 4", "-2147483648"]),
        ),
        (
            readable(vec![node(4, &[-2])]),
            invalid("VALUE_OUT_OF_RANGE", &["node 4", "-2", "-1..5"]),
        ),
        (
            readable(vec![node(3, &[1, 1])]),
            invalid(
                "LAYOUT_INVALID",
                &["configuration 0, node 3", "output", "1 twice"],
            ),
        ),
        (
            readable(vec![node(4, &[0, 2])]),
            invalid(
                "LAYOUT_INVALID",
                &[
                    "configuration 0, node 4",
                    "output",
                    "dimension 2",
                    "2 dimensions",
                ],
            ),
        ),
        (
            packed(
                2,
                vec![
                    LayoutTable {
                        entries: vec![0, 0, 0, 0, 0, 8]
                    };
                    2
                ],
                &[0, 0, 0, 1],
            ),
            invalid(
                "LAYOUT_INVALID",
                &["configuration 1, node 4", "second operand", "0 twice"],
            ),
        ),
        (
            Configs::LayoutConfigs(LayoutConfigs::default()),
            invalid("CONFIGS_EMPTY", &["at least one"]),
        ),
        (
            packed(0, tables(), &[]),
            invalid("CONFIGS_EMPTY", &["at least one"]),
        ),
        (
            packed(2, tables(), &[0, 0, 1]),
            invalid("WRONG_COUNT", &["index matrix", "3", "4"]),
        ),
        (
            packed(1, vec![tables()[0].clone()], &[0]),
            invalid("WRONG_COUNT", &["tables", "1", "2"]),
        ),
        (
            packed(1, tables(), &[0, 2]),
            invalid(
                "INDEX_OUT_OF_RANGE",
                &["configuration 0", "slot 1", "2 entries"],
            ),
        ),
        (
            packed(
                1,
                vec![
                    LayoutTable {
                        entries: vec![0, 0, 117_649]
                    };
                    2
                ],
                &[0, 0],
            ),
            invalid("VALUE_OUT_OF_RANGE", &["117649", "117648", "slot 0"]),
        ),
        (
            packed(
                1,
                vec![
                    LayoutTable {
                        entries: vec![0, 0]
                    };
                    2
                ],
                &[0, 0],
            ),
            invalid("WRONG_COUNT", &["slot 0"]),
        ),
        (
            delta(vec![2], vec![0]),
            invalid("NODE_NOT_CONFIGURABLE", &["slot 2", "2 slots"]),
        ),
        (
            delta(vec![1], vec![7]),
            invalid("INDEX_OUT_OF_RANGE", &["entry 7", "slot 1"]),
        ),
        (
            delta(vec![1, 1], vec![0, 1]),
            invalid("NODE_SET_TWICE", &["slot 1"]),
        ),
        (
            delta(vec![1, 0], vec![0]),
            invalid("WRONG_COUNT", &["change_entries", "1", "2"]),
        ),
    ];
    let cases = cases
        .into_iter()
        .map(|(configs, refusal)| (with_configs(configs), refusal));
    TestServer::start().await.refuses(&sound(), cases).await;
}
