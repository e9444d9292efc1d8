use std::sync::{Arc, OnceLock};

use hlorank_proto::methods::{CallClass, Method};

use crate::{
    admission::{Admission, AdmissionError, LimitedCalls, Place},
    caller::Caller,
    compute::ComputePool,
    security::{ConnectionActivity, CountedCall},
};

/// A call whose messages are delivered.
pub(crate) struct DeliveredCall {
    pub(crate) kind: MethodKind,
    pub(crate) caller: Caller,
    pub(crate) place: Place,
    pub(crate) admission: Arc<Admission>,
    /// The threads that decompress and read messages.
    pub(crate) pool: Arc<ComputePool>,
    pub(crate) connection: Option<CallConnection>,
}

impl DeliveredCall {
    /// Admits the call, because its first message has arrived, or rejects it if a limit is reached.
    pub(super) fn delivered(&self) -> Result<(), AdmissionError> {
        if let Some(calls) = self.kind.calls {
            let admitted = self.admission.admit(self.caller.clone(), calls)?;
            self.place.admit(admitted);
        }
        if let Some(connection) = self.connection.as_ref().filter(|_| self.kind.is_work) {
            let working = || connection.activity.begin();
            connection.working.get_or_init(working);
        }
        Ok(())
    }
}

/// The connection of a call, which is open from the headers of the call, and busy from the end of its first message, to the
/// end of its answer.
pub(crate) struct CallConnection {
    activity: ConnectionActivity,
    working: OnceLock<CountedCall>,
    _open: CountedCall,
}

impl From<&ConnectionActivity> for CallConnection {
    fn from(activity: &ConnectionActivity) -> Self {
        Self {
            activity: activity.clone(),
            working: OnceLock::new(),
            _open: activity.open(),
        }
    }
}

/// What the method of a call says about its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodKind {
    /// What the call is counted as once its first message has arrived; `None` for a call that is never refused.
    pub(crate) calls: Option<LimitedCalls>,
    /// Whether the client sends any number of messages instead of one.
    pub(crate) is_stream: bool,
    /// Whether the call keeps its connection once its message has arrived. Health checks, which need no token, and reflection
    /// may last as long as the connection.
    pub(crate) is_work: bool,
}

impl MethodKind {
    /// Returns the kind of the calls of this path.
    pub(crate) fn from_path(path: &str) -> Self {
        let method = Method::at(path);
        let calls = method.and_then(|method| match method.class {
            CallClass::Scoring => Some(LimitedCalls::Scoring),
            CallClass::Watching => Some(LimitedCalls::Watching),
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
            let MethodKind {
                calls, is_stream, ..
            } = MethodKind::from_path(path);
            (calls, is_stream)
        };
        assert_eq!(
            kind("/hlorank.v1.CostModelService/RankConfigs"),
            (Some(LimitedCalls::Scoring), false)
        );
        assert_eq!(
            kind("/hlorank.v1.CostModelService/RankConfigsStream"),
            (Some(LimitedCalls::Scoring), true)
        );
        assert_eq!(
            kind("/hlorank.v1.ModelService/CompareModels"),
            (Some(LimitedCalls::Scoring), false)
        );
        assert_eq!(
            kind("/grpc.health.v1.Health/Watch"),
            (Some(LimitedCalls::Watching), false)
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
        assert_eq!(kind(reflection), (Some(LimitedCalls::Watching), true));
    }
}
