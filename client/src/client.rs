use std::{slice, sync::Arc, time::Duration};

use hlorank_graph::Digest;
use hlorank_proto::v1::{
    self, CompareModelsRequest, CompareModelsResponse, ConfigurableNode, GetMeasuredGraphRequest,
    GetModelRequest, GraphSummary, LeaseState, ListModelsRequest, Model, PutGraphRequest,
    PutGraphResponse, RenewLeasesRequest, Warning,
};
use prost::Message;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::{
    Adapt, Address, ClientError, Connection, GraphHandle, ModelReference, RankRequest, RankStream,
    Ranking, ReportOutcome, StreamRequest, SuggestRequest, Suggestions,
    answer::{InvalidAnswer, graph_hash},
    calls::{Attempt, Calls},
    measurements::ReportDetails,
    replicas::{Replica, each},
    stream::outgoing,
};

/// A connection to one server or to several replicas. Clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    calls: Arc<Calls>,
    timeout: Option<Duration>,
    message_bytes: usize,
}

/// A graph as a server has cached it.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedGraph {
    /// The graph hash.
    pub hash: Digest,
    /// Sizes of the graph.
    pub summary: GraphSummary,
    /// The slots of a layout configuration, in order; empty for a kernel.
    pub configurable_nodes: Vec<ConfigurableNode>,
    /// Unusual properties of the graph that the server accepted.
    pub warnings: Vec<Warning>,
}

impl Client {
    /// Connects to a server such as `http://127.0.0.1:7070`, or `https://ranker.example:7070` over TLS.
    ///
    /// Fails if the server is not reachable. If the connection breaks later, the next call connects again.
    pub async fn connect(endpoint: &str, connection: Connection) -> Result<Self, ClientError> {
        Self::connect_replicas([endpoint], connection).await
    }

    /// Connects to several servers with the same models, which share the graphs.
    ///
    /// The route key of a graph selects the server that is called about it, so that this server has the graph cached.
    /// All clients of the same servers select the same one, and only the graphs of an added or removed server move
    /// (rendezvous hashing of route key and `host:port`). If the server does not answer, the call goes to the next by
    /// weight until it answers again. Calls about models go to any server that answers.
    ///
    /// Waits until each server has accepted or refused the connection, and fails if none accepted it.
    pub async fn connect_replicas(
        endpoints: impl IntoIterator<Item = impl AsRef<str>>,
        connection: Connection,
    ) -> Result<Self, ClientError> {
        let addresses = endpoints.into_iter().map(|text| text.as_ref().parse());
        let addresses: Vec<Address> = addresses.collect::<Result<_, _>>()?;
        Self::connect_addresses(&addresses, connection).await
    }

    /// Connects to each of several servers by itself, for calls that change or list what each of them has. A name with several
    /// addresses stands for as many servers. Returns their addresses and clients, or why there is none.
    pub async fn connect_each(
        endpoints: impl IntoIterator<Item = impl AsRef<str>>,
        connection: &Connection,
    ) -> Result<Vec<(String, Result<Self, ClientError>)>, ClientError> {
        let connect = async |address: &Address| {
            Self::connect_addresses(slice::from_ref(address), connection.clone()).await
        };
        each(endpoints, connect).await
    }

    async fn connect_addresses(
        addresses: &[Address],
        connection: Connection,
    ) -> Result<Self, ClientError> {
        let calls = Arc::new(Calls::connect(addresses, &connection).await?);
        Ok(Self {
            calls,
            timeout: connection.timeout,
            message_bytes: connection.message_bytes,
        })
    }

    /// Sends a graph to be cached, and returns the nodes that a configuration sets.
    pub async fn put_graph(&self, graph: &GraphHandle) -> Result<CachedGraph, ClientError> {
        let put = async |attempt: Attempt| {
            let message = self.checked(PutGraphRequest {
                graph: Some(graph.whole()),
            })?;
            let call = attempt.routed(graph, message);
            let answer = attempt
                .answer(attempt.replica.cost_model().put_graph(call))
                .await?;
            let PutGraphResponse {
                graph_hash: hash,
                summary,
                configurable_nodes,
                warnings,
            } = answer.into_inner();
            let cached = graph_hash(&hash).and_then(|hash| {
                Ok(CachedGraph {
                    hash,
                    summary: summary
                        .ok_or_else(|| InvalidAnswer::new("it lacks the sizes of the graph"))?,
                    configurable_nodes,
                    warnings,
                })
            });
            let cached = cached.map_err(|invalid| attempt.invalid(invalid))?;
            // Later calls send this hash instead of the graph.
            graph.set_hash(cached.hash);
            Ok(cached)
        };
        self.calls
            .make(graph.route().as_bytes(), self.timeout, put)
            .await
    }

    /// Ranks configurations. Sends the hash of the graph if it is known, and the graph itself if the server lacks it.
    pub async fn rank(&self, request: &RankRequest<'_>) -> Result<Ranking, ClientError> {
        let rank = async |attempt: Arc<Attempt>, graph| {
            let call = attempt.routed(request.graph, self.checked(request.message(graph))?);
            // The future is boxed, because an answer with all its fields exceeds what a stack should hold.
            let mut service = attempt.replica.cost_model();
            let answer = Box::pin(attempt.answer(service.rank_configs(call))).await?;
            let ranking = Ranking::from_answer(answer.into_inner(), request.asked())
                .map_err(|invalid| attempt.invalid(invalid))?;
            request.graph.set_hash(ranking.graph_hash);
            Ok(ranking)
        };
        let timeout = request.timeout.or(self.timeout);
        self.about(request.graph, timeout, rank).await
    }

    /// Proposes which configurations to measure next. Sends the hash of the graph if it is known, and the graph itself if
    /// the server lacks it.
    ///
    /// ```no_run
    /// # use hlorank_client::{Adapt, Client, ClientError, GraphHandle, SuggestRequest};
    /// # async fn example(client: Client, graph: GraphHandle, candidates: hlorank_graph::Configurations, measured: Adapt)
    /// # -> Result<(), ClientError> {
    /// let request = SuggestRequest::new(&graph, &candidates).adapt(Some(&measured)).count(4);
    /// for suggestion in client.suggest(&request).await?.suggestions {
    ///     println!("measure {}: about {} s", suggestion.config, suggestion.predicted_seconds);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn suggest(&self, request: &SuggestRequest<'_>) -> Result<Suggestions, ClientError> {
        let suggest = async |attempt: Arc<Attempt>, graph| {
            let call = attempt.routed(request.graph, self.checked(request.message(graph))?);
            let mut service = attempt.replica.cost_model();
            let suggested = Box::pin(service.suggest_configs(call));
            let answer = attempt.answer(suggested).await?;
            let suggestions = request
                .read(answer.into_inner())
                .map_err(|invalid| attempt.invalid(invalid))?;
            request.graph.set_hash(suggestions.graph_hash);
            Ok(suggestions)
        };
        let timeout = request.timeout.or(self.timeout);
        match self.about(request.graph, timeout, suggest).await {
            // A server that was started anew has no batches.
            Err(error) if error.is_unknown_batch() => {
                request.forget_batch();
                self.about(request.graph, timeout, suggest).await
            }
            answer => answer,
        }
    }

    /// Prolongs leases of a graph, whose hash the request names, or gives them back.
    pub async fn renew_leases(
        &self,
        graph: &GraphHandle,
        request: &RenewLeasesRequest,
    ) -> Result<Vec<LeaseState>, ClientError> {
        let renew = async |attempt: Attempt| {
            let call = attempt.routed(graph, request.clone());
            attempt
                .answer(attempt.replica.cost_model().renew_leases(call))
                .await
        };
        let route = graph.route().as_bytes();
        let answer = self.calls.make(route, self.timeout, renew).await?;
        Ok(answer.into_inner().states().collect())
    }

    /// Keeps measurements of a graph on the server, for later calls with [`Adapt::use_stored`]. Returns once they are on
    /// disk. A report can be repeated: what is known by its id is kept once. If the server has tokens, the client's needs the
    /// scope `report`.
    ///
    /// ```no_run
    /// # use hlorank_client::{Adapt, Client, ClientError, GraphHandle, MeasuredOutcome};
    /// # async fn example(client: Client, graph: GraphHandle, candidates: hlorank_graph::Configurations)
    /// # -> Result<(), ClientError> {
    /// let measured = [MeasuredOutcome::Time { seconds: 0.0021, repeats: 5 }];
    /// let adapt = Adapt::new("my board, XLA of May").measured(&candidates.select(&[0]), &measured);
    /// println!("{} are new", client.report_measurements(&graph, &adapt).await?.accepted);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn report_measurements(
        &self,
        graph: &GraphHandle,
        measurements: &Adapt,
    ) -> Result<ReportOutcome, ClientError> {
        let details = ReportDetails::default();
        self.report_measurements_with(&details, graph, measurements)
            .await
    }

    /// Keeps measurements as [`report_measurements`](Self::report_measurements) does, with all that can be said about them:
    /// who measured and when, the machine, and the leases that end with the report.
    pub async fn report_measurements_with(
        &self,
        details: &ReportDetails,
        graph: &GraphHandle,
        measurements: &Adapt,
    ) -> Result<ReportOutcome, ClientError> {
        let report = async |attempt: Arc<Attempt>, sent| {
            let message = details.message(measurements, sent);
            let call = attempt.routed(graph, self.checked(message)?);
            let answer = attempt
                .answer(attempt.replica.cost_model().report_measurements(call))
                .await?;
            let kept = ReportOutcome::from_answer(answer.into_inner())
                .map_err(|invalid| attempt.invalid(invalid))?;
            graph.set_hash(kept.graph_hash);
            Ok(kept)
        };
        self.about(graph, self.timeout, report).await
    }

    /// Lists measurements that the server keeps, a page at a time. Each replica has its own: [`Client::connect_each`].
    pub async fn list_measurements(
        &self,
        request: &v1::ListMeasurementsRequest,
    ) -> Result<v1::ListMeasurementsResponse, ClientError> {
        self.unary(request, async |replica, call| {
            replica.cost_model().list_measurements(call).await
        })
        .await
    }

    /// Returns a graph that the server keeps measurements of; nothing if it does not keep the graph itself. If the server has
    /// tokens, the client's needs the scope `admin`.
    pub async fn measured_graph(
        &self,
        target: &str,
        graph: Digest,
    ) -> Result<Option<v1::Graph>, ClientError> {
        let request = GetMeasuredGraphRequest {
            target: target.to_owned(),
            graph_hash: graph.0.to_vec().into(),
        };
        let answer = self.unary(&request, async |replica, call| {
            replica.cost_model().get_measured_graph(call).await
        });
        Ok(answer.await?.graph)
    }

    /// Deletes measurements that the server keeps, and returns how many there were. Each replica has its own:
    /// [`Client::connect_each`]. If the server has tokens, the client's needs the scope `admin`.
    pub async fn delete_measurements(
        &self,
        request: &v1::DeleteMeasurementsRequest,
    ) -> Result<u64, ClientError> {
        let answer = self.unary(request, async |replica, call| {
            replica.cost_model().delete_measurements(call).await
        });
        Ok(answer.await?.deleted)
    }

    /// Looks up a decision, and claims its key or proposes one. Retries are safe: the first proposal that the server stored
    /// answers. Servers among which this chooses must share a database, since each other one decides for itself.
    ///
    /// ```no_run
    /// # use hlorank_client::{Client, ClientError, v1};
    /// # async fn example(client: Client) -> Result<(), ClientError> {
    /// let key = v1::DecisionKey {
    ///     namespace: "space".to_owned(),
    ///     key: "gemm 1024".into(),
    ///     target: "device=my board;compiler=1.2".to_owned(),
    /// };
    /// let request = v1::DecideRequest { key: Some(key), ..v1::DecideRequest::default() };
    /// if let Some(v1::decide_response::Outcome::Decided(decision)) = client.decide(&request).await?.outcome {
    ///     println!("{}", String::from_utf8_lossy(&decision.value));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn decide(
        &self,
        request: &v1::DecideRequest,
    ) -> Result<v1::DecideResponse, ClientError> {
        let decide = async |attempt: Attempt| {
            let call = attempt.request(self.checked(request.clone())?);
            attempt
                .answer(attempt.replica.cost_model().decide(call))
                .await
        };
        let key = request.key.as_ref();
        let route = key.map(|key| &key.key[..]).unwrap_or_default();
        let answer = self.calls.make(route, self.timeout, decide).await?;
        Ok(answer.into_inner())
    }

    /// Lists decisions, a page at a time.
    pub async fn list_decisions(
        &self,
        request: &v1::ListDecisionsRequest,
    ) -> Result<v1::ListDecisionsResponse, ClientError> {
        self.unary(request, async |replica, call| {
            replica.cost_model().list_decisions(call).await
        })
        .await
    }

    /// Opens a stream that ranks any number of batches. Use it if the configurations exceed one message, or if later
    /// ones depend on earlier scores. Sends the hash of the graph if it is known, and the graph itself if the server
    /// lacks it.
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
    pub async fn rank_stream(
        &self,
        request: &StreamRequest<'_>,
    ) -> Result<RankStream, ClientError> {
        let open = async |attempt: Arc<Attempt>, graph| {
            // The start is queued before the call, because the server answers nothing before it
            // has read it.
            let (batches, outgoing) = outgoing(self.checked(request.message(graph))?);
            let call = attempt.routed(request.graph, ReceiverStream::new(outgoing));
            let answers = attempt
                .answer(attempt.replica.cost_model().rank_configs_stream(call))
                .await?;
            let limit = self.message_bytes;
            RankStream::open(attempt, request, batches, answers.into_inner(), limit).await
        };
        self.about(request.graph, request.timeout, open).await
    }

    /// Returns every model version, ordered by name, then version.
    pub async fn list_models(&self) -> Result<Vec<Model>, ClientError> {
        let answer = self.unary(&ListModelsRequest {}, async |replica, call| {
            replica.models().list_models(call).await
        });
        Ok(answer.await?.models)
    }

    /// Returns one version of a model, by default the stable one.
    pub async fn get_model(&self, name: &str, version: Option<u64>) -> Result<Model, ClientError> {
        let get = async |attempt: Attempt| {
            let call = attempt.request(GetModelRequest {
                name: name.to_owned(),
                // 0 stands for the stable version.
                version: version.unwrap_or(0),
            });
            let answer = attempt
                .answer(attempt.replica.models().get_model(call))
                .await?;
            answer
                .into_inner()
                .model
                .ok_or_else(|| attempt.violated("it lacks the model"))
        };
        self.calls.make(&[], self.timeout, get).await
    }

    /// Compares two loaded model versions on the measurements of a target that the server keeps, or on all if `target` is
    /// empty. If the server has tokens, the client's needs the scope `admin`.
    pub async fn compare_models(
        &self,
        [first, second]: [&ModelReference; 2],
        target: &str,
    ) -> Result<CompareModelsResponse, ClientError> {
        let request = CompareModelsRequest {
            first: Some(first.into()),
            second: Some(second.into()),
            target: target.to_owned(),
        };
        self.unary(&request, async |replica, call| {
            replica.models().compare_models(call).await
        })
        .await
    }

    /// Makes a call about no graph, whose route key is empty, at any replica.
    async fn unary<M: Clone, T, F: Future<Output = Result<Response<T>, Status>>>(
        &self,
        message: &M,
        send: impl Fn(Arc<Replica>, Request<M>) -> F,
    ) -> Result<T, ClientError> {
        let call = async |attempt: Attempt| {
            let call = attempt.request(message.clone());
            attempt
                .answer(send(Arc::clone(&attempt.replica), call))
                .await
        };
        Ok(self.calls.make(&[], self.timeout, call).await?.into_inner())
    }

    /// Makes a call about a graph, at its replica: with the hash of the graph if it is known, and with the graph itself if
    /// the server lacks it.
    async fn about<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        graph: &GraphHandle,
        timeout: Option<Duration>,
        call: impl Fn(Arc<Attempt>, v1::Graph) -> F,
    ) -> Result<T, ClientError> {
        let attempted = async |attempt: Attempt| {
            let attempt = Arc::new(attempt);
            // Both futures are boxed, or the caller's would hold the message of each.
            if let Some(by_hash) = graph.by_hash() {
                match Box::pin(call(Arc::clone(&attempt), by_hash)).await {
                    Err(error) if error.is_graph_not_cached() => {}
                    answer => return answer,
                }
            }
            Box::pin(call(attempt, graph.whole())).await
        };
        let route = graph.route().as_bytes();
        self.calls.make(route, timeout, attempted).await
    }

    /// Returns the message, or an error if it exceeds the maximum message size.
    fn checked<M: Message>(&self, message: M) -> Result<M, ClientError> {
        // The transport would refuse the message as well, but as if the server had answered with an
        // error.
        let found = message.encoded_len();
        let limit = self.message_bytes;
        if found > limit {
            return Err(ClientError::RequestTooLong { found, limit });
        }
        Ok(message)
    }
}
