//! Graphs and configurations of a chosen size, and assertions that a request is accepted or rejected.

use hlorank_tests::prelude::*;

/// Returns two layouts of one node: the compiler's, and another.
pub(crate) fn layouts_of(node: u32) -> Configs {
    let changed = NodeLayout {
        node,
        tensors: vec![TensorLayout {
            minor_to_major: vec![0, 1],
        }],
    };
    let configs = vec![
        LayoutConfig::default(),
        LayoutConfig {
            nodes: vec![changed],
        },
    ];
    Configs::LayoutConfigs(LayoutConfigs { configs })
}

/// Returns a module of two dots with configurable layouts, nodes 3 and 4.
pub(crate) fn layout_graph() -> Graph {
    graph_of_module(two_dots())
}

/// Returns the same dots as one kernel.
pub(crate) fn kernel() -> Graph {
    kernel_graph(layout_graph())
}

/// Returns this number of tiles, of which 64 are distinct.
pub(crate) fn tiles(count: usize) -> Configs {
    wide_tiles(count, 2)
}

/// Returns such tiles with this number of dimensions.
pub(crate) fn wide_tiles(count: usize, dimensions: usize) -> Configs {
    Configs::PackedTileConfigs(repeated_tiles(count, dimensions))
}

/// Returns the arrays of this number of dots with these edges.
pub(crate) fn features(nodes: usize, edges: &[[u32; 2]]) -> GraphFeatures {
    GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * 560].into(),
        edge_index: edges.as_flattened().to_vec(),
        ..GraphFeatures::default()
    }
}

/// Returns HLO text whose entry computation has these lines.
pub(crate) fn text(lines: &[String]) -> String {
    format!("HloModule m\n\nENTRY e {{\n  {}\n}}\n", lines.join("\n  "))
}

/// A server with the tested limits, and one that accepts more.
pub(crate) struct Servers {
    pub(crate) limited: TestServer,
    usual: TestServer,
}

/// Expected rejection of a request that exceeds a limit.
pub(crate) struct Past {
    pub(crate) code: Code,
    pub(crate) reason: &'static str,
    /// Setting that raises the limit, if there is one.
    pub(crate) setting: Option<&'static str>,
    /// What the request has, if the server counts to the end.
    pub(crate) found: Option<usize>,
    pub(crate) allowed: usize,
}

impl Servers {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self {
            limited: TestServer::start_with(flags).await,
            usual: TestServer::start().await,
        }
    }

    /// Asserts that a request has the same answer as on the server that accepts more.
    pub(crate) async fn take(&self, request: RankConfigsRequest) {
        let [answer, usual] = [
            self.limited
                .cost_model()
                .await
                .rank_configs(request.clone())
                .await
                .expect("it is at the limit"),
            self.usual
                .cost_model()
                .await
                .rank_configs(request)
                .await
                .unwrap(),
        ]
        .map(tonic::Response::into_inner);
        assert!(!answer.ranking.is_empty());
        assert_eq!(
            (answer.ranking, answer.ranking_scores),
            (usual.ranking, usual.ranking_scores)
        );
    }

    /// Asserts that a request is rejected, and returns the message.
    pub(crate) async fn refuse(&self, request: RankConfigsRequest, past: Past) -> String {
        past.refuses(self.limited.cost_model().await, request).await
    }
}

impl Past {
    /// Expects a rejection for a limit that a setting raises.
    pub(crate) fn setting(
        reason: &'static str,
        setting: &'static str,
        found: impl Into<Option<usize>>,
        allowed: usize,
    ) -> Self {
        Self {
            code: Code::InvalidArgument,
            reason,
            setting: Some(setting),
            found: found.into(),
            allowed,
        }
    }

    /// Expects a rejection for a fixed limit.
    pub(crate) fn fixed(
        reason: &'static str,
        found: impl Into<Option<usize>>,
        allowed: usize,
    ) -> Self {
        Self {
            code: Code::InvalidArgument,
            reason,
            setting: None,
            found: found.into(),
            allowed,
        }
    }

    pub(crate) async fn refuses(
        &self,
        mut service: CostModelServiceClient<Channel>,
        request: RankConfigsRequest,
    ) -> String {
        let status = service.rank_configs(request).await.expect_err(self.reason);
        self.check(&status);
        status.message().to_owned()
    }

    pub(crate) fn check(&self, status: &Status) {
        let info = status
            .get_details_error_info()
            .unwrap_or_else(|| panic!("{status} has no ErrorInfo"));
        assert_eq!(
            (status.code(), info.reason.as_str()),
            (self.code, self.reason),
            "{status}"
        );
        let numbers = [("found", self.found), ("allowed", Some(self.allowed))];
        let numbers = numbers
            .into_iter()
            .filter_map(|(key, number)| Some((key, number?.to_string())));
        let said: HashMap<&str, String> = numbers
            .chain(self.setting.map(|setting| ("limit", setting.to_owned())))
            .collect();
        let metadata: HashMap<&str, String> = info
            .metadata
            .iter()
            .map(|(key, value)| (key.as_str(), value.clone()))
            .collect();
        assert_eq!(metadata, said, "{status}");
        for word in said.values() {
            assert!(
                status.message().contains(word),
                "{:?} does not say {word}",
                status.message()
            );
        }
    }
}
