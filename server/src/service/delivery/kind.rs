use crate::session::Calls;

/// What the method of a call says about its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service) struct Kind {
    /// What the call is counted as once its first message has arrived; `None` for a call that is never refused.
    pub(in crate::service) calls: Option<Calls>,
    /// Whether the client sends any number of messages instead of one.
    pub(in crate::service) is_stream: bool,
}

impl Kind {
    /// Returns the kind of the calls of this path.
    pub(in crate::service) fn of(path: &str) -> Self {
        let kind = |calls, is_stream| Self { calls, is_stream };
        match path.trim_start_matches('/').split_once('/') {
            Some(("hlorank.v1.CostModelService", method)) => {
                kind(Some(Calls::Scoring), method == "RankConfigsStream")
            }
            Some(("hlorank.v1.ModelService", "CompareModels")) => kind(Some(Calls::Scoring), false),
            Some(("grpc.health.v1.Health", "Watch")) => kind(Some(Calls::Watching), false),
            Some((service, _)) if service.starts_with("grpc.reflection.") => {
                kind(Some(Calls::Watching), true)
            }
            _ => kind(None, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_what_they_do() {
        let kind = |path| {
            let Kind { calls, is_stream } = Kind::of(path);
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
