use hlorank_graph::Configurations;
use hlorank_proto::v1::{RankConfigsRequest, rank_configs_request::Configs};

use crate::{GraphHandle, ModelReference};

/// A graph and the candidates to rank.
#[derive(Debug)]
pub struct RankRequest<'a> {
    pub(crate) graph: &'a GraphHandle,
    configurations: Configs,
    model: Option<ModelReference>,
    top: u32,
    scores: bool,
}

impl<'a> RankRequest<'a> {
    /// Asks for the whole ranking, by the default model of the task, without the scores in the order sent.
    #[must_use]
    pub fn new(graph: &'a GraphHandle, configurations: &Configurations) -> Self {
        Self { graph, configurations: smallest_form(configurations), model: None, top: 0, scores: false }
    }

    /// Asks this model.
    #[must_use]
    pub fn model(self, model: Option<ModelReference>) -> Self {
        Self { model, ..self }
    }

    /// Asks for only so many of the best; 0 for all, the default.
    #[must_use]
    pub fn top(self, top: u32) -> Self {
        Self { top, ..self }
    }

    /// Asks for the score of every candidate in the order sent, too.
    #[must_use]
    pub fn with_scores(self) -> Self {
        Self { scores: true, ..self }
    }

    /// The message, without a graph.
    pub(crate) fn message(&self) -> RankConfigsRequest {
        RankConfigsRequest {
            graph: None,
            configs: Some(self.configurations.clone()),
            model: self.model.as_ref().map(Into::into),
            top_k: self.top,
            include_scores: self.scores,
        }
    }
}

/// The packed form; the readable one for tiles that cannot be packed.
pub(crate) fn smallest_form(configurations: &Configurations) -> Configs {
    match configurations {
        Configurations::Layout(batch) => Configs::PackedLayoutConfigs(batch.to_packed()),
        Configurations::Tile(batch) => match batch.to_packed() {
            Some(packed) => Configs::PackedTileConfigs(packed),
            None => Configs::TileConfigs(batch.to_readable()),
        },
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{Limits, Task, TileBatch, TileConfiguration};

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
    fn a_request_says_what_was_asked() {
        let graph = GraphHandle::hlo_module(vec![], Task::Tile, vec![]);
        let model = Some("tile@2".parse().unwrap());
        let request = RankRequest::new(&graph, &tiles(&[&[1]])).model(model).top(3).with_scores();
        let message = request.message();
        assert_eq!(message.model.map(|model| model.version), Some(2));
        assert_eq!((message.top_k, message.include_scores), (3, true));
    }
}
