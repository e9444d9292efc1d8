//! Reads the fields that several methods share: graph, model, batch and measurements. [`CostModel::open`] makes a query of them.

use std::{mem::take, sync::Arc};

use bytes::Bytes;
use hlorank_graph::{Digest, EncodedBatch, Task};
use hlorank_proto::{
    methods::Scope,
    received::Adapt,
    v1::{self, ModelSelector},
};
use tonic::{Extensions, Request};

use crate::{
    admission::{Admission, Place},
    call::{ADAPT, Bounds, Call, Client, Decoder, SentMeasurements},
    caller::{AdminScope, Caller, ReportScope},
    errors::ServiceError,
    graphs::{FoundGraph, GraphContent, GraphOrigin, Graphs, SentGraph},
    learning::{Learning, MAX_OTHER_TARGETS, OtherTargets, WantedMeasurements},
    leases::Leases,
    model::Target,
    queries::{ModelSelection, Queries, Query, WantedModel},
    registry::VersionSelector,
    security::TokenError,
    store::{MeasurementFilter, ReaderDecisions, Reporter},
    stored_measurements::StoredMeasurements,
    telemetry::CallRecord,
};

/// `hlorank.v1.CostModelService`, by the parts that its calls go through. Clones share everything.
#[derive(Clone)]
pub(crate) struct CostModel {
    pub(crate) admission: Arc<Admission>,
    pub(crate) decoder: Decoder,
    pub(crate) models: Arc<ModelSelection>,
    pub(crate) graphs: Arc<Graphs>,
    pub(crate) queries: Arc<Queries>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) stored: Arc<StoredMeasurements>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) bounds: Bounds,
    /// What tokens with the scope `read` alone may decide.
    pub(crate) reader_decisions: ReaderDecisions,
}

const GRAPH_HINT: &str = "set graph_hash, hlo_module, hlo_text, features or feature_graph";

const TASK_HINT: &str = "TASK_TILE for a kernel, TASK_LAYOUT for a module whose layouts are tuned, TASK_FUSION for a program \
                         before fusion";

const CONFIGS_HINT: &str = "set layout_configs, packed_layout_configs, delta_layout_configs, tile_configs, \
                            packed_tile_configs, fusion_configs, packed_fusion_configs, node_feature_configs or \
                            parameter_configs";

/// The field that names other targets to learn from.
const OTHER_TARGETS: &str = "adapt.other_targets";

/// Maximum length of a target's name.
pub(super) const MAX_TARGET_BYTES: usize = 256;

/// Number of measurements or decisions of a page by default.
const PAGE_SIZE: u32 = 1_000;

/// Maximum number of measurements or decisions of a page.
const MAX_PAGE_SIZE: u32 = 10_000;

/// Maximum number of bytes that a page takes: as it is stored, as configurations, and as a message.
pub(super) const PAGE_BYTES: usize = 16 << 20;

impl CostModel {
    /// Returns the message of a request, and the call that it belongs to, from what the layers found out about it.
    pub(super) fn call<M>(&self, request: Request<M>) -> Result<(M, Call), ServiceError> {
        let (_, extensions, message) = request.into_parts();
        let caller = extensions.get().cloned().unwrap_or(Caller::Unknown);
        let place = match extensions.get::<Place>() {
            Some(place) => Ok(place.clone()),
            None => self.admission.open(&caller, 0),
        };
        let call = Call {
            place: place?,
            // Calls that are not observed leave their record unread.
            record: extensions.get::<CallRecord>().cloned().unwrap_or_default(),
            deadline: extensions.get().copied(),
            client: Self::client(&extensions),
        };
        Ok((message, call))
    }

    /// Returns who makes a call.
    pub(super) fn client(extensions: &Extensions) -> Client {
        let caller = extensions.get().unwrap_or(&Caller::Unknown);
        Client {
            reporter: Reporter::named(&caller.name()).expect("callers have names"),
            is_admin: extensions.get::<AdminScope>().is_some(),
            may_report: extensions.get::<ReportScope>().is_some(),
        }
    }

    /// Returns the configurations of a batch, which are still encoded.
    pub(super) async fn batch(&self, batch: Option<Bytes>) -> Result<EncodedBatch, ServiceError> {
        let batch = batch.unwrap_or_default();
        let batch = self.decoder.batch("batch", batch).await?;
        batch.ok_or(ServiceError::missing("configs", CONFIGS_HINT))
    }

    /// Decodes a request's graph, and reads where it comes from. `task` is the task of the batch that comes with it.
    pub(super) async fn graph(
        &self,
        graph: Option<Bytes>,
        task: Option<Task>,
    ) -> Result<GraphOrigin, ServiceError> {
        let graph = graph.ok_or(ServiceError::missing("graph", GRAPH_HINT))?;
        let graph = self.decoder.graph(graph).await?;
        let named = match v1::Task::try_from(graph.task) {
            Ok(v1::Task::Unspecified) => None,
            named => {
                let known = named.ok().and_then(Task::from_wire);
                Some(known.ok_or_else(|| {
                    let described = Task::ALL.map(|known| {
                        let kind = known.kind();
                        format!("{} ({})", kind.wire.as_str_name(), kind.number())
                    });
                    let found = graph.task.to_string();
                    ServiceError::invalid("graph.task", found, described.join(" or "))
                })?)
            }
        };
        let no_source = ServiceError::missing("graph.source", GRAPH_HINT);
        let content = match GraphContent::from_message(graph.source.ok_or(no_source)?) {
            Ok(content) => content,
            Err(hash) => return read_hash("graph.graph_hash", &hash).map(GraphOrigin::Hash),
        };
        let implied = matches!(content, GraphContent::FeatureGraph(_)).then_some(Task::FeatureSet);
        // What the request says explicitly comes first. Whether it suits the batch and the content is
        // checked where these are read.
        let task = named.or(task).or(implied);
        Ok(GraphOrigin::Sent(SentGraph {
            content,
            task: task.ok_or(ServiceError::missing("graph.task", TASK_HINT))?,
            configurable: graph.configurable_nodes,
        }))
    }

    /// Finds the graph of a request. `task` is the task of the batch that comes with it.
    pub(super) async fn find_graph(
        &self,
        graph: Option<Bytes>,
        task: Option<Task>,
        call: &Call,
    ) -> Result<FoundGraph, ServiceError> {
        let origin = self.graph(graph, task).await?;
        Ok(self.graphs.find(origin, call).await?)
    }

    /// Opens the query of a call, and has it learn. `task` is the task of the batch that comes with the graph; a stream has none
    /// yet.
    pub(super) async fn open(
        &self,
        graph: Option<Bytes>,
        model: Option<ModelSelector>,
        adapt: Option<Adapt>,
        task: Option<Task>,
        call: Call,
    ) -> Result<Query, ServiceError> {
        let wanted = wanted_model(model, adapt.as_ref())?;
        let record = &call.record;
        let (found, model) = match task {
            // An unknown model is refused before the graph is read.
            Some(task) if task != Task::FeatureSet => {
                let model = self.models.select(&wanted, task, record)?;
                (self.find_graph(graph, Some(task), &call).await?, model)
            }
            // The graph decides the model: by its task, or by its feature set.
            task => {
                let found = self.find_graph(graph, task, &call).await?;
                let model = self
                    .models
                    .select_for(&wanted, &found.graph.whole, record)?;
                (found, model)
            }
        };
        let query = self.queries.open(call, model, found)?;
        let Some(mut adapt) = adapt else {
            return Ok(query);
        };
        // What is learned comes before the scores, which are adapted to it. All that is cheap to check comes before the
        // batch, which takes milliseconds to decode.
        check_target(ADAPT.target, &adapt.target)?;
        let others = take(&mut adapt.other_targets);
        if others.len() > MAX_OTHER_TARGETS {
            let found = format!("{} targets", others.len());
            let expected = format!("at most {MAX_OTHER_TARGETS}");
            return Err(ServiceError::invalid(OTHER_TARGETS, found, expected));
        }
        for target in &others {
            check_target(OTHER_TARGETS, target)?;
        }
        let batch = match adapt.batch.take() {
            Some(batch) => self.decoder.batch(ADAPT.batch, batch).await?,
            // A call without measurements can still learn from those that are stored.
            None => None,
        };
        let wanted = WantedMeasurements {
            stored: adapt.use_stored,
            others: if adapt.all_other_targets {
                OtherTargets::All
            } else {
                OtherTargets::Named(others)
            },
            own_only: adapt.own_only,
        };
        let sent = SentMeasurements::new(&ADAPT, batch, adapt)?;
        Ok(query.adapted(&self.learning, sent, wanted).await?)
    }
}

/// Reads a graph hash.
pub(super) fn read_hash(field: &'static str, hash: &[u8]) -> Result<Digest, ServiceError> {
    let digest = <[u8; 32]>::try_from(hash).map(Digest);
    digest.map_err(|_| {
        let found = format!("{} bytes long", hash.len());
        ServiceError::invalid(field, found, "32 bytes")
    })
}

/// Returns which measurements a request is about, given the graph and the target that it may name.
pub(super) fn read_chosen(
    target: String,
    graph_hash: &[u8],
    reporter: Option<Reporter>,
    reported_before: u64,
) -> Result<MeasurementFilter, ServiceError> {
    let mut graph = None;
    if !graph_hash.is_empty() {
        // The store has the measurements of a target together, and finds a graph among those.
        check_target("target", &target)?;
        graph = Some(read_hash("graph_hash", graph_hash)?);
    }
    let target = Some(target).filter(|target| !target.is_empty());
    Ok(MeasurementFilter {
        target,
        graph,
        reporter,
        reported_before: Some(reported_before).filter(|&time| time > 0),
    })
}

/// Returns the model that a call asks for. Its target is that of its measurements if the selector names none.
fn wanted_model(
    selector: Option<ModelSelector>,
    adapt: Option<&Adapt>,
) -> Result<WantedModel, ServiceError> {
    let selector = selector.unwrap_or_default();
    let version = wanted_version(&selector)?;
    check_length("model.target", &selector.target, MAX_TARGET_BYTES)?;
    // The measurements of a call are of the target that its configurations are chosen for, so a
    // client need not name it twice.
    let target = match selector.target.as_str() {
        "" => adapt.map_or("", |adapt| adapt.target.as_str()),
        target => target,
    };
    Ok(WantedModel {
        version,
        target: Target::parse(target),
        names_target: !target.is_empty(),
        name: selector.name,
    })
}

/// Returns the version of a model that a request asks for.
pub(super) fn wanted_version(selector: &ModelSelector) -> Result<VersionSelector, ServiceError> {
    match (selector.version, selector.label.as_str()) {
        (0, "") => Ok(VersionSelector::Any),
        (0, "stable") => Ok(VersionSelector::Stable),
        (0, "canary") => Ok(VersionSelector::Canary),
        // The label is not quoted because it may be megabytes long.
        (0, _) => {
            let expected = "stable, canary or nothing";
            Err(ServiceError::invalid(
                "model.label",
                "an unknown label",
                expected,
            ))
        }
        (version, "") => Ok(VersionSelector::Version(version)),
        (version, _) => {
            let expected = "0 together with a label";
            Err(ServiceError::invalid(
                "model.version",
                version.to_string(),
                expected,
            ))
        }
    }
}

/// Checks that a target is named.
pub(super) fn check_target(field: &'static str, target: &str) -> Result<(), ServiceError> {
    if target.is_empty() {
        let hint = "name the hardware, compiler and flags that the times were measured with";
        return Err(ServiceError::missing(field, hint));
    }
    check_length(field, target, MAX_TARGET_BYTES)
}

/// Checks the length of a name, which is not quoted because it may be megabytes long.
pub(super) fn check_length(
    field: &'static str,
    text: impl AsRef<[u8]>,
    limit: usize,
) -> Result<(), ServiceError> {
    let bytes = text.as_ref().len();
    if bytes > limit {
        let found = format!("{bytes} bytes long");
        return Err(ServiceError::invalid(
            field,
            found,
            format!("at most {limit} bytes"),
        ));
    }
    Ok(())
}

/// Checks that a client has a scope beside `read`.
pub(super) fn check_scope(client: &Client, scope: Scope) -> Result<(), ServiceError> {
    let is_allowed = match scope {
        Scope::Read => true,
        Scope::Report => client.may_report,
        Scope::Admin => client.is_admin,
    };
    if is_allowed {
        return Ok(());
    }
    let name = client.reporter.name().to_owned();
    Err(TokenError::ScopeMissing { name, scope }.into())
}

/// Reads the number of measurements or decisions of a page.
pub(super) fn page_size(size: u32) -> Result<usize, ServiceError> {
    check_maximum("page_size", size, MAX_PAGE_SIZE)?;
    let size = if size == 0 { PAGE_SIZE } else { size };
    Ok(size as usize)
}

/// Checks a number that has a maximum.
pub(super) fn check_maximum(
    field: &'static str,
    found: u32,
    maximum: u32,
) -> Result<(), ServiceError> {
    if found > maximum {
        let expected = format!("at most {maximum}");
        return Err(ServiceError::invalid(field, found.to_string(), expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::*;

    #[test]
    fn a_hint_names_every_form_of_the_wire() {
        let pool = DescriptorPool::decode(hlorank_proto::FILE_DESCRIPTOR_SET).unwrap();
        for (message, hint) in [("ConfigBatch", CONFIGS_HINT), ("Graph", GRAPH_HINT)] {
            let named: Vec<&str> = hint.split([' ', ',']).collect();
            let message = pool
                .get_message_by_name(&format!("hlorank.v1.{message}"))
                .unwrap();
            for form in message
                .oneofs()
                .flat_map(|oneof| oneof.fields().collect::<Vec<_>>())
            {
                assert!(named.contains(&form.name()), "{} is missing", form.name());
            }
        }
    }
}
