//! Chooses from configurations that are too many to list: random ones, and changes of those with the lowest predicted times, until
//! enough are there to choose from.

use std::{collections::HashSet, sync::Arc};

use hlorank_adaptation::{
    SuggestionRequest,
    split_mix::{below, mix},
};
use hlorank_graph::{Configurations, Limits, NodeFeatureBatch, pace};
use hlorank_proto::v1::{ConfigSpace, ParameterConfig, ParameterConfigs};

use super::suggest::SuggestedConfig;
use crate::{
    call::CallError,
    compute::Class,
    engine::rank,
    model::SeenList,
    queries::{Query, ReadBatch},
    refusal::refusals,
};

refusals! {
    /// What is wrong with the description of a space.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum SpaceError {
        #[error("space.columns has {found} columns, expected {expected}")]
        Columns { found: usize, expected: String } => WRONG_COUNT.at("space.columns").found(found),
        #[error("space.columns[{column}] has no, equal or infinite values, or more than {MAX_VALUES}; send different finite numbers")]
        Values { column: usize } => VALUE_OUT_OF_RANGE.at("space.columns"),
        #[error("space.constraints has {found} constraints, at most {MAX_CONSTRAINTS} are accepted; check the others when a configuration is suggested, and report it as INVALID")]
        Constraints { found: usize } => LIST_TOO_LONG.at("space.constraints").found(found).allowed(MAX_CONSTRAINTS),
        #[error("space.constraints[{number}] needs 1 to {MAX_FACTORS} factors and at most {MAX_FACTORS} divisors, which are numbers of columns, and a least value that is not above the most")]
        Constraint { number: usize } => FIELD_INVALID.at("space.constraints"),
        #[error("no configuration of the space was found that fulfils its constraints; loosen them")]
        Empty => SPACE_EMPTY.at("space.constraints"),
        #[error("space: {why}")]
        Unsupported { why: &'static str } => SOURCE_UNSUPPORTED.at("space"),
    }
}

/// All combinations of some values that fulfil constraints.
pub(crate) struct DrawnSpace {
    /// `[columns]` the values of each.
    columns: Vec<Vec<f32>>,
    constraints: Vec<Constraint>,
}

/// A bound of a quotient of products of columns.
struct Constraint {
    factors: Vec<usize>,
    divisors: Vec<usize>,
    least: f64,
    most: f64,
    is_whole: bool,
}

/// A configuration, by the place of its value in each column.
type Places = Vec<u16>;

/// Rounds of drawing. The first one is random, and the others change what the one before predicted fastest.
const ROUNDS: usize = 3;

/// Number of configurations of a round, and of those that are changed.
const DRAWN: usize = 1_024;
const CHANGED: usize = 64;

/// Maximum number of measured configurations that are changed, too.
const MEASURED: usize = 2_048;

/// Number of configurations that are drawn for each one that is wanted, at most, and of changes until one fulfils the constraints.
const TRIES: usize = 16;
const REPAIRS: usize = 64;

/// Maximum numbers.
const MAX_COLUMNS: usize = 1_024;
const MAX_VALUES: usize = 4_096;
const MAX_CONSTRAINTS: usize = 64;
const MAX_FACTORS: usize = 16;

/// Bytes of a configuration beside its values: in a set, in a batch, and as a point.
const CONFIG_BYTES: usize = 512;

/// Bytes of a value: its place twice, and three times as a float while a batch is made.
const VALUE_BYTES: usize = 2 * size_of::<u16>() + 3 * size_of::<f32>();

impl DrawnSpace {
    /// Reads and checks a description of the configurations of a query's graph.
    pub(crate) fn read(space: ConfigSpace, query: &Query) -> Result<Self, CallError> {
        let graph = &query.found.graph;
        let set = graph.whole.feature_graph().filter(|set| set.nodes() == 1);
        let Some(set) = set else {
            let why = "a graph of one node of a feature set is needed";
            return Err(SpaceError::Unsupported { why }.into());
        };
        let described = set.description().map(|set| set.config_features().len());
        Ok(Self::new(space, query.columns().or(described))?)
    }

    /// Checks a description, given the number of configuration columns if the graph or the model names them.
    fn new(space: ConfigSpace, columns: Option<usize>) -> Result<Self, SpaceError> {
        let found = space.columns.len();
        if found == 0 || found > MAX_COLUMNS || columns.is_some_and(|columns| columns != found) {
            let expected = columns.map_or_else(
                || format!("1 to {MAX_COLUMNS}"),
                |columns| format!("{columns}, as the graph"),
            );
            return Err(SpaceError::Columns { found, expected });
        }
        for (column, values) in space.columns.iter().enumerate() {
            let values = &values.values;
            let distinct: HashSet<u32> =
                values.iter().map(|value| (value + 0.0).to_bits()).collect();
            let is_read = !values.is_empty()
                && values.len() <= MAX_VALUES
                && values.iter().all(|value| value.is_finite())
                && distinct.len() == values.len();
            if !is_read {
                return Err(SpaceError::Values { column });
            }
        }
        if space.constraints.len() > MAX_CONSTRAINTS {
            let found = space.constraints.len();
            return Err(SpaceError::Constraints { found });
        }
        let read = space
            .constraints
            .into_iter()
            .enumerate()
            .map(|(number, constraint)| {
                let numbers = |numbers: &[u32]| -> Vec<usize> {
                    numbers.iter().map(|&number| number as usize).collect()
                };
                let bound = |bound: Option<f64>, default: f64| bound.unwrap_or(default);
                let read = Constraint {
                    factors: numbers(&constraint.factors),
                    divisors: numbers(&constraint.divisors),
                    least: bound(constraint.least, f64::NEG_INFINITY),
                    most: bound(constraint.most, f64::INFINITY),
                    is_whole: constraint.is_whole,
                };
                let is_read = (1..=MAX_FACTORS).contains(&read.factors.len())
                    && read.divisors.len() <= MAX_FACTORS
                    && read.columns().all(|column| column < found)
                    && read.least <= read.most;
                is_read
                    .then_some(read)
                    .ok_or(SpaceError::Constraint { number })
            });
        Ok(Self {
            constraints: read.collect::<Result<_, _>>()?,
            columns: space
                .columns
                .into_iter()
                .map(|column| column.values)
                .collect(),
        })
    }

    /// Number of columns.
    fn width(&self) -> usize {
        self.columns.len()
    }

    /// The places of a configuration of the space; nothing if it is none.
    fn places(&self, values: &[f32]) -> Option<Places> {
        let columns = self.columns.iter().zip(values);
        let place = |(column, value): (&Vec<f32>, &f32)| {
            let place = column.iter().position(|known| known == value)?;
            u16::try_from(place).ok()
        };
        (values.len() == self.width())
            .then(|| columns.map(place).collect())
            .flatten()
    }

    fn value(&self, places: &[u16], column: usize) -> f64 {
        self.columns[column][usize::from(places[column])].into()
    }

    /// The first constraint that a configuration does not fulfil.
    fn broken(&self, places: &[u16]) -> Option<&Constraint> {
        let fulfils = |constraint: &&Constraint| {
            let product = |columns: &[usize]| -> f64 {
                columns
                    .iter()
                    .map(|&column| self.value(places, column))
                    .product()
            };
            let quotient = product(&constraint.factors) / product(&constraint.divisors);
            let is_within = (constraint.least..=constraint.most).contains(&quotient);
            is_within && (!constraint.is_whole || quotient.fract() == 0.0)
        };
        self.constraints
            .iter()
            .find(|constraint| !fulfils(constraint))
    }

    /// A configuration that fulfils the constraints, by changes of columns of constraints that it does not fulfil; nothing if these do
    /// not help.
    fn repaired(&self, mut places: Places, seed: u64) -> Option<Places> {
        let mut state = seed;
        for _ in 0..REPAIRS {
            let Some(constraint) = self.broken(&places) else {
                return Some(places);
            };
            state = mix(state);
            let columns: Vec<usize> = constraint.columns().collect();
            self.redraw(
                &mut places,
                columns[below(state, columns.len())],
                mix(state),
            );
        }
        None
    }

    fn redraw(&self, places: &mut Places, column: usize, hash: u64) {
        let place = below(hash, self.columns[column].len());
        places[column] = u16::try_from(place).unwrap_or_default();
    }

    /// Adds configurations that are not known yet: drawn anew, or changed from some.
    fn draw(&self, from: &[Places], known: &mut HashSet<Places>, seed: u64) -> Vec<Places> {
        let mut drawn = Vec::new();
        for number in pace::in_steps(16, 0..TRIES * DRAWN) {
            if drawn.len() == DRAWN {
                break;
            }
            let mut state = mix(seed ^ mix(number as u64));
            let mut places = if from.is_empty() {
                vec![0; self.width()]
            } else {
                from[number % from.len()].clone()
            };
            // A change redraws one or two columns, sometimes more; a new configuration is drawn in all columns.
            let changes = 1 + (state.trailing_ones() as usize).min(self.width() - 1);
            for change in 0..self.width() {
                state = mix(state);
                if from.is_empty() {
                    self.redraw(&mut places, change, state);
                } else if change < changes {
                    let column = below(state, self.width());
                    self.redraw(&mut places, column, mix(state));
                } else {
                    break;
                }
            }
            let repaired = self.repaired(places, mix(state));
            drawn.extend(repaired.filter(|places| known.insert(places.clone())));
        }
        drawn
    }

    fn batch(&self, all: &[Places]) -> Result<Configurations, CallError> {
        let values = all.iter().flat_map(|places| {
            let columns = self.columns.iter().zip(places);
            columns.map(|(column, &place)| column[usize::from(place)])
        });
        let values: Vec<f32> = values.collect();
        let limits = Limits::default();
        let batch = NodeFeatureBatch::from_values([1, self.width()], &values, &limits);
        let batch = batch.map_err(|source| CallError::Configuration {
            field: "space",
            source,
        })?;
        Ok(Configurations::FeatureSet(batch))
    }
}

impl Constraint {
    fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.factors.iter().chain(&self.divisors).copied()
    }
}

/// Configurations of a space to choose from, those that were measured or are pending among them.
pub(crate) struct DrawnBatch {
    pub(crate) batch: Arc<ReadBatch>,
    space: Arc<DrawnSpace>,
    all: Vec<Places>,
}

impl DrawnBatch {
    /// Draws configurations, and numbers those that are pending.
    pub(crate) async fn draw(
        query: &Query,
        space: DrawnSpace,
        pending: &[ParameterConfig],
        wanted: &mut SuggestionRequest,
    ) -> Result<Self, CallError> {
        let space = Arc::new(space);
        let rows = MEASURED + pending.len() + ROUNDS * DRAWN;
        query
            .call
            .place
            .hold(rows * (CONFIG_BYTES + VALUE_BYTES * space.width()))?;
        let evaluator = query.evaluator();
        let pool = Arc::clone(evaluator.engine.pool());
        let mut known = HashSet::new();
        let mut all = Vec::new();
        let lesson = query.lesson.as_ref();
        let measured = lesson.map_or_else(Arc::default, |lesson| Arc::clone(&lesson.points));
        let pending_places = pending
            .iter()
            .filter_map(|config| space.places(&config.values));
        let pending_places: Vec<Places> = pending_places.collect();
        let measured = measured.iter().take(MEASURED);
        let measured = measured.filter_map(|point| space.places(&point.row()));
        for places in pending_places.iter().cloned().chain(measured) {
            if known.insert(places.clone()) {
                all.push(places);
            }
        }
        let is_pending: HashSet<&Places> = pending_places.iter().collect();
        let pending_number = |(number, places)| is_pending.contains(places).then_some(number);
        wanted.pending = all.iter().enumerate().filter_map(pending_number).collect();
        let mut from = Vec::new();
        for round in 0..ROUNDS {
            let seed =
                mix(wanted.seed ^ mix(u64::from(wanted.since_improvement) << 8 | round as u64));
            let drawing = Arc::clone(&space);
            let draw = move |_| (drawing.draw(&from, &mut known, seed), known);
            let (drawn, still_known) = pool.run(Class::Bulk, draw).await?.value;
            known = still_known;
            all.extend(drawn);
            if all.is_empty() {
                return Err(SpaceError::Empty.into());
            }
            if round + 1 == ROUNDS {
                break;
            }
            let batch = Arc::new(space.batch(&all)?);
            let terms = query.terms(Class::Bulk, round > 0);
            let (_, predicted) = evaluator.predict(batch, terms).await?;
            let best = rank(&predicted.log_seconds, CHANGED).into_iter();
            from = best.map(|number| all[number as usize].clone()).collect();
        }
        let batch = Arc::new(ReadBatch {
            class: Class::Bulk,
            configurations: Arc::new(space.batch(&all)?),
            seen: SeenList::default(),
        });
        Ok(Self { batch, space, all })
    }

    /// Returns suggested configurations in their order, and numbers the suggestions by it.
    pub(crate) fn named(&self, suggested: &mut [SuggestedConfig]) -> ParameterConfigs {
        let named = suggested.iter_mut().enumerate().map(|(number, each)| {
            let places = &self.all[each.suggestion.config];
            let columns = self.space.columns.iter().zip(places);
            each.suggestion.config = number;
            ParameterConfig {
                values: columns
                    .map(|(column, &place)| column[usize::from(place)])
                    .collect(),
            }
        });
        ParameterConfigs {
            configs: named.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::{ColumnValues, SpaceConstraint};

    use super::*;

    /// Three columns of powers of two, whose product is bounded.
    fn described(most: f64) -> ConfigSpace {
        let values: Vec<f32> = (0..20_u8)
            .map(|exponent| f32::from(exponent).exp2())
            .collect();
        ConfigSpace {
            columns: vec![ColumnValues { values }; 3],
            constraints: vec![
                SpaceConstraint {
                    factors: vec![0, 1, 2],
                    most: Some(most),
                    ..SpaceConstraint::default()
                },
                SpaceConstraint {
                    factors: vec![1],
                    divisors: vec![0],
                    is_whole: true,
                    ..SpaceConstraint::default()
                },
            ],
        }
    }

    #[test]
    fn configurations_fulfil_the_constraints_and_differ() {
        let space = DrawnSpace::new(described(4_096.0), Some(3)).unwrap();
        let mut known = HashSet::new();
        let drawn = space.draw(&[], &mut known, 7);
        assert!(drawn.len() > 50, "{}", drawn.len());
        let changed = space.draw(&drawn[..4], &mut known, 8);
        let all: HashSet<&Places> = drawn.iter().chain(&changed).collect();
        assert_eq!(all.len(), drawn.len() + changed.len());
        for places in all {
            let [a, b, c] = [0, 1, 2].map(|column| space.value(places, column));
            assert!(a * b * c <= 4_096.0 && b % a == 0.0, "{a} {b} {c}");
        }
    }

    #[test]
    fn a_space_whose_constraints_nothing_fulfils_is_empty() {
        let space = DrawnSpace::new(described(0.5), None).unwrap();
        assert!(space.draw(&[], &mut HashSet::new(), 7).is_empty());
    }
}
