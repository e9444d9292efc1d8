//! Measurements that are kept: reports of them, and those that a call's own are joined with.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use hlorank_graph::{ConfigurationError, Configurations, EncodedBatch, Limits, SegmentedGraph};

use super::{
    Call, SentMeasurements, SessionError, Sessions,
    kept_graph::{keep, kept_bytes},
    measurements::{MAX_LEARNED, REPORT},
    sessions::FoundGraph,
};
use crate::{
    compute::Class,
    store::{
        Chosen, Measurement, MeasurementStore, Outcome, Reported, Reporter, StoreError, Subject,
    },
};

/// Measured configurations, and what came of each.
pub(super) struct Measured {
    pub(super) configurations: Arc<Configurations>,
    pub(super) outcomes: Vec<Outcome>,
    /// `[configurations]` who reported each; the call's client if it sent it.
    pub(super) reporters: Vec<Option<Reporter>>,
    /// `[configurations]` the first measurement with the same configuration, id and outcome, which another reported.
    twins: Vec<usize>,
    /// Number of those that the call sent, which come first.
    sent: usize,
}

/// Bytes of a measurement beside its configuration: key, record and what the file's pages add.
const MEASUREMENT_BYTES: usize = 1 << 10;

/// Maximum number of bytes of an entry of a layout: as it is kept, in a batch and to learn from.
const ENTRY_BYTES: usize = 40;

/// The same for a column of a node: as it is kept, in a batch and in the input of a model.
const COLUMN_BYTES: usize = 4 * size_of::<f32>();

impl Measured {
    fn of_sent(configurations: Configurations, outcomes: Vec<Outcome>, client: &Reporter) -> Self {
        let sent = outcomes.len();
        let reporters = vec![Some(client.clone()); sent];
        Self {
            configurations: Arc::new(configurations),
            outcomes,
            reporters,
            twins: (0..sent).collect(),
            sent,
        }
    }

    /// Whether the call sent a measurement.
    pub(super) fn is_sent(&self, number: usize) -> bool {
        number < self.sent
    }

    /// The numbers of the measurements by reporters that `keeps` keeps. What two of them report alike counts once.
    pub(super) fn kept(&self, keeps: impl Fn(Option<&Reporter>) -> bool) -> Vec<usize> {
        let mut known = HashSet::new();
        let is_kept = |number: &usize| {
            keeps(self.reporters[*number].as_ref())
                && (self.is_sent(*number) || known.insert(self.twins[*number]))
        };
        (0..self.outcomes.len()).filter(is_kept).collect()
    }
}

impl Sessions {
    /// The store of measurements, if the server has one.
    pub(crate) fn store(&self) -> Result<&Arc<MeasurementStore>, StoreError> {
        self.kept().ok_or(StoreError::Off)
    }

    /// Keeps measurements, and their graph with the first of them. Returns once they are on disk.
    pub(crate) async fn report(
        &self,
        call: &Call,
        found: &FoundGraph,
        sent: SentMeasurements,
        reporter: Reporter,
    ) -> Result<Reported, SessionError> {
        let store = self.store()?;
        let SentMeasurements {
            target,
            batch,
            outcomes,
            ids,
        } = sent;
        let batch = batch.ok_or(SessionError::Configuration {
            field: REPORT.batch,
            source: ConfigurationError::Empty,
        })?;
        let (graph, limits) = (Arc::clone(&found.graph), self.bounds().limits);
        call.place.hold(
            batch.read_bytes(graph.slots(), &limits)
                + measurement_bytes((&graph, batch.columns()), batch.count()),
        )?;
        let subject = Subject {
            target,
            graph: graph.hash,
        };
        let by = Some(reporter.clone());
        let measurements = move || {
            let configurations = read(&batch, &graph, &limits)?;
            let each = outcomes.into_iter().zip(ids).enumerate();
            let each = each.map(|(config, (outcome, id))| Measurement {
                task: graph.task,
                config: configurations.canonical(config),
                id,
                outcome,
                reporter: by.clone(),
            });
            Ok(each.collect())
        };
        let measurements = self
            .pool()
            .run(Class::Bulk, move |_| measurements())
            .await?
            .value;
        let measurements = measurements.map_err(|source| SessionError::Configuration {
            field: REPORT.batch,
            source,
        })?;
        let kept = if store.has_graph(subject.clone()).await? {
            None
        } else {
            let (graph, program) = (Arc::clone(&found.graph), found.program.clone());
            call.place.hold(kept_bytes(&graph.whole))?;
            let keep = move |_| keep(&graph.whole, program.as_deref(), reporter);
            self.pool().run(Class::Bulk, keep).await?.value?
        };
        Ok(store.report(subject, measurements, kept).await?)
    }

    /// Reads the chosen measurements, which are of one graph.
    pub(super) async fn stored(
        &self,
        call: &Call,
        (graph, columns): (&SegmentedGraph, Option<usize>),
        chosen: &Chosen,
    ) -> Result<Vec<Measurement>, SessionError> {
        let (store, mut stored, mut after) = (self.store()?, Vec::new(), None);
        loop {
            let left = MAX_LEARNED - stored.len();
            let page = store.list(chosen, after, left).await?;
            call.place
                .hold(measurement_bytes((graph, columns), page.measurements.len()))?;
            stored.extend(
                page.measurements
                    .into_iter()
                    .map(|(_, measurement)| measurement),
            );
            after = page.next;
            if after.is_none() || stored.len() >= MAX_LEARNED {
                return Ok(stored);
            }
        }
    }
}

/// Bytes of measurements of a graph whose configurations have this many columns of a feature set.
pub(super) fn measurement_bytes(
    (graph, columns): (&SegmentedGraph, Option<usize>),
    measurements: usize,
) -> usize {
    let slot_bytes = columns.map_or(ENTRY_BYTES, |columns| columns.saturating_mul(COLUMN_BYTES));
    measurements.saturating_mul(
        graph
            .slots()
            .saturating_mul(slot_bytes)
            .saturating_add(MEASUREMENT_BYTES),
    )
}

fn read(
    batch: &EncodedBatch,
    graph: &SegmentedGraph,
    limits: &Limits,
) -> Result<Configurations, ConfigurationError> {
    let read = batch.read(graph.task, &graph.configurable, limits)?;
    read.check(&graph.whole)?;
    Ok(read)
}

/// Joins measurements that a call sent with stored ones of the same graph. A stored one that was sent too counts once.
/// Returns nothing if there are none, and why stored ones cannot be used. `graph` has the number of columns that the model
/// takes of a configuration, if it names them.
pub(super) fn join(
    graph: (&SegmentedGraph, Option<usize>),
    (sent, client): (Option<Configurations>, &Reporter),
    outcomes: Vec<Outcome>,
    ids: &[Vec<u8>],
    stored: Vec<Measurement>,
) -> (Option<Measured>, Option<ConfigurationError>) {
    let unusable = if stored.is_empty() {
        None
    } else {
        match joined(graph, (sent.as_ref(), client), (&outcomes, ids), stored) {
            Ok(measured) => return (Some(measured), None),
            Err(error) => Some(error),
        }
    };
    (
        sent.map(|configurations| Measured::of_sent(configurations, outcomes, client)),
        unusable,
    )
}

fn joined(
    (graph, columns): (&SegmentedGraph, Option<usize>),
    (sent, client): (Option<&Configurations>, &Reporter),
    (outcomes, ids): (&[Outcome], &[Vec<u8>]),
    stored: Vec<Measurement>,
) -> Result<Measured, ConfigurationError> {
    let canonical = |sent: &Configurations| {
        (0..sent.len())
            .map(|config| sent.canonical(config))
            .collect()
    };
    let mut configs: Vec<Vec<u8>> = sent.map(canonical).unwrap_or_default();
    let known: HashSet<(&[u8], &[u8])> = configs
        .iter()
        .zip(ids)
        .map(|(config, id)| (config.as_slice(), id.as_slice()))
        .collect();
    let is_new =
        |each: &Measurement| !known.contains(&(each.config.as_slice(), each.id.as_slice()));
    let new: Vec<Measurement> = stored.into_iter().filter(is_new).collect();
    let (mut outcomes, sent) = (outcomes.to_vec(), outcomes.len());
    let mut reporters = vec![Some(client.clone()); sent];
    let mut twins: Vec<usize> = (0..sent).collect();
    let mut first = HashMap::new();
    for Measurement {
        config,
        id,
        outcome,
        reporter,
        ..
    } in new
    {
        let number = outcomes.len();
        let Outcome {
            seconds,
            repeats,
            failure,
        } = outcome;
        let same = (config.clone(), id, seconds.to_bits(), repeats, failure);
        twins.push(*first.entry(same).or_insert(number));
        configs.push(config);
        outcomes.push(outcome);
        reporters.push(reporter);
    }
    let configs = configs.iter().map(Vec::as_slice);
    let configurations = Configurations::from_canonical(graph.task, configs, &Limits::default())?;
    configurations.check(&graph.whole)?;
    match (configurations.columns(), columns) {
        (Some(found), Some(expected)) if found != expected => {
            return Err(ConfigurationError::WrongColumns { found, expected });
        }
        _ => {}
    }
    Ok(Measured {
        configurations: Arc::new(configurations),
        outcomes,
        reporters,
        twins,
        sent,
    })
}
