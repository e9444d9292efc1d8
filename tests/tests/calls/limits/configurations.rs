//! Limits of the configurations of a batch and of their parts.

use hlorank_tests::prelude::*;

use crate::limits::request::{Past, Servers, features, kernel, layout_graph, tiles, wide_tiles};

/// Entries of a table: the compiler's layout, and the orders 1, 0.
const ENTRIES: [u32; 6] = [0, 0, 0, 9, 0, 0];

fn to_u32(count: usize) -> u32 {
    count.try_into().unwrap()
}

/// Returns requests for the same layouts of the first dots in every form. All but the last are the compiler's.
fn layout_requests(count: usize, slots: usize) -> Vec<RankConfigsRequest> {
    let nodes = &[3, 4][..slots];
    let mut choices = vec![vec![0]; count - 1];
    choices.push(vec![1, 0]);
    let graph = Graph {
        configurable_nodes: nodes.to_vec(),
        ..layout_graph()
    };
    forms(&Configurations::Layout(layouts(slots, &choices)), nodes)
        .into_iter()
        .map(|configs| rank_request(graph.clone(), configs))
        .collect()
}

fn readable_tiles(count: usize, dimensions: usize) -> Configs {
    let tile = TileConfig {
        output_bounds: vec![1; dimensions],
        ..TileConfig::default()
    };
    Configs::TileConfigs(TileConfigs {
        configs: vec![tile; count],
    })
}

#[tokio::test]
async fn configurations_of_every_form() {
    let servers = Servers::start(&["--max-configs=3"]).await;
    let forms = |count| {
        let tiles = [readable_tiles(count, 2), tiles(count)];
        let tiles = tiles.map(|configs| rank_request(kernel(), configs));
        layout_requests(count, 2).into_iter().chain(tiles)
    };
    let past = Past::setting("TOO_MANY_CONFIGS", "--max-configs", 4, 3);
    servers.check(forms(3), forms(4), past).await;
}

#[tokio::test]
async fn entries_of_every_form() {
    let servers = Servers::start(&["--max-config-entries=5"]).await;
    let past = [layout_requests(6, 1), layout_requests(3, 2)].concat();
    let rejection = Past::setting("TOO_MANY_CONFIG_ENTRIES", "--max-config-entries", 6, 5);
    servers.check(layout_requests(5, 1), past, rejection).await;
    servers.take(rank_request(kernel(), tiles(64))).await;
}

#[tokio::test]
async fn bounds_of_a_tile() {
    let servers = Servers::start(&[]).await;
    let forms = |bounds| {
        [readable_tiles(3, bounds), wide_tiles(3, bounds)]
            .map(|configs| rank_request(kernel(), configs))
    };
    let past = Past::fixed("LIST_TOO_LONG", 65, 64);
    servers.check(forms(64), forms(65), past).await;
    let claimed = Configs::PackedTileConfigs(PackedTileConfigs {
        config_count: 1,
        input_bound_count: u32::MAX,
        ..Default::default()
    });
    Past::fixed("LIST_TOO_LONG", u32::MAX as usize, 64)
        .refuses(&servers.limited, rank_request(kernel(), claimed))
        .await;
}

#[tokio::test]
async fn tensors_of_a_node_and_their_dimensions() {
    let servers = Servers::start(&[]).await;
    let of = |tensors: usize, dimensions: usize| {
        let tensor = TensorLayout {
            minor_to_major: (0..6).chain([0]).take(dimensions).collect(),
        };
        let nodes = vec![NodeLayout {
            node: 3,
            tensors: vec![tensor; tensors],
        }];
        let configs = vec![LayoutConfig::default(), LayoutConfig { nodes }];
        // Features that do not tell how many dimensions a tensor has.
        let graph = graph_of(Source::Features(features(4, &[])));
        [rank_request(
            graph,
            Configs::LayoutConfigs(LayoutConfigs { configs }),
        )]
    };
    let tensors = Past::fixed("LIST_TOO_LONG", 4, 3);
    servers.check(of(3, 6), of(4, 6), tensors).await;
    let dimensions = Past::fixed("LIST_TOO_LONG", 7, 6);
    servers.check([], of(3, 7), dimensions).await;
}

/// Returns two layouts of two slots: the compiler's, and one whose first node has the last entry of a table of this
/// size.
fn last_of_a_table(entries: usize) -> [RankConfigsRequest; 2] {
    let mut first = vec![0; 3 * (entries - 1)];
    first.extend([9, 0, 0]);
    let tables = [first, ENTRIES.to_vec()].map(|entries| LayoutTable { entries });
    let last = to_u32(entries - 1);
    let indices = [0, 0, u16::try_from(last).unwrap_or(u16::MAX), 0];
    let packed = PackedLayoutConfigs {
        config_count: 2,
        tables: tables.to_vec(),
        indices: indices.into_iter().flat_map(u16::to_le_bytes).collect(),
    };
    let delta = DeltaLayoutConfigs {
        tables: tables.to_vec(),
        base: vec![0; 2],
        change_counts: vec![0, 1],
        change_slots: vec![0],
        change_entries: vec![last],
    };
    [
        Configs::PackedLayoutConfigs(packed),
        Configs::DeltaLayoutConfigs(delta),
    ]
    .map(|configs| rank_request(layout_graph(), configs))
}

#[tokio::test]
async fn entries_of_a_table() {
    let server = TestServer::start().await;
    let readable = layout_requests(2, 2).remove(0);
    let expected = server.rank(readable).await.unwrap();
    for at in last_of_a_table(1 << 16) {
        let answer = server.rank(at).await.expect("it is at the limit");
        assert_eq!(answer.ranking, expected.ranking);
        assert_eq!(answer.ranking_scores, expected.ranking_scores);
    }
    for request in last_of_a_table((1 << 16) + 1) {
        Past::fixed("LIST_TOO_LONG", (1 << 16) + 1, 1 << 16)
            .refuses(&server, request)
            .await;
    }
}

/// Number of embeddings of 64 numbers in a gibibyte. Scoring that many would take minutes, so the test only exceeds the
/// limit by one.
const ROWS: usize = 1 << 22;

#[tokio::test]
async fn rows_of_a_batch() {
    let server = TestServer::start_with(&["--max-configs=5000000"]).await;
    let bounds = (0..=to_u32(ROWS)).flat_map(|tile| [tile % 4096 + 1, tile / 4096 + 1]);
    let all_different = PackedTileConfigs {
        config_count: to_u32(ROWS + 1),
        output_bound_count: 2,
        bounds: bounds.flat_map(u32::to_le_bytes).collect(),
        ..PackedTileConfigs::default()
    };
    let request = rank_request(kernel(), Configs::PackedTileConfigs(all_different));
    let status = server.rank(request).await.unwrap_err();
    assert_eq!(reason(&status), "TOO_MANY_ROWS", "{status}");
    says!(status.message(), "4194304", "1 GiB", "several batches");
}
