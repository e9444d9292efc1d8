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

/// Returns such tiles with this number of dimensions, 4 bytes each.
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

/// Returns HLO text of a parameter, `p`, a dot of it with itself, `d`, and these lines.
pub(crate) fn dot_and(lines: impl IntoIterator<Item = String>) -> String {
    let lines: Vec<String> = lines.into_iter().collect();
    let dot = "p = f32[8,8] parameter(0)\n  d = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    format!(
        "HloModule m\n\nENTRY e {{\n  {dot}\n  {}\n}}\n",
        lines.join("\n  ")
    )
}

/// A server with the tested limits, and one that accepts more.
pub(crate) struct Servers {
    pub(crate) limited: TestServer,
    usual: TestServer,
}

/// Expected rejection of a request that exceeds a limit. A reason has one code.
#[derive(Clone, Copy)]
pub(crate) struct Past {
    reason: &'static str,
    /// Setting that raises the limit, if there is one.
    setting: Option<&'static str>,
    /// What the request has, if the server counts to the end.
    found: Option<usize>,
    allowed: usize,
    /// What the message says besides.
    words: &'static str,
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
        let answer = self.limited.rank(request.clone()).await;
        let answer = answer.expect("it is at the limit");
        let usual = self.usual.rank(request).await.unwrap();
        assert!(!answer.ranking.is_empty());
        assert_eq!(answer.ranking, usual.ranking);
        assert_eq!(answer.ranking_scores, usual.ranking_scores);
    }

    /// Asserts that all forms of a request are accepted at a limit, and rejected past it.
    pub(crate) async fn check(
        &self,
        at: impl IntoIterator<Item = RankConfigsRequest>,
        past: impl IntoIterator<Item = RankConfigsRequest>,
        rejection: Past,
    ) {
        for request in at {
            self.take(request).await;
        }
        for request in past {
            rejection.refuses(&self.limited, request).await;
        }
    }
}

impl Past {
    /// Expects a rejection for a fixed limit.
    pub(crate) fn fixed(
        reason: &'static str,
        found: impl Into<Option<usize>>,
        allowed: usize,
    ) -> Self {
        Self {
            reason,
            setting: None,
            found: found.into(),
            allowed,
            words: "",
        }
    }

    /// Expects a rejection for a limit that a setting raises.
    pub(crate) fn setting(
        reason: &'static str,
        setting: &'static str,
        found: impl Into<Option<usize>>,
        allowed: usize,
    ) -> Self {
        Self {
            setting: Some(setting),
            ..Self::fixed(reason, found, allowed)
        }
    }

    /// Expects these words, too.
    pub(crate) fn saying(self, words: &'static str) -> Self {
        Self { words, ..self }
    }

    pub(crate) async fn refuses(&self, server: &TestServer, request: RankConfigsRequest) {
        let status = server.rank(request).await.expect_err(self.reason);
        self.check(&status);
    }

    pub(crate) fn check(&self, status: &Status) {
        assert_eq!(reason(status), self.reason, "{status}");
        let numbers = [("found", self.found), ("allowed", Some(self.allowed))];
        let numbers = numbers
            .into_iter()
            .filter_map(|(key, number)| Some((key.to_owned(), number?.to_string())));
        let setting = self
            .setting
            .map(|name| ("limit".to_owned(), name.to_owned()));
        let said: HashMap<String, String> = numbers.chain(setting).collect();
        let metadata = status.get_details_error_info().unwrap().metadata;
        assert_eq!(metadata, said, "{status}");
        for word in said.values().map(String::as_str).chain([self.words]) {
            says!(status.message(), word);
        }
    }
}
