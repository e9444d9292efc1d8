//! What is taken and what is refused.

use std::collections::HashMap;

use hlorank_proto::v1::{RankConfigsRequest, cost_model_service_client::CostModelServiceClient};
use hlorank_tests::TestServer;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

/// A server with limits, and one that would take more.
pub(crate) struct Servers {
    pub(crate) limited: TestServer,
    usual: TestServer,
}

/// What the refusal of a request says that is past a limit.
pub(crate) struct Past {
    pub(crate) code: Code,
    pub(crate) reason: &'static str,
    /// What raises the limit, if anything does.
    pub(crate) setting: Option<&'static str>,
    /// What the request has, where that is counted to its end.
    pub(crate) found: Option<usize>,
    pub(crate) allowed: usize,
}

impl Servers {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self { limited: TestServer::start_with(flags).await, usual: TestServer::start().await }
    }

    /// Checks that a request is answered, and as it is where it is far from every limit.
    pub(crate) async fn take(&self, request: RankConfigsRequest) {
        let [answer, usual] = [
            self.limited.cost_model().await.rank_configs(request.clone()).await.expect("it is at the limit"),
            self.usual.cost_model().await.rank_configs(request).await.unwrap(),
        ]
        .map(tonic::Response::into_inner);
        assert!(!answer.ranking.is_empty());
        assert_eq!((answer.ranking, answer.ranking_scores), (usual.ranking, usual.ranking_scores));
    }

    /// Checks that a request is refused; gives what the message says.
    pub(crate) async fn refuse(&self, request: RankConfigsRequest, past: Past) -> String {
        past.refuses(self.limited.cost_model().await, request).await
    }
}

impl Past {
    /// Past what a request may hold, which a setting raises.
    pub(crate) fn setting(
        reason: &'static str,
        setting: &'static str,
        found: impl Into<Option<usize>>,
        allowed: usize,
    ) -> Self {
        Self { code: Code::InvalidArgument, reason, setting: Some(setting), found: found.into(), allowed }
    }

    /// Past what any server takes.
    pub(crate) fn fixed(reason: &'static str, found: impl Into<Option<usize>>, allowed: usize) -> Self {
        Self { code: Code::InvalidArgument, reason, setting: None, found: found.into(), allowed }
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
        let info = status.get_details_error_info().unwrap_or_else(|| panic!("{status} has no ErrorInfo"));
        assert_eq!((status.code(), info.reason.as_str()), (self.code, self.reason), "{status}");
        let numbers = [("found", self.found), ("allowed", Some(self.allowed))];
        let numbers = numbers.into_iter().filter_map(|(key, number)| Some((key, number?.to_string())));
        let said: HashMap<&str, String> =
            numbers.chain(self.setting.map(|setting| ("limit", setting.to_owned()))).collect();
        let metadata: HashMap<&str, String> =
            info.metadata.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        assert_eq!(metadata, said, "{status}");
        for word in said.values() {
            assert!(status.message().contains(word), "{:?} does not say {word}", status.message());
        }
    }
}
