//! What a worker may be given of a search, before it is known which configuration is the best.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use hlorank_adaptation::SuggestionRequest;
use hlorank_graph::Digest;

use super::{
    keeper::SearchKey,
    search::{BudgetLeft, GrantedLease, LeaseWorker, SearchView},
};
use crate::store::Outcome;

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

/// What is known of a search before something is chosen.
pub(crate) struct LeasingTurn<'a> {
    /// The worker's own live leases, each with its number in the batch.
    pub(crate) own: Vec<(usize, GrantedLease)>,
    /// Number of configurations to choose.
    pub(crate) fresh: usize,
    pub(crate) left: BudgetLeft<'a>,
    /// Numbers of configurations that are being measured, and that were.
    pub(crate) pending: Vec<usize>,
    pub(crate) measured: Vec<usize>,
    /// The state, if there is nothing to give, and if nothing can be chosen.
    pub(crate) nothing: Option<SearchState>,
    pub(crate) without_choice: SearchState,
}

/// The distinct configurations of a batch by digest, each with the number of the first of them.
pub(crate) type Places = HashMap<Digest, usize>;

/// When to ask again if others measure all that is left: if the first lease ends sooner, then.
pub(crate) const SOONEST_RETRY: Duration = Duration::from_millis(100);
const LATEST_RETRY: Duration = Duration::from_secs(1);

impl<'a> LeasingTurn<'a> {
    pub(crate) fn new(
        places: &Places,
        view: SearchView,
        measured: &'a HashSet<Digest>,
        asked: &SuggestionRequest,
        wanted: &WantedLeases,
        grace: Duration,
    ) -> Self {
        let LeaseBudget { measurements, time } = wanted.budget;
        let place = |config: &Digest| places.get(config).copied();
        let is_free = |config: &Digest| !measured.contains(config);
        let numbers: Vec<usize> = measured.iter().filter_map(place).collect();
        let counts = |config: &&Digest| !wanted.is_listed || places.contains_key(*config);
        let spent = measured.iter().filter(counts).count();
        let leased = view.own.iter().map(|lease| &lease.config);
        let live = leased.chain(&view.others).copied().collect();
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
        own.truncate(asked.count);
        let mut fresh = (asked.count - own.len()).min(free).min(in_budget);
        if !grace.is_zero() || view.runs_for >= time {
            fresh = 0;
        }
        let next_free = view.next_free.unwrap_or(LATEST_RETRY);
        let retry = SearchState::AllLeased(next_free.clamp(SOONEST_RETRY, LATEST_RETRY));
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
        Self {
            own,
            fresh,
            left: BudgetLeft {
                leases: in_budget,
                live,
                measured,
            },
            pending,
            measured: numbers,
            nothing,
            without_choice,
        }
    }
}
