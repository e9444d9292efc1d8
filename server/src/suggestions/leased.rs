//! Chooses for one of many workers, and leases what is chosen.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use hlorank_graph::{Configurations, Digest, pace};

use super::suggest::{Decided, Suggestions, suggest_from};
use crate::{
    adaptation::SuggestionRequest,
    call::CallError,
    clock,
    leases::{GrantedLease, LeaseWorker, Leases, SearchKey, SearchView},
    queries::{Query, ReadBatch},
    store::{Measurement, Outcome, config_digest},
};

/// What a worker asks for.
pub(crate) struct WantedLeases {
    pub(crate) key: SearchKey,
    pub(crate) worker: LeaseWorker,
    pub(crate) budget: LeaseBudget,
    /// What came of a configuration that took its workers with it.
    pub(crate) crash: Outcome,
    /// Whether the batch lists all configurations of the search, so that others are not counted; it does not if it was drawn.
    pub(crate) is_listed: bool,
}

/// After how much measuring a search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseBudget {
    pub(crate) measurements: usize,
    pub(crate) time: Duration,
}

/// What a worker is given.
pub(crate) struct LeasedSuggestions {
    /// What to measure; `None` if there is nothing.
    pub(crate) chosen: Option<Suggestions>,
    /// The lease of each suggestion.
    pub(crate) leases: Vec<GrantedLease>,
    pub(crate) state: SearchState,
}

/// What a search is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchState {
    Running,
    /// There may be something to measure after this time.
    AllLeased(Duration),
    Exhausted,
    BudgetSpent,
    Decided,
}

/// The distinct configurations of a batch by digest, each with the number of the first of them.
type Places = HashMap<Digest, usize>;

/// How often a choice is repeated of which other servers leased everything meanwhile.
const TRIES: usize = 4;

/// When to ask again if others measure all that is left: if the first lease ends sooner, then.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

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
        let turn = LeasingTurn::new(&places, view, &measured, &asked, wanted, leases)?;
        if let Some(state) = turn.nothing {
            return Ok(LeasedSuggestions::none(state));
        }
        let first = turn.own.len();
        let decided = Decided {
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
            let new = leases.grant(&wanted.key, &wanted.worker, &configs).await?;
            for (each, lease) in fresh.into_iter().zip(new) {
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
    Ok(LeasedSuggestions::none(SearchState::AllLeased(RETRY[0])))
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
                id: crashed.lease.clone(),
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

/// What is known of a search before something is chosen.
struct LeasingTurn {
    /// The worker's own live leases, each with its number in the batch.
    own: Vec<(usize, GrantedLease)>,
    /// Number of configurations to choose.
    fresh: usize,
    /// Numbers of configurations that are being measured, and that were.
    pending: Vec<usize>,
    measured: Vec<usize>,
    /// The state, if there is nothing to give, and if nothing can be chosen.
    nothing: Option<SearchState>,
    without_choice: SearchState,
}

impl LeasingTurn {
    fn new(
        places: &Places,
        view: SearchView,
        measured: &HashSet<Digest>,
        asked: &SuggestionRequest,
        wanted: &WantedLeases,
        leases: &Leases,
    ) -> Result<Self, CallError> {
        let LeaseBudget { measurements, time } = wanted.budget;
        let place = |config: &Digest| places.get(config).copied();
        let is_free = |config: &Digest| !measured.contains(config);
        let numbers: Vec<usize> = measured.iter().filter_map(place).collect();
        let counts = |config: &&Digest| !wanted.is_listed || places.contains_key(*config);
        let spent = measured.iter().filter(counts).count();
        let others = view.others.iter().filter(|config| is_free(config));
        let taken_by_others = others.clone().filter(counts).count();
        let others: Vec<usize> = others.filter_map(place).collect();
        let own = view.own.into_iter().filter(|lease| is_free(&lease.config));
        let own = own.filter_map(|lease| Some((place(&lease.config)?, lease)));
        let mut own: Vec<(usize, GrantedLease)> = own.collect();
        let taken = others.len() + own.len();
        let pending = own.iter().map(|(config, _)| *config);
        let mut pending: Vec<usize> = pending.chain(others).collect();
        pending.extend(&asked.pending);
        let free = places.len() - numbers.len().min(places.len());
        let free = free.saturating_sub(taken);
        let in_budget = measurements.saturating_sub(spent + taken_by_others + own.len());
        let grace = leases.grace(Duration::from_millis(wanted.worker.ttl))?;
        own.truncate(asked.count);
        let mut fresh = (asked.count - own.len()).min(free).min(in_budget);
        if !grace.is_zero() || view.runs_for >= time {
            fresh = 0;
        }
        let [soonest, latest] = RETRY;
        let next_free = view.next_free.unwrap_or(latest);
        let retry = SearchState::AllLeased(next_free.clamp(soonest, latest));
        let without_choice = if taken > 0 {
            retry
        } else {
            SearchState::Exhausted
        };
        let nothing = (own.is_empty() && fresh == 0).then(|| {
            if view.runs_for >= time || spent >= measurements {
                SearchState::BudgetSpent
            } else if numbers.len() >= places.len() {
                SearchState::Exhausted
            } else if !grace.is_zero() {
                SearchState::AllLeased(grace)
            } else {
                retry
            }
        });
        Ok(Self {
            own,
            fresh,
            pending,
            measured: numbers,
            nothing,
            without_choice,
        })
    }
}
