//! Chooses for one of many workers, and leases what is chosen.

use std::{collections::HashSet, sync::Arc, time::Duration};

use hlorank_adaptation::SuggestionRequest;
use hlorank_graph::{Configurations, Digest, pace};

use super::suggest::{EarlierChoice, Suggestions, suggest_from};
use crate::{
    call::CallError,
    clock,
    leases::{
        GrantedLease, Leases, LeasingTurn, Places, SOONEST_RETRY, SearchState, SearchView,
        WantedLeases,
    },
    queries::{Query, ReadBatch},
    store::{Measurement, config_digest},
};

/// What a worker is given.
pub(crate) struct LeasedSuggestions {
    /// What to measure; `None` if there is nothing.
    pub(crate) chosen: Option<Suggestions>,
    /// The lease of each suggestion.
    pub(crate) leases: Vec<GrantedLease>,
    pub(crate) state: SearchState,
}

/// How often a choice is repeated of which nothing could be leased, since others leased meanwhile.
const TRIES: usize = 4;

/// Returns the worker's own live leases, and then leases others of the batch that nobody has and that were not measured.
pub(crate) async fn suggest_leased(
    query: &Query,
    batch: &ReadBatch,
    asked: SuggestionRequest,
    wanted: &WantedLeases,
    leases: &Leases,
) -> Result<LeasedSuggestions, CallError> {
    let client = &query.call.client.reporter;
    let decision = leases.decision(&wanted.key.subject, Some(client)).await?;
    if decision.is_some() {
        return Ok(LeasedSuggestions::none(SearchState::Decided));
    }
    let places = places(query, batch).await?;
    let _turn = leases.turn(&wanted.key).await;
    for _ in 0..TRIES {
        let view = leases.view(&wanted.key, &wanted.worker).await?;
        let mut measured = leases.measured(&wanted.key).await?;
        record_crashes(query, batch, &places, &view, wanted, leases, &mut measured).await?;
        let grace = leases.grace(Duration::from_millis(wanted.worker.ttl))?;
        let turn = LeasingTurn::new(&places, view, &measured, &asked, wanted, grace);
        if let Some(state) = turn.nothing {
            return Ok(LeasedSuggestions::none(state));
        }
        let first = turn.own.len();
        let decided = EarlierChoice {
            first: turn.own.iter().map(|(config, _)| *config).collect(),
            left_out: turn.measured,
        };
        let request = SuggestionRequest {
            count: turn.fresh,
            pending: turn.pending,
            ..asked.clone()
        };
        let mut chosen = suggest_from(query, batch, request, None, decided).await?;
        let fresh = chosen.suggested.split_off(first);
        let mut granted: Vec<GrantedLease> = turn.own.into_iter().map(|(_, lease)| lease).collect();
        let configs = fresh.iter().map(|each| each.suggestion.config);
        let configs = configs.map(|config| config_digest(&batch.configurations.canonical(config)));
        let configs: Vec<Digest> = configs.collect();
        if !configs.is_empty() {
            let new = leases.grant(&wanted.key, &wanted.worker, &configs, &turn.left);
            for (each, lease) in fresh.into_iter().zip(new.await?) {
                if let Some(lease) = lease {
                    chosen.suggested.push(each);
                    granted.push(lease);
                }
            }
        }
        if !granted.is_empty() {
            return Ok(LeasedSuggestions {
                chosen: Some(chosen),
                leases: granted,
                state: SearchState::Running,
            });
        }
        // The client knows measurements that the server does not.
        if configs.is_empty() {
            return Ok(LeasedSuggestions::none(turn.without_choice));
        }
    }
    Ok(LeasedSuggestions::none(SearchState::AllLeased(
        SOONEST_RETRY,
    )))
}

impl LeasedSuggestions {
    fn none(state: SearchState) -> Self {
        Self {
            chosen: None,
            leases: Vec::new(),
            state,
        }
    }
}

/// Finds the distinct configurations of a batch.
async fn places(query: &Query, batch: &ReadBatch) -> Result<Places, CallError> {
    let evaluator = query.evaluator();
    let bytes = batch.configurations.len() * 2 * size_of::<(Digest, usize)>();
    query.call.place.hold(bytes)?;
    let configurations = Arc::clone(&batch.configurations);
    let find = move |_| find_places(&configurations);
    let pool = evaluator.engine.pool();
    Ok(pool.run(batch.class, find).await?.value)
}

fn find_places(configurations: &Configurations) -> Places {
    let mut places = Places::with_capacity(configurations.len());
    for config in pace::in_steps(64, 0..configurations.len()) {
        let digest = config_digest(&configurations.canonical(config));
        places.entry(digest).or_insert(config);
    }
    places
}

/// Stores the failure of each configuration that took too many workers with it.
async fn record_crashes(
    query: &Query,
    batch: &ReadBatch,
    places: &Places,
    view: &SearchView,
    wanted: &WantedLeases,
    leases: &Leases,
    measured: &mut HashSet<Digest>,
) -> Result<(), CallError> {
    for crashed in &view.crashed {
        let Some(&config) = places.get(&crashed.config) else {
            continue;
        };
        if measured.insert(crashed.config) {
            let failure = Measurement {
                task: query.found.graph.task,
                config: batch.configurations.canonical(config),
                id: crashed.id.clone(),
                outcome: wanted.crash,
                reporter: query.call.client.reporter.clone(),
                reported_at: clock::seconds().unwrap_or_default(),
                machine: crashed.machine.clone(),
            };
            let subject = wanted.key.subject.clone();
            let store = leases.store()?;
            store.report(subject, vec![failure], None).await?;
        }
        leases.settle(&wanted.key, crashed.config).await?;
    }
    Ok(())
}
