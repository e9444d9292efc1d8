//! Limits of the configurations of a batch and of their parts.

use hlorank_tests::prelude::*;

use crate::limits::request::{Past, Servers, features, kernel, layout_graph, tiles, wide_tiles};

/// Entries of a table: the compiler's layout, and the orders 1, 0.
const ENTRIES: [u32; 6] = [0, 0, 0, 9, 0, 0];

fn to_u32(count: usize) -> u32 {
    count.try_into().unwrap()
}

/// Returns the three forms of the same layouts. All but the last are the compiler's.
fn layouts(count: usize, slots: usize) -> [Configs; 3] {
    let changed = NodeLayout {
        node: 3,
        tensors: vec![TensorLayout {
            minor_to_major: vec![1, 0],
        }],
    };
    let mut configs = vec![LayoutConfig::default(); count - 1];
    configs.push(LayoutConfig {
        nodes: vec![changed],
    });
    let tables = vec![
        LayoutTable {
            entries: ENTRIES.to_vec()
        };
        slots
    ];
    let mut indices = vec![0; count * slots];
    indices[(count - 1) * slots] = 1;
    let mut change_counts = vec![0; count - 1];
    change_counts.push(1);
    [
        Configs::LayoutConfigs(LayoutConfigs { configs }),
        Configs::PackedLayoutConfigs(PackedLayoutConfigs {
            config_count: to_u32(count),
            tables: tables.clone(),
            indices: indices.into(),
        }),
        Configs::DeltaLayoutConfigs(DeltaLayoutConfigs {
            tables,
            base: vec![0; slots],
            change_counts,
            change_slots: vec![0],
            change_entries: vec![1],
        }),
    ]
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

/// Returns requests with this number of configurations in every form.
fn forms(count: usize) -> Vec<RankConfigsRequest> {
    let layouts = layouts(count, 2).map(|configs| rank_request(layout_graph(), configs));
    let tiles =
        [readable_tiles(count, 2), tiles(count)].map(|configs| rank_request(kernel(), configs));
    [layouts.to_vec(), tiles.to_vec()].concat()
}

#[tokio::test]
async fn configurations_of_every_form() {
    let servers = Servers::start(&["--max-configs=3"]).await;
    for at in forms(3) {
        servers.take(at).await;
    }
    for past in forms(4) {
        servers
            .refuse(
                past,
                Past::setting("TOO_MANY_CONFIGS", "--max-configs", 4, 3),
            )
            .await;
    }
}

#[tokio::test]
async fn entries_of_every_form() {
    let servers = Servers::start(&["--max-config-entries=5"]).await;
    let one_slot = || Graph {
        configurable_nodes: vec![3],
        ..layout_graph()
    };
    let refusal =
        |found| Past::setting("TOO_MANY_CONFIG_ENTRIES", "--max-config-entries", found, 5);
    for at in layouts(5, 1) {
        servers.take(rank_request(one_slot(), at)).await;
    }
    for past in layouts(6, 1) {
        servers
            .refuse(rank_request(one_slot(), past), refusal(6))
            .await;
    }
    for past in layouts(3, 2) {
        servers
            .refuse(rank_request(layout_graph(), past), refusal(6))
            .await;
    }
    servers.take(rank_request(kernel(), tiles(64))).await;
}

#[tokio::test]
async fn bounds_of_a_tile() {
    let servers = Servers::start(&[]).await;
    for form in [readable_tiles, wide_tiles] {
        servers.take(rank_request(kernel(), form(3, 64))).await;
        servers
            .refuse(
                rank_request(kernel(), form(3, 65)),
                Past::fixed("LIST_TOO_LONG", 65, 64),
            )
            .await;
    }
    let claimed = PackedTileConfigs {
        config_count: 1,
        input_bound_count: u32::MAX,
        ..Default::default()
    };
    let past = Past::fixed("LIST_TOO_LONG", u32::MAX as usize, 64);
    servers
        .refuse(
            rank_request(kernel(), Configs::PackedTileConfigs(claimed)),
            past,
        )
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
        rank_request(graph, Configs::LayoutConfigs(LayoutConfigs { configs }))
    };
    servers.take(of(3, 6)).await;
    servers
        .refuse(of(4, 6), Past::fixed("LIST_TOO_LONG", 4, 3))
        .await;
    servers
        .refuse(of(3, 7), Past::fixed("LIST_TOO_LONG", 7, 6))
        .await;
}

/// Returns two layouts of two slots: the compiler's, and one whose first node has the last entry of a table of this
/// size.
fn last_of_a_table(entries: usize) -> [RankConfigsRequest; 2] {
    let mut first = vec![0; 3 * (entries - 1)];
    first.extend([9, 0, 0]);
    let tables = vec![
        LayoutTable { entries: first },
        LayoutTable {
            entries: ENTRIES.to_vec(),
        },
    ];
    let last = entries - 1;
    let indices: Vec<u8> = [0, 0, last, 0]
        .into_iter()
        .flat_map(|index| u16::try_from(index).unwrap_or(u16::MAX).to_le_bytes())
        .collect();
    let packed = PackedLayoutConfigs {
        config_count: 2,
        tables: tables.clone(),
        indices: indices.into(),
    };
    let delta = DeltaLayoutConfigs {
        tables,
        base: vec![0; 2],
        change_counts: vec![0, 1],
        change_slots: vec![0],
        change_entries: vec![to_u32(last)],
    };
    [
        Configs::PackedLayoutConfigs(packed),
        Configs::DeltaLayoutConfigs(delta),
    ]
    .map(|configs| rank_request(layout_graph(), configs))
}

#[tokio::test]
async fn entries_of_a_table() {
    let servers = Servers::start(&[]).await;
    let [readable, ..] = layouts(2, 2);
    let mut service = servers.limited.cost_model().await;
    let expected = service
        .rank_configs(rank_request(layout_graph(), readable))
        .await
        .unwrap()
        .into_inner();
    for at in last_of_a_table(1 << 16) {
        let answer = service
            .rank_configs(at)
            .await
            .expect("it is at the limit")
            .into_inner();
        assert_eq!(
            (answer.ranking, answer.ranking_scores),
            (expected.ranking.clone(), expected.ranking_scores.clone())
        );
    }
    for past in last_of_a_table((1 << 16) + 1) {
        servers
            .refuse(past, Past::fixed("LIST_TOO_LONG", (1 << 16) + 1, 1 << 16))
            .await;
    }
}

/// Number of embeddings of 64 numbers in a gibibyte. Scoring that many would take minutes, so the test only exceeds the
/// limit by one.
const ROWS: usize = 1 << 22;

#[tokio::test]
async fn rows_of_a_batch() {
    let server = TestServer::start_with(&["--max-configs=5000000"]).await;
    let bounds = (0..=ROWS).flat_map(|tile| [tile % 4096 + 1, tile / 4096 + 1]);
    let bounds: Vec<u8> = bounds
        .flat_map(|bound| i32::try_from(bound).unwrap().to_le_bytes())
        .collect();
    let all_different = PackedTileConfigs {
        config_count: to_u32(ROWS + 1),
        output_bound_count: 2,
        bounds: bounds.into(),
        ..PackedTileConfigs::default()
    };
    let request = rank_request(kernel(), Configs::PackedTileConfigs(all_different));
    let status = server.rank(request).await.unwrap_err();
    let reason = reason(&status);
    assert_eq!(
        (status.code(), reason.as_str()),
        (Code::InvalidArgument, "TOO_MANY_ROWS"),
        "{status}"
    );
    says!(status.message(), "4194304", "1 GiB", "several batches");
}
