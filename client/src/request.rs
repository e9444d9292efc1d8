use std::{borrow::Borrow, time::Duration};

use hlorank_graph::Configurations;
use hlorank_proto::v1::{self, ConfigBatch, RankConfigsRequest};

use crate::{
    Adapt, GraphHandle, ModelReference, StreamRequest, SuggestRequest, answer::ExpectedAnswer,
    model::selector,
};

/// A request to rank configurations of a graph.
#[derive(Debug)]
pub struct RankRequest<'a> {
    pub(crate) graph: &'a GraphHandle,
    /// Without its graph.
    message: RankConfigsRequest,
    configs: usize,
    pub(crate) timeout: Option<Duration>,
}

/// Defines what every request about configurations can say.
macro_rules! common_setters {
    ($request:ident) => {
        impl $request<'_> {
            /// Sets the model. Default: the default model of the task.
            #[must_use]
            pub fn model(mut self, model: Option<ModelReference>) -> Self {
                // The message has one selector for model and target, and either may be set first.
                let target = self.message.model.take().unwrap_or_default().target;
                self.message.model = selector(model.as_ref(), &target);
                self
            }

            /// Sets what the configurations are chosen for, as `HARDWARE, COMPILER VERSION, FLAG, ...`, by which the server
            /// selects a model if none is named. Default: the target of the measurements, if there are some.
            #[must_use]
            pub fn target(mut self, target: &str) -> Self {
                if !target.is_empty() {
                    let selector = self.message.model.get_or_insert_default();
                    target.clone_into(&mut selector.target);
                }
                self
            }

            /// Lets the server learn from measured run times of the graph's configurations. Every score is then the predicted
            /// natural logarithm of seconds. Default: none.
            #[must_use]
            pub fn adapt(mut self, adapt: Option<impl Borrow<Adapt>>) -> Self {
                self.message.adapt = adapt.map(|adapt| adapt.borrow().message());
                self
            }

            /// Sets the maximum time of the call, retries included, or of the whole stream. Default:
            /// [`Connection::timeout`](crate::Connection::timeout), and unlimited for a stream.
            #[must_use]
            pub fn timeout(mut self, timeout: Duration) -> Self {
                self.timeout = Some(timeout);
                self
            }
        }
    };
}

common_setters!(RankRequest);
common_setters!(StreamRequest);
common_setters!(SuggestRequest);

impl<'a> RankRequest<'a> {
    /// Requests the whole ranking by the default model of the task, without the scores in the order sent.
    #[must_use]
    pub fn new(graph: &'a GraphHandle, configurations: &Configurations) -> Self {
        let batch = ConfigBatch {
            configs: Some(configurations.to_smallest_form()),
        };
        Self {
            graph,
            message: RankConfigsRequest {
                batch: Some(batch),
                ..RankConfigsRequest::default()
            },
            configs: configurations.len(),
            timeout: None,
        }
    }

    /// Sets the number of best configurations to return. Default: 0, which returns all.
    #[must_use]
    pub fn top(mut self, top: u32) -> Self {
        self.message.top_k = top;
        self
    }

    /// Also requests the score of every configuration in the order sent.
    #[must_use]
    pub fn with_scores(mut self) -> Self {
        self.message.include_scores = true;
        self
    }

    /// Accepts a ranking of only the first configurations if the timeout is too short for all.
    /// [`Ranking::scored`](crate::Ranking::scored) is their number.
    #[must_use]
    pub fn allow_partial(mut self) -> Self {
        self.message.allow_partial = true;
        self
    }

    /// Also requests the kernels of this many of the best fusions, at most 16, with their predicted run times.
    #[must_use]
    pub fn explain(mut self, best: u32) -> Self {
        self.message.explain_top = best;
        self
    }

    /// Returns what the answer must contain.
    pub(crate) fn asked(&self) -> ExpectedAnswer {
        ExpectedAnswer {
            configs: self.configs,
            top: self.message.top_k,
            scores: self.message.include_scores,
            partial: self.message.allow_partial,
            explained: self.message.explain_top,
            needs_model: self.graph.needs_model(),
        }
    }

    pub(crate) fn message(&self, graph: v1::Graph) -> RankConfigsRequest {
        RankConfigsRequest {
            graph: Some(graph),
            ..self.message.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Task;

    use super::*;
    use crate::tests::tiles;

    #[test]
    fn a_message_has_the_settings_of_its_request() {
        let graph = GraphHandle::hlo_module(vec![], Task::Tile, vec![]);
        let model = Some("tile@2".parse().unwrap());
        let request = RankRequest::new(&graph, &tiles(&[]));
        let message = request
            .model(model)
            .top(3)
            .with_scores()
            .allow_partial()
            .target("a board")
            .message(graph.whole());
        let selected = message.model.unwrap();
        assert_eq!((selected.version, &*selected.target), (2, "a board"));
        assert_eq!(
            (message.top_k, message.include_scores, message.allow_partial),
            (3, true, true)
        );
    }
}
