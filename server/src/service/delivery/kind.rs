use hlorank_proto::methods::{CallClass, Method};

use crate::admission::Calls;

/// What the method of a call says about its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) struct Kind {
    /// What the call is counted as once its first message has arrived; `None` for a call that is never refused.
    pub(in crate::service) calls: Option<Calls>,
    /// Whether the client sends any number of messages instead of one.
    pub(in crate::service) is_stream: bool,
    /// Whether the call keeps its connection once its message has arrived. Health checks, which need no token, and reflection
    /// may last as long as the connection.
    pub(in crate::service) is_work: bool,
}

impl Kind {
    /// Returns the kind of the calls of this path.
    pub(in crate::service) fn of(path: &str) -> Self {
        let method = Method::at(path);
        let calls = method.and_then(|method| match method.class {
            CallClass::Scoring => Some(Calls::Scoring),
            CallClass::Watching => Some(Calls::Watching),
            CallClass::Unlimited => None,
        });
        Self {
            calls,
            is_stream: method.is_some_and(|method| method.is_stream),
            is_work: path.starts_with("/hlorank.v1."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_what_they_do() {
        let kind = |path| {
            let Kind {
                calls, is_stream, ..
            } = Kind::of(path);
            (calls, is_stream)
        };
        assert_eq!(
            kind("/hlorank.v1.CostModelService/RankConfigs"),
            (Some(Calls::Scoring), false)
        );
        assert_eq!(
            kind("/hlorank.v1.CostModelService/RankConfigsStream"),
            (Some(Calls::Scoring), true)
        );
        assert_eq!(
            kind("/hlorank.v1.ModelService/CompareModels"),
            (Some(Calls::Scoring), false)
        );
        assert_eq!(
            kind("/grpc.health.v1.Health/Watch"),
            (Some(Calls::Watching), false)
        );
        for path in [
            "/grpc.health.v1.Health/Check",
            "/hlorank.v1.ModelService/ListModels",
            "/",
            "",
        ] {
            assert_eq!(kind(path), (None, false), "{path}");
        }
        let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        assert_eq!(kind(reflection), (Some(Calls::Watching), true));
    }
}
