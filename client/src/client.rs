use hlorank_graph::Digest;
use hlorank_proto::v1::{
    self, ConfigurableNode, GetModelRequest, GraphSummary, ListModelsRequest, Model, PutGraphRequest,
    PutGraphResponse, RankConfigsRequest, Warning, cost_model_service_client::CostModelServiceClient,
    model_service_client::ModelServiceClient,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, transport::Channel};

use crate::{
    ClientError, Connection, GraphHandle, ROUTE_HEADER, RankRequest, RankStream, Ranking, StreamRequest,
    ranking::graph_hash, stream::outgoing,
};

/// A connection to a server. Clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    cost_model: CostModelServiceClient<Channel>,
    models: ModelServiceClient<Channel>,
    message_bytes: usize,
}

/// What a server made of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedGraph {
    /// The graph hash.
    pub hash: Digest,
    /// Its sizes.
    pub summary: GraphSummary,
    /// The slots of a layout configuration, in order; empty for a kernel.
    pub configurable_nodes: Vec<ConfigurableNode>,
    /// What was accepted although it is unusual.
    pub warnings: Vec<Warning>,
}

impl Client {
    /// Connects to a server such as `http://127.0.0.1:7070`.
    pub async fn connect(endpoint: &str, connection: Connection) -> Result<Self, ClientError> {
        let channel = connection.open(endpoint).await?;
        let limit = connection.message_bytes;
        Ok(Self {
            cost_model: CostModelServiceClient::new(channel.clone())
                .max_decoding_message_size(limit)
                .max_encoding_message_size(limit),
            models: ModelServiceClient::new(channel),
            message_bytes: limit,
        })
    }

    /// Sends a graph to be cached, and learns which nodes a configuration sets.
    pub async fn put_graph(&self, graph: &GraphHandle) -> Result<CachedGraph, ClientError> {
        let request = routed(graph, PutGraphRequest { graph: Some(graph.whole()) });
        let answer = self.cost_model.clone().put_graph(request).await?.into_inner();
        let cached = CachedGraph::try_from(answer)?;
        graph.learn(cached.hash);
        Ok(cached)
    }

    /// Ranks configurations. Sends the graph by hash where that is known, and the graph itself where the server
    /// asks for it.
    pub async fn rank(&self, request: &RankRequest<'_>) -> Result<Ranking, ClientError> {
        if let Some(by_hash) = request.graph.by_hash() {
            match self.rank_graph(request, by_hash).await {
                Err(error) if error.is_graph_not_cached() => {}
                answer => return answer,
            }
        }
        self.rank_graph(request, request.graph.whole()).await
    }

    async fn rank_graph(&self, request: &RankRequest<'_>, graph: v1::Graph) -> Result<Ranking, ClientError> {
        let call = rank_call(request, graph);
        let answer = self.cost_model.clone().rank_configs(call).await?.into_inner();
        let ranking = Ranking::try_from(answer)?;
        request.graph.learn(ranking.graph_hash);
        Ok(ranking)
    }

    /// Starts to rank candidates that come in batches: more than a message holds, or than are known at once. Sends
    /// the graph by hash where that is known, and the graph itself where the server asks for it.
    ///
    /// ```no_run
    /// # use hlorank_client::{Client, ClientError, GraphHandle, StreamRequest};
    /// # async fn example(client: Client, graph: GraphHandle, batches: Vec<hlorank_graph::Configurations>)
    /// # -> Result<(), ClientError> {
    /// let mut stream = client.rank_stream(&StreamRequest::new(&graph).top(10)).await?;
    /// for batch in &batches {
    ///     stream.send(batch).await?;
    ///     if let Some(scored) = stream.scores().await? {
    ///         println!("from number {}: {:?}", scored.first, scored.scores);
    ///     }
    /// }
    /// println!("measure these first: {:?}", stream.finish().await?.best);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rank_stream(&self, request: &StreamRequest<'_>) -> Result<RankStream, ClientError> {
        if let Some(by_hash) = request.graph.by_hash() {
            match self.open_stream(request, by_hash).await {
                Err(error) if error.is_graph_not_cached() => {}
                opened => return opened,
            }
        }
        self.open_stream(request, request.graph.whole()).await
    }

    async fn open_stream(
        &self,
        request: &StreamRequest<'_>,
        graph: v1::Graph,
    ) -> Result<RankStream, ClientError> {
        let (batches, outgoing) = outgoing(request.message(graph));
        let call = routed(request.graph, ReceiverStream::new(outgoing));
        let answers = self.cost_model.clone().rank_configs_stream(call).await?.into_inner();
        RankStream::open(request.graph, batches, answers, self.message_bytes).await
    }

    /// Every model version, by name, then version.
    pub async fn list_models(&self) -> Result<Vec<Model>, ClientError> {
        let answer = self.models.clone().list_models(ListModelsRequest {}).await?;
        Ok(answer.into_inner().models)
    }

    /// One version of a model, or the stable one.
    pub async fn get_model(&self, name: &str, version: Option<u64>) -> Result<Model, ClientError> {
        let request = GetModelRequest { name: name.to_owned(), version: version.unwrap_or(0) };
        let answer = self.models.clone().get_model(request).await?;
        answer.into_inner().model.ok_or(ClientError::Answer("it holds no model"))
    }
}

/// The call that ranks a graph, which is sent whole or by hash.
fn rank_call(request: &RankRequest<'_>, graph: v1::Graph) -> Request<RankConfigsRequest> {
    routed(request.graph, RankConfigsRequest { graph: Some(graph), ..request.message() })
}

/// Adds the route key of a graph.
fn routed<T>(graph: &GraphHandle, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(ROUTE_HEADER, graph.route().clone());
    request
}

impl TryFrom<PutGraphResponse> for CachedGraph {
    type Error = ClientError;

    fn try_from(answer: PutGraphResponse) -> Result<Self, ClientError> {
        Ok(Self {
            hash: graph_hash(&answer.graph_hash)?,
            summary: answer.summary.ok_or(ClientError::Answer("it has no sizes of the graph"))?,
            configurable_nodes: answer.configurable_nodes,
            warnings: answer.warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{Configurations, Task, TileBatch};
    use hlorank_proto::v1::graph::Source;

    use super::*;

    fn source(call: Request<RankConfigsRequest>) -> Option<Source> {
        call.into_inner().graph.and_then(|graph| graph.source)
    }

    #[test]
    fn every_call_about_a_graph_has_its_route() {
        let handle = GraphHandle::hlo_module(vec![1, 2, 3], Task::Tile, vec![]);
        let request = RankRequest::new(&handle, &Configurations::Tile(TileBatch::default()));
        let put = routed(&handle, PutGraphRequest { graph: Some(handle.whole()) });
        let whole = rank_call(&request, handle.whole());
        handle.learn(Digest([7; 32]));
        let by_hash = rank_call(&request, handle.by_hash().unwrap());
        let route = Some(handle.route());
        for metadata in [put.metadata(), whole.metadata(), by_hash.metadata()] {
            assert_eq!(metadata.get("x-hlorank-route"), route);
        }
    }

    #[test]
    fn a_call_has_the_graph_or_its_hash() {
        let handle = GraphHandle::hlo_module(vec![1, 2, 3], Task::Tile, vec![]);
        let request = RankRequest::new(&handle, &Configurations::Tile(TileBatch::default()));
        let whole = rank_call(&request, handle.whole());
        assert_eq!(source(whole), Some(Source::HloModule(vec![1, 2, 3].into())));
        handle.learn(Digest([7; 32]));
        let by_hash = rank_call(&request, handle.by_hash().unwrap());
        assert_eq!(source(by_hash), Some(Source::GraphHash(vec![7; 32].into())));
    }
}
