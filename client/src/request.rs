use std::{num::NonZeroU32, sync::Arc, time::Duration};

use hlorank_graph::{Configurations, config_count, cut_configs};
use hlorank_proto::v1::{ConfigBatch, RankConfigsRequest, config_batch::Configs};

use crate::{Adapt, GraphHandle, ModelReference, StreamRequest, answer::Asked, model::selector};

/// A request to rank configurations of a graph.
#[derive(Debug)]
pub struct RankRequest<'a> {
    pub(crate) graph: &'a GraphHandle,
    query: Query,
    pub(crate) timeout: Option<Duration>,
}

/// A request without its graph.
#[derive(Clone, Debug)]
struct Query {
    configurations: Configs,
    model: Option<ModelReference>,
    target: String,
    top: u32,
    scores: bool,
    partial: bool,
    explained: u32,
    adapt: Option<Adapt>,
}

impl<'a> RankRequest<'a> {
    /// Requests the whole ranking by the default model of the task, without the scores in the order sent.
    #[must_use]
    pub fn new(graph: &'a GraphHandle, configurations: &Configurations) -> Self {
        let configurations = configurations.to_smallest_form();
        let query = Query {
            configurations,
            model: None,
            target: String::new(),
            top: 0,
            scores: false,
            partial: false,
            explained: 0,
            adapt: None,
        };
        Self {
            graph,
            query,
            timeout: None,
        }
    }

    /// Sets the model. Default: the default model of the task.
    #[must_use]
    pub fn model(mut self, model: Option<ModelReference>) -> Self {
        self.query.model = model;
        self
    }

    /// Sets what the configurations are chosen for, as `HARDWARE, COMPILER VERSION, FLAG, ...`, by which the server selects a model
    /// if none is named. Default: the target of the measurements, if there are some.
    #[must_use]
    pub fn target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.query.target);
        self
    }

    /// Sets the number of best configurations to return. Default: 0, which returns all.
    #[must_use]
    pub fn top(mut self, top: u32) -> Self {
        self.query.top = top;
        self
    }

    /// Also requests the score of every configuration in the order sent.
    #[must_use]
    pub fn with_scores(mut self) -> Self {
        self.query.scores = true;
        self
    }

    /// Accepts a ranking of only the first configurations if the timeout is too short for all.
    /// [`Ranking::scored`](crate::Ranking::scored) is their number.
    #[must_use]
    pub fn allow_partial(mut self) -> Self {
        self.query.partial = true;
        self
    }

    /// Also requests the kernels of this many of the best fusions, at most 16, with their predicted run times.
    #[must_use]
    pub fn explain(mut self, best: u32) -> Self {
        self.query.explained = best;
        self
    }

    /// Lets the server learn from measured run times of the graph's configurations. Every score is then the predicted
    /// natural logarithm of seconds. Default: none.
    #[must_use]
    pub fn adapt(mut self, adapt: Option<Adapt>) -> Self {
        self.query.adapt = adapt;
        self
    }

    /// Sets the maximum time of the call, retries included. Default: [`Connection::timeout`](crate::Connection::timeout).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Returns what the answer must contain.
    pub(crate) fn asked(&self) -> Asked {
        let Query {
            configurations,
            top,
            scores,
            partial,
            explained,
            ..
        } = &self.query;
        let configs = config_count(configurations);
        Asked {
            configs,
            top: *top,
            scores: *scores,
            partial: *partial,
            explained: *explained,
            needs_model: self.graph.needs_model(),
        }
    }

    /// Returns the message without a graph.
    pub(crate) fn message(&self) -> RankConfigsRequest {
        // Every field has a name here, so that the compiler finds one that the message forgets.
        let Query {
            configurations,
            model,
            target,
            top,
            scores,
            partial,
            explained,
            adapt,
        } = &self.query;
        RankConfigsRequest {
            graph: None,
            batch: Some(ConfigBatch {
                configs: Some(configurations.clone()),
            }),
            model: selector(model.as_ref(), target),
            top_k: *top,
            include_scores: *scores,
            allow_partial: *partial,
            explain_top: *explained,
            adapt: adapt.as_ref().map(Adapt::message),
        }
    }
}

/// A request that owns its graph and can be repeated, for example a call of a trace or of a load.
#[derive(Clone, Debug)]
pub struct RankCall {
    graph: Arc<GraphHandle>,
    query: Query,
    batch: Option<NonZeroU32>,
}

impl RankCall {
    /// Returns the call of a request about this graph.
    #[must_use]
    pub fn new(graph: Arc<GraphHandle>, request: RankRequest<'_>) -> Self {
        Self {
            graph,
            query: request.query,
            batch: None,
        }
    }

    /// Returns the call of a message about this graph; the graph of the message is ignored. Returns `None` if the message
    /// has no configurations, or configurations of a kind that this client does not know.
    pub(crate) fn of_message(graph: Arc<GraphHandle>, message: RankConfigsRequest) -> Option<Self> {
        // The selector of the message becomes the model, which has no target.
        let target = message.model.as_ref().map(|model| model.target.clone());
        let query = Query {
            configurations: message.batch?.configs?,
            model: message.model.map(Into::into),
            target: target.unwrap_or_default(),
            top: message.top_k,
            scores: message.include_scores,
            partial: message.allow_partial,
            explained: message.explain_top,
            adapt: message.adapt.map(Adapt::from),
        };
        Some(Self {
            graph,
            query,
            batch: None,
        })
    }

    /// Sets the number of configurations per batch if the call is a stream; `None` makes a unary call.
    #[must_use]
    pub fn in_batches(mut self, batch: Option<NonZeroU32>) -> Self {
        self.batch = batch;
        self
    }

    /// Returns the number of configurations per batch if the call is a stream.
    #[must_use]
    pub fn batch(&self) -> Option<NonZeroU32> {
        self.batch
    }

    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<GraphHandle> {
        &self.graph
    }

    /// Returns the number of configurations.
    #[must_use]
    pub fn configurations(&self) -> usize {
        config_count(&self.query.configurations)
    }

    /// Returns the request that opens the stream. It has no timeout; the caller sets it.
    pub(crate) fn stream(&self) -> StreamRequest<'_> {
        let Query {
            model,
            target,
            top,
            adapt,
            ..
        } = &self.query;
        StreamRequest::new(&self.graph)
            .model(model.clone())
            .target(target)
            .top(*top)
            .adapt(adapt.clone())
    }

    /// Returns the configurations in batches of `size`.
    pub(crate) fn batches(&self, size: NonZeroU32) -> Vec<Configs> {
        cut_configs(&self.query.configurations, size.get() as usize)
    }

    /// Returns the request of a unary call.
    #[must_use]
    pub fn request(&self) -> RankRequest<'_> {
        RankRequest {
            graph: &self.graph,
            query: self.query.clone(),
            timeout: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{Task, TileBatch};

    use super::*;

    #[test]
    fn a_message_has_the_settings_of_its_request() {
        let graph = GraphHandle::hlo_module(vec![], Task::Tile, vec![]);
        let model = Some("tile@2".parse().unwrap());
        let request = RankRequest::new(&graph, &Configurations::Tile(TileBatch::default()));
        let message = request
            .model(model)
            .top(3)
            .with_scores()
            .allow_partial()
            .message();
        assert_eq!(message.model.map(|model| model.version), Some(2));
        assert_eq!(
            (message.top_k, message.include_scores, message.allow_partial),
            (3, true, true)
        );
    }
}
