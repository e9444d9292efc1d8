use std::{num::NonZeroU32, sync::Arc, time::Duration};

use hlorank_graph::Configurations;
use hlorank_proto::v1::{ConfigBatch, RankConfigsRequest, config_batch::Configs};

use crate::{GraphHandle, ModelReference, StreamRequest, batches::batches};

/// A graph and the candidates to rank.
#[derive(Debug)]
pub struct RankRequest<'a> {
    pub(crate) graph: &'a GraphHandle,
    asked: Asked,
    pub(crate) timeout: Option<Duration>,
}

/// What is asked about a graph.
#[derive(Clone, Debug)]
struct Asked {
    configurations: Configs,
    model: Option<ModelReference>,
    top: u32,
    scores: bool,
    partial: bool,
}

impl<'a> RankRequest<'a> {
    /// Asks for the whole ranking, by the default model of the task, without the scores in the order sent.
    #[must_use]
    pub fn new(graph: &'a GraphHandle, configurations: &Configurations) -> Self {
        let configurations = smallest_form(configurations);
        let asked = Asked { configurations, model: None, top: 0, scores: false, partial: false };
        Self { graph, asked, timeout: None }
    }

    /// Asks this model.
    #[must_use]
    pub fn model(self, model: Option<ModelReference>) -> Self {
        Self { asked: Asked { model, ..self.asked }, ..self }
    }

    /// Asks for only so many of the best; 0 for all, the default.
    #[must_use]
    pub fn top(self, top: u32) -> Self {
        Self { asked: Asked { top, ..self.asked }, ..self }
    }

    /// Asks for the score of every candidate in the order sent, too.
    #[must_use]
    pub fn with_scores(self) -> Self {
        Self { asked: Asked { scores: true, ..self.asked }, ..self }
    }

    /// Takes a ranking of the first candidates where there is not time for all; [`Ranking::scored`](crate::Ranking::scored)
    /// tells how many.
    #[must_use]
    pub fn allow_partial(self) -> Self {
        Self { asked: Asked { partial: true, ..self.asked }, ..self }
    }

    /// Allows the call so long, retries included, in place of [`Connection::timeout`](crate::Connection::timeout).
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The message, without a graph.
    pub(crate) fn message(&self) -> RankConfigsRequest {
        let Asked { configurations, model, top, scores, partial } = &self.asked;
        RankConfigsRequest {
            graph: None,
            batch: Some(ConfigBatch { configs: Some(configurations.clone()) }),
            model: model.as_ref().map(Into::into),
            top_k: *top,
            include_scores: *scores,
            allow_partial: *partial,
        }
    }
}

/// A request that holds its graph, to be made again and again: of a recorded trace, or of a load.
#[derive(Clone, Debug)]
pub struct RankCall {
    graph: Arc<GraphHandle>,
    asked: Asked,
    batch: Option<NonZeroU32>,
}

impl RankCall {
    /// What a request about this graph asks.
    #[must_use]
    pub fn new(graph: Arc<GraphHandle>, request: RankRequest<'_>) -> Self {
        Self { graph, asked: request.asked, batch: None }
    }

    /// The call of a message; `None` where it has no candidates. The graph of the message does not count.
    pub(crate) fn of_message(graph: Arc<GraphHandle>, message: RankConfigsRequest) -> Option<Self> {
        let asked = Asked {
            configurations: message.batch?.configs?,
            model: message.model.map(Into::into),
            top: message.top_k,
            scores: message.include_scores,
            partial: message.allow_partial,
        };
        Some(Self { graph, asked, batch: None })
    }

    /// Sends the candidates as a stream, so many a batch.
    #[must_use]
    pub fn in_batches(self, batch: Option<NonZeroU32>) -> Self {
        Self { batch, ..self }
    }

    /// Candidates of a batch, where they are sent as a stream.
    #[must_use]
    pub fn batch(&self) -> Option<NonZeroU32> {
        self.batch
    }

    /// What it is about.
    #[must_use]
    pub fn graph(&self) -> &Arc<GraphHandle> {
        &self.graph
    }

    /// How many candidates it has.
    #[must_use]
    pub fn configurations(&self) -> usize {
        match &self.asked.configurations {
            Configs::LayoutConfigs(message) => message.configs.len(),
            Configs::PackedLayoutConfigs(message) => message.config_count as usize,
            Configs::DeltaLayoutConfigs(message) => message.change_counts.len(),
            Configs::TileConfigs(message) => message.configs.len(),
            Configs::PackedTileConfigs(message) => message.config_count as usize,
        }
    }

    /// What starts the stream of it; deadlines of streams are for whoever makes them.
    pub(crate) fn stream(&self) -> StreamRequest<'_> {
        StreamRequest::new(&self.graph).model(self.asked.model.clone()).top(self.asked.top)
    }

    /// The candidates, so many a batch.
    pub(crate) fn batches(&self, size: NonZeroU32) -> Vec<Configs> {
        batches(&self.asked.configurations, size.get() as usize)
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> RankRequest<'_> {
        RankRequest { graph: &self.graph, asked: self.asked.clone(), timeout: None }
    }
}

/// Changes to the first configuration where there are few, as in a step of a search, else the packed form; the
/// readable one for tiles that cannot be packed.
pub(crate) fn smallest_form(configurations: &Configurations) -> Configs {
    match configurations {
        Configurations::Layout(batch) if batch.changes() * CHANGE_BYTES < batch.len() * batch.slots() => {
            Configs::DeltaLayoutConfigs(batch.to_delta())
        }
        Configurations::Layout(batch) => Configs::PackedLayoutConfigs(batch.to_packed()),
        Configurations::Tile(batch) => match batch.to_packed() {
            Some(packed) => Configs::PackedTileConfigs(packed),
            None => Configs::TileConfigs(batch.to_readable()),
        },
    }
}

/// Bytes of a change at most, but for huge tables, where a packed entry takes one or two.
const CHANGE_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use hlorank_graph::{LayoutBatchBuilder, LayoutEntry, Limits, Task, TileBatch, TileConfiguration};

    use super::*;

    fn tiles(outputs: &[&[i64]]) -> Configurations {
        let mut batch = TileBatch::default();
        for &output_bounds in outputs {
            let tile = TileConfiguration { kernel_bounds: &[], output_bounds, input_bounds: &[] };
            batch.push(tile, &Limits::default()).unwrap();
        }
        Configurations::Tile(batch)
    }

    #[test]
    fn tiles_go_packed_where_they_can_be() {
        assert!(matches!(smallest_form(&tiles(&[&[1], &[2]])), Configs::PackedTileConfigs(_)));
        assert!(matches!(smallest_form(&tiles(&[&[1], &[2, 3]])), Configs::TileConfigs(_)));
    }

    #[test]
    fn layouts_with_few_changes_go_as_changes() {
        let layouts = |changed: usize| {
            let mut batch = LayoutBatchBuilder::new(40, Limits::default());
            for config in 0..10 {
                let mut entries = vec![LayoutEntry::DEFAULT; 40];
                entries[..changed].fill(LayoutEntry::from_numbers([config, 0, 0], String::new).unwrap());
                batch.push(&entries).unwrap();
            }
            smallest_form(&Configurations::Layout(batch.build().unwrap()))
        };
        assert!(matches!(layouts(3), Configs::DeltaLayoutConfigs(_)));
        assert!(matches!(layouts(30), Configs::PackedLayoutConfigs(_)));
    }

    #[test]
    fn a_request_says_what_was_asked() {
        let graph = GraphHandle::hlo_module(vec![], Task::Tile, vec![]);
        let model = Some("tile@2".parse().unwrap());
        let request =
            RankRequest::new(&graph, &tiles(&[&[1]])).model(model).top(3).with_scores().allow_partial();
        let message = request.message();
        assert_eq!(message.model.map(|model| model.version), Some(2));
        assert_eq!((message.top_k, message.include_scores, message.allow_partial), (3, true, true));
    }
}
