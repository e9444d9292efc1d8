//! Assertions that a request is accepted or rejected.

use hlorank_tests::prelude::*;

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
