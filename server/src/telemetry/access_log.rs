//! Logs one line per call when the call has ended.

use tonic::Code;
use tracing::field;

use super::{call_record::Facts, ended_call::EndedCall};
use crate::metrics::code_name;

/// Logs every call that failed, and a sample of the calls that succeeded.
pub(crate) struct AccessLog {
    /// Fraction of successful calls that are logged, from 0 to 1.
    pub(crate) ratio: f64,
}

impl AccessLog {
    fn is_logged(&self, code: Code) -> bool {
        code != Code::Ok || fastrand::f64() < self.ratio
    }

    pub(super) fn log(&self, call: &EndedCall<'_>, facts: &Facts) {
        if !self.is_logged(call.code) {
            return;
        }
        let model = facts.model.as_ref();
        let graph = facts.graph;
        // A call without a batch has no counts, and fields without a value are left out of the
        // line.
        let scored = (facts.batches > 0).then_some(facts.reuse);
        tracing::info!(
            target: "access",
            method = call.method.name,
            code = code_name(call.code),
            reason = call.reason,
            seconds = call.duration.as_secs_f64(),
            request_bytes = call.request_bytes,
            answer_bytes = call.answer_bytes,
            model = model.map(|(name, _)| name.as_str()),
            version = model.map(|(_, version)| *version),
            graph = graph.map(|graph| field::display(graph.hash)),
            nodes = graph.map(|graph| graph.nodes),
            cached = graph.map(|graph| graph.cached),
            batches = scored.map(|_| facts.batches),
            configs = scored.map(|scored| scored.configs),
            distinct_configs = scored.map(|scored| scored.distinct_configs),
            rows = scored.map(|scored| scored.distinct_segment_rows),
            evaluated = scored.map(|scored| scored.rows_evaluated),
            peer = call.peer.map(field::display),
            "call ended"
        );
    }
}
