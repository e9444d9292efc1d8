//! Requests that are valid except for one thing, and the expected rejections.

use hlorank_tests::prelude::*;

/// Expected rejection.
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) reason: &'static str,
    /// Words that the message contains, such as the place and the limit.
    pub(crate) words: &'static [&'static str],
}

pub(crate) const fn invalid(reason: &'static str, words: &'static [&'static str]) -> Refusal {
    Refusal {
        code: Code::InvalidArgument,
        reason,
        words,
    }
}

pub(crate) fn features(nodes: usize) -> GraphFeatures {
    GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * 560].into(),
        ..Default::default()
    }
}

pub(crate) fn graph_of_features(features: GraphFeatures) -> Graph {
    graph_of(Source::Features(features))
}

pub(crate) fn node(node: u32, minor_to_major: &[i32]) -> NodeLayout {
    NodeLayout {
        node,
        tensors: vec![TensorLayout {
            minor_to_major: minor_to_major.to_vec(),
        }],
    }
}

pub(crate) fn readable(nodes: Vec<NodeLayout>) -> Configs {
    Configs::LayoutConfigs(LayoutConfigs {
        configs: vec![LayoutConfig { nodes }],
    })
}

pub(crate) fn tables() -> Vec<LayoutTable> {
    vec![
        LayoutTable {
            entries: vec![0, 0, 0, 9, 0, 0]
        };
        2
    ]
}

pub(crate) fn packed(config_count: u32, tables: Vec<LayoutTable>, indices: &[u8]) -> Configs {
    let indices = indices.to_vec().into();
    Configs::PackedLayoutConfigs(PackedLayoutConfigs {
        config_count,
        tables,
        indices,
    })
}

pub(crate) fn delta(slots: Vec<u32>, entries: Vec<u32>) -> Configs {
    Configs::DeltaLayoutConfigs(DeltaLayoutConfigs {
        tables: tables(),
        base: vec![0, 0],
        change_counts: vec![u32::try_from(slots.len()).unwrap()],
        change_slots: slots,
        change_entries: entries,
    })
}

pub(crate) fn tiles() -> Configs {
    Configs::TileConfigs(TileConfigs {
        configs: vec![TileConfig {
            output_bounds: vec![8],
            ..Default::default()
        }],
    })
}

/// Returns a valid request.
pub(crate) fn sound() -> RankConfigsRequest {
    rank_request(
        graph_of_module(two_dots()),
        readable(vec![node(3, &[0, 1])]),
    )
}

pub(crate) fn with_graph(graph: Graph) -> RankConfigsRequest {
    sound().with_graph(graph)
}

pub(crate) fn with_module(module: Vec<u8>) -> RankConfigsRequest {
    with_graph(graph_of_module(module))
}

pub(crate) fn with_configs(configs: Configs) -> RankConfigsRequest {
    sound().with_configs(configs)
}

pub(crate) fn with_model(name: &str, version: u64) -> RankConfigsRequest {
    let model = ModelSelector {
        name: name.to_owned(),
        version,
        ..ModelSelector::default()
    };
    RankConfigsRequest {
        model: Some(model),
        ..sound()
    }
}

pub(crate) async fn refuse(server: &TestServer, request: RankConfigsRequest, expected: &Refusal) {
    let mut service = server.cost_model().await;
    let status = service
        .rank_configs(request)
        .await
        .expect_err(expected.reason);
    check(&status, expected);
    service
        .rank_configs(sound())
        .await
        .expect("the server goes on");
}

pub(crate) fn check(status: &Status, expected: &Refusal) {
    let details = status.get_error_details();
    let info = details
        .error_info()
        .unwrap_or_else(|| panic!("{status} has no ErrorInfo"));
    assert_eq!(
        (status.code(), info.reason.as_str()),
        (expected.code, expected.reason),
        "{status}"
    );
    assert_eq!(info.domain, "hlorank");
    let to_blame = details
        .bad_request()
        .is_some_and(|request| !request.field_violations.is_empty());
    assert_eq!(
        to_blame,
        expected.code == Code::InvalidArgument && expected.reason != "REQUEST_MALFORMED"
    );
    assert!(details.retry_info().is_none(), "trying again does not help");
    for word in expected.words {
        assert!(
            status.message().contains(word),
            "{:?} does not say {word:?}",
            status.message()
        );
    }
}

pub(crate) async fn refuse_all(server: &TestServer, cases: Vec<(RankConfigsRequest, Refusal)>) {
    for (request, expected) in cases {
        refuse(server, request, &expected).await;
    }
}
