//! What measurements of other instances of a set say of a new one: boosted trees over (features of the instance × configuration).
//!
//! Each list, of one instance on one target, has a level: what its fastest configuration takes. The level is learned, because the
//! fastest of a few measured configurations is seldom the fastest of all. Trees learn ln(seconds) above the level, clipped, and slow
//! rows count little. The columns are the features, the parameters, and what sizes and tiles say together: products, ratios, and how
//! many tiles of each parameter a size has and what the last one wastes. Some lists are left out of a second run, and tell how far a
//! first pick is expected to be above the fastest.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    iter::{once, zip},
    sync::Arc,
};

use hlorank_graph::{InstanceFeatures, InstanceValue, pace};

use super::{
    Measurements, Point,
    related_basis::{Refusal, RelatedBasis},
    trees::{Examples, Growth, Rows, Trees},
};
use crate::{
    split_mix::mix,
    statistics::{mean, scalar, tau, variance_by_chance},
};

/// The measurements of one instance on one target.
pub(crate) struct MeasuredInstance {
    pub(crate) features: Arc<InstanceFeatures>,
    /// The number of the other target; `None` on the call's own.
    pub(crate) other_target: Option<usize>,
    pub(crate) measurements: Measurements,
}

/// What instances of a set taught.
#[derive(Debug)]
pub(crate) struct InstanceModel {
    columns: Columns,
    trees: Trees,
    /// Tells which configurations fail; `None` if few did.
    failures: Option<Trees>,
    slowdowns: Option<Slowdowns>,
    /// Deviation of ln(seconds) of an instance from what others say.
    pub(super) spread: f64,
    pub(crate) basis: RelatedBasis,
    /// Number of instances on the call's own target.
    instances: usize,
}

/// How far first picks of instances that were left out were above the fastest, by what trees predict of them.
#[derive(Clone, Debug)]
struct Slowdowns {
    /// ln(slowdown) where the predictions have their mean, and how much it rises with them.
    mean: f64,
    center: f64,
    rise: f64,
    /// How many times the expected ln(slowdown) nine of ten do not exceed.
    upper: f64,
}

/// An expected time over that of the fastest, and what nine of ten do not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slowdown {
    pub(crate) expected: f64,
    pub(crate) upper: f64,
}

/// The columns that trees learn from.
#[derive(Clone, Debug)]
struct Columns {
    /// The features that are numbers, and those of them that make pairs and tiles.
    numbers: Vec<String>,
    sizes: Vec<usize>,
    /// The features that are texts, with each value.
    texts: Vec<(String, String)>,
    /// Number of targets.
    targets: usize,
    /// The places of parameters in a point, and those of them that make products and tiles.
    parameters: Vec<usize>,
    tiles: usize,
    list: Vec<Column>,
}

/// A column. Numbers are places among the numbers, texts, or parameters.
#[derive(Clone, Copy, Debug)]
enum Column {
    Number(usize),
    /// Logarithm of the largest power of two that divides it, at most 8.
    TrailingZeros(usize),
    Text(usize),
    Target(usize),
    /// Of all sizes.
    Volume,
    Product(usize, usize),
    Ratio(usize, usize),
    Score,
    Parameter(usize),
    ParameterProduct(usize, usize),
    ParameterVolume,
    /// Whether it has no parameters, such as a call of a library.
    Opaque,
    /// How many tiles of a parameter a size has, and what the last one wastes.
    Tiles(usize, usize),
    Waste(usize, usize),
}

/// Rows of (list, configuration).
struct InstanceRows<'a> {
    columns: &'a Columns,
    /// `[lists]`
    lists: Cow<'a, [ListValues]>,
    /// `[distinct configurations, parameters]`
    parameters: Cow<'a, [f64]>,
    /// `[rows]` numbers of the list and of the configuration, and the score.
    rows: Cow<'a, [(usize, usize, f64)]>,
}

/// What is known of a list.
#[derive(Clone)]
struct ListValues {
    /// `[numbers]` -1 if it lacks the feature.
    numbers: Vec<f64>,
    /// `[texts]`
    texts: Vec<bool>,
    target: usize,
}

/// Maximum number of parameters of a configuration that are looked at, and of sizes and of parameters that are looked at in pairs.
const MAX_PARAMETERS: usize = 64;
const MAX_PAIRED: usize = 12;

/// Minimum number of different values of a size.
const MIN_VALUES: usize = 4;

/// Minimum number of measured configurations of all instances.
const ENOUGH: usize = 5;

/// Number of instances from which on they are many: trees are larger, and what others say is followed without a doubt.
const MANY: usize = 50;
const FOLLOWED: usize = 20;

/// Number of instances from which on failures are predicted, and how sure of a failure is enough.
const FAILURES_FROM: usize = 100;
const SURE_OF_FAILURE: f64 = 0.9;

/// What a predicted failure adds to ln(seconds).
const FAILURE: f64 = 7.0;

/// Rounds of learning, of learning a level, and of learning without some lists.
const ROUNDS: usize = 300;
const ROUNDS_OF_LEVELS: usize = 150;

/// Number of configurations, those that add least to run times, of which the fastest of each list is looked for.
const CANDIDATES: usize = 64;

/// How often levels are learned.
const LEVELS: usize = 2;

/// What a time above the level counts at most, and what one below it.
const CLIP: [f64; 2] = [-0.5, std::f64::consts::LN_2];

/// How fast the weight of a row falls with its slowdown.
const WEIGHT: f64 = 4.0;

/// Weight of a row of another target, and number of the target's own instances from which on such rows do not count.
const OTHER_TARGET: f64 = 0.1;
const OWN_ALONE: usize = 200;

/// Number of instances from which on a share of them is left out at once, and this share.
const LEFT_OUT_ONCE: usize = 12;
const LEFT_OUT_SHARE: u64 = 64;

/// How many deviations better than chance instances have to predict each other.
const SURE: f64 = 2.0;

/// Bounds of the deviation of an instance from what others say.
const SPREAD: [f64; 2] = [0.05, 2.0];

impl InstanceModel {
    /// Learns from instances. The same set teaches the same, in whatever order it comes. Returns only the reason if they say nothing.
    pub(crate) fn new(mut lists: Vec<MeasuredInstance>) -> Result<Self, RelatedBasis> {
        lists.retain(|list| list.measurements.measured() > 0);
        let own = |list: &&MeasuredInstance| list.other_target.is_none();
        let instances = lists.iter().filter(own).count();
        if instances >= OWN_ALONE {
            lists.retain(|list| list.other_target.is_none());
        }
        let measured = lists.iter().map(|list| list.measurements.distinct()).sum();
        let mut basis = RelatedBasis {
            lists: lists.len(),
            measured,
            refusal: Some(Refusal::TooFew),
            ..RelatedBasis::default()
        };
        let teach = |list: &MeasuredInstance| list.measurements.teach();
        if measured < ENOUGH || !lists.iter().any(teach) {
            return Err(basis);
        }
        let failed: usize = lists
            .iter()
            .map(|list| list.measurements.failed.len())
            .sum();
        let is_failed: Vec<bool> = lists
            .iter()
            .flat_map(|list| {
                let measurements = &list.measurements;
                let timed = measurements.times.iter().map(|_| false);
                timed.chain(measurements.failed.iter().map(|_| true))
            })
            .collect();
        // A failure counts as slow.
        let lists: Vec<MeasuredInstance> = lists
            .into_iter()
            .map(|list| MeasuredInstance {
                measurements: list.measurements.with_failures_slow(),
                ..list
            })
            .collect();
        let columns = Columns::new(&lists);
        let rows = InstanceRows::of_lists(&columns, &lists);
        let times: Vec<f64> = lists
            .iter()
            .flat_map(|list| &list.measurements.times)
            .copied()
            .collect();
        let learner = InstanceLearner {
            rows: &rows,
            lists: &lists,
            times: &times,
            is_many: instances >= MANY,
        };
        let levels = learner.levels();
        let check = learner.check(&levels);
        let trees = learner.trees(&levels, ROUNDS, |_| true);
        basis.agreement = check.agreement;
        basis.refusal = check.is_chance.then_some(Refusal::NoBetterThanChance);
        if check.is_chance {
            return Err(basis);
        }
        let failures = (instances >= FAILURES_FROM && failed > 0).then(|| {
            let targets: Vec<f64> = is_failed
                .iter()
                .map(|&failed| f64::from(u8::from(failed)))
                .collect();
            let examples = Examples {
                rows: &rows,
                targets: &targets,
                weights: None,
            };
            Trees::new(&examples, Growth::new(ROUNDS_OF_LEVELS, true))
        });
        let [least, most] = SPREAD;
        Ok(Self {
            trees,
            failures,
            slowdowns: check.slowdowns,
            spread: check.spread.clamp(least, most),
            basis,
            instances,
            columns,
        })
    }

    /// The features of a new instance whose values no known one has: texts, with their names.
    pub(crate) fn unknown_values(&self, features: &InstanceFeatures) -> Vec<(String, String)> {
        let texts = features.iter().filter_map(|feature| match feature.value() {
            InstanceValue::Text(text) => Some((feature.name().to_owned(), text.clone())),
            InstanceValue::Number(_) => None,
        });
        texts
            .filter(|text| self.columns.texts.binary_search(text).is_err())
            .collect()
    }

    /// `[points]` ln(seconds) above the fastest configuration of an instance on the call's own target.
    pub(super) fn predict(&self, features: &InstanceFeatures, points: &[Point]) -> Vec<f64> {
        let rows = InstanceRows {
            columns: &self.columns,
            lists: Cow::Owned(vec![self.columns.list_values(features, 0)]),
            parameters: Cow::Owned(
                points
                    .iter()
                    .flat_map(|point| self.columns.parameters_of(point))
                    .collect(),
            ),
            rows: Cow::Owned(
                points
                    .iter()
                    .enumerate()
                    .map(|(number, point)| (0, number, point.score))
                    .collect(),
            ),
        };
        let mut predicted = self.trees.predict(&rows);
        if let Some(failures) = &self.failures {
            for (time, failure) in predicted.iter_mut().zip(failures.predict(&rows)) {
                if failure > SURE_OF_FAILURE {
                    *time += FAILURE;
                }
            }
        }
        predicted
    }

    /// How far a first pick is expected to be above the fastest, given what is predicted of it; nothing if too few instances tell.
    pub(crate) fn slowdown(&self, predicted: f64) -> Option<Slowdown> {
        let slowdowns = self.slowdowns.as_ref()?;
        let expected = slowdowns.expected(predicted);
        Some(Slowdown {
            expected: libm::exp(expected),
            upper: libm::exp(expected * slowdowns.upper),
        })
    }

    /// Whether enough instances are known to measure what they predict to be fastest, whatever is uncertain.
    pub(super) fn is_followed(&self) -> bool {
        self.instances >= FOLLOWED
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let names = self.columns.numbers.iter().map(String::len);
        let texts = self
            .columns
            .texts
            .iter()
            .map(|(name, text)| name.len() + text.len());
        let trees = once(&self.trees).chain(&self.failures).map(Trees::bytes);
        names.sum::<usize>()
            + texts.sum::<usize>()
            + trees.sum::<usize>()
            + size_of_val(&*self.columns.list)
    }
}

/// Learns from lists.
struct InstanceLearner<'a> {
    rows: &'a InstanceRows<'a>,
    lists: &'a [MeasuredInstance],
    /// `[rows]` ln(seconds).
    times: &'a [f64],
    is_many: bool,
}

/// What lists that were left out tell.
struct Check {
    agreement: f64,
    is_chance: bool,
    spread: f64,
    slowdowns: Option<Slowdowns>,
}

impl InstanceLearner<'_> {
    /// `[lists]` what the fastest configuration of each takes.
    fn levels(&self) -> Vec<f64> {
        let effects = self.effects();
        let of_effects: Vec<f64> = self
            .rows
            .rows
            .iter()
            .map(|&(_, config, _)| effects[config])
            .collect();
        let mut best: Vec<usize> = (0..effects.len()).collect();
        best.sort_by(|&one, &other| effects[one].total_cmp(&effects[other]));
        best.truncate(CANDIDATES);
        let least = best.first().map_or(0.0, |&config| effects[config]);
        let mut levels = self.levels_by(&of_effects, |_| 1.0, &vec![least; self.lists.len()]);
        for _ in 0..LEVELS {
            let trees = self.trees(&levels, ROUNDS_OF_LEVELS, |_| true);
            let least = self.least(&trees, &best);
            let by_speed = |predicted: f64| weight(predicted.clamp(0.0, 3.0));
            levels = self.levels_by(&trees.predict(self.rows), by_speed, &least);
        }
        levels
    }

    /// `[lists]` the least that is predicted of some configurations, whether they were measured or not.
    fn least(&self, trees: &Trees, configs: &[usize]) -> Vec<f64> {
        let scores: BTreeMap<usize, f64> = self
            .rows
            .rows
            .iter()
            .map(|&(_, config, score)| (config, score))
            .collect();
        let mut least = Vec::with_capacity(self.lists.len());
        for number in pace::in_steps(1, 0..self.lists.len()) {
            let rows = configs
                .iter()
                .map(|&config| (number, config, scores[&config]));
            let predicted = trees.predict(&InstanceRows {
                rows: Cow::Owned(rows.collect()),
                lists: Cow::Borrowed(&self.rows.lists),
                parameters: Cow::Borrowed(&self.rows.parameters),
                columns: self.rows.columns,
            });
            least.push(predicted.into_iter().fold(f64::INFINITY, f64::min));
        }
        least
    }

    /// `[distinct configurations]` what each adds to ln(seconds), beside what its list does.
    fn effects(&self) -> Vec<f64> {
        let mut effects = vec![
            0.0;
            self.rows
                .rows
                .iter()
                .map(|row| row.1 + 1)
                .max()
                .unwrap_or(0)
        ];
        let rows = || zip(&*self.rows.rows, self.times);
        for _ in 0..10 {
            let mut levels = vec![(0.0, 0.0); self.lists.len()];
            for (&(list, config, _), time) in rows() {
                levels[list].0 += time - effects[config];
                levels[list].1 += 1.0;
            }
            // A configuration that was measured once says less than one that was measured in many lists.
            let mut sums = vec![(0.0, 1.0); effects.len()];
            for (&(list, config, _), time) in rows() {
                sums[config].0 += time - levels[list].0 / levels[list].1;
                sums[config].1 += 1.0;
            }
            effects = sums.into_iter().map(|(sum, count)| sum / count).collect();
        }
        effects
    }

    /// `[lists]` what the fastest configuration takes, given what is predicted of rows and the least that is predicted of each list.
    fn levels_by(&self, predicted: &[f64], weight: impl Fn(f64) -> f64, least: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.lists.len()];
        for ((&(list, ..), time), &predicted) in zip(zip(&*self.rows.rows, self.times), predicted) {
            let weight = weight(predicted);
            sums[list].0 += weight * (time - predicted);
            sums[list].1 += weight;
        }
        zip(sums, least)
            .map(|((sum, weights), least)| sum / weights + least)
            .collect()
    }

    /// Trees of ln(seconds) above the levels, of some lists.
    fn trees(&self, levels: &[f64], rounds: usize, counts: impl Fn(usize) -> bool) -> Trees {
        let [least, most] = CLIP;
        let above = zip(&*self.rows.rows, self.times)
            .map(|(row, time)| (time - levels[row.0]).clamp(least, most));
        let targets: Vec<f64> = above.collect();
        let weights: Vec<f64> = zip(&*self.rows.rows, &targets)
            .map(|(&(list, ..), &target)| {
                let of_target = if self.lists[list].other_target.is_some() {
                    OTHER_TARGET
                } else {
                    1.0
                };
                if counts(list) {
                    of_target * weight(target.max(0.0))
                } else {
                    0.0
                }
            })
            .collect();
        let examples = Examples {
            rows: self.rows,
            targets: &targets,
            weights: Some(&weights),
        };
        let rounds = if self.is_many { rounds } else { rounds / 2 };
        Trees::new(&examples, Growth::new(rounds, self.is_many))
    }

    /// Leaves some lists out, and compares them with what the others say.
    fn check(&self, levels: &[f64]) -> Check {
        let own: Vec<usize> = (0..self.lists.len())
            .filter(|&list| self.lists[list].other_target.is_none())
            .collect();
        // Lists of other targets are compared if there are no others.
        let compared: Vec<usize> = if own.is_empty() {
            (0..self.lists.len()).collect()
        } else {
            own
        };
        let folds: Vec<BTreeSet<usize>> = if compared.len() < LEFT_OUT_ONCE {
            compared
                .iter()
                .map(|&list| BTreeSet::from([list]))
                .collect()
        } else {
            let drawn = |list: &&usize| mix(**list as u64) % 256 < LEFT_OUT_SHARE;
            vec![compared.iter().filter(drawn).copied().collect()]
        };
        let mut left_out = LeftOut::default();
        if self.lists.len() > 1 {
            for fold in folds {
                let trees = self.trees(levels, ROUNDS_OF_LEVELS, |list| !fold.contains(&list));
                left_out.compare(self, levels, &fold, &trees.predict(self.rows));
            }
        }
        left_out.check()
    }
}

/// Lists that were left out.
#[derive(Default)]
struct LeftOut {
    taus: Vec<f64>,
    /// Variance of the sum of taus by chance.
    variance: f64,
    /// Squares of what is left over of the fast rows, and their weights.
    squares: f64,
    weights: f64,
    /// What is predicted of the first pick, and its ln(slowdown).
    picks: Vec<(f64, f64)>,
}

impl LeftOut {
    fn compare(
        &mut self,
        learner: &InstanceLearner<'_>,
        levels: &[f64],
        fold: &BTreeSet<usize>,
        predicted: &[f64],
    ) {
        let mut by_list = BTreeMap::<usize, Vec<(f64, f64)>>::new();
        for ((&(list, ..), &time), &predicted) in
            zip(zip(&*learner.rows.rows, learner.times), predicted)
        {
            if fold.contains(&list) {
                by_list.entry(list).or_default().push((predicted, time));
            }
        }
        for (list, rows) in by_list {
            let (of_rows, times): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
            if times.len() > 1 {
                self.taus.push(tau(&times, &of_rows));
                self.variance += variance_by_chance(times.len());
            }
            for (predicted, time) in &rows {
                let weight = weight((time - levels[list]).max(0.0));
                self.squares += weight * (time - levels[list] - predicted).powi(2);
                self.weights += weight;
            }
            let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
            let pick = rows.iter().min_by(|one, other| one.0.total_cmp(&other.0));
            self.picks
                .extend(pick.map(|(predicted, time)| (*predicted, time - fastest)));
        }
    }

    fn check(&self) -> Check {
        let lists = scalar(self.taus.len());
        let agreement = if self.taus.is_empty() {
            0.0
        } else {
            mean(&self.taus)
        };
        Check {
            agreement,
            is_chance: !self.taus.is_empty() && agreement * lists <= SURE * self.variance.sqrt(),
            spread: if self.weights > 0.0 {
                (self.squares / self.weights).sqrt()
            } else {
                0.3
            },
            slowdowns: Slowdowns::new(&self.picks),
        }
    }
}

/// How much a row counts by its ln(slowdown).
fn weight(slowdown: f64) -> f64 {
    libm::exp(-WEIGHT * slowdown)
}

impl Slowdowns {
    /// Learns from predictions of first picks and their ln(slowdown).
    fn new(picks: &[(f64, f64)]) -> Option<Self> {
        if picks.len() < ENOUGH {
            return None;
        }
        let (predicted, true_ones): (Vec<f64>, Vec<f64>) = picks.iter().copied().unzip();
        let (center, mean) = (mean(&predicted), mean(&true_ones));
        let (mut covariance, mut variance) = (0.0, 1e-4);
        for (predicted, slowdown) in picks {
            covariance += (predicted - center) * (slowdown - mean);
            variance += (predicted - center).powi(2);
        }
        let mut slowdowns = Self {
            mean,
            center,
            rise: (covariance / variance).max(0.0),
            upper: 1.0,
        };
        let mut ratios: Vec<f64> = picks
            .iter()
            .map(|(predicted, slowdown)| slowdown / slowdowns.expected(*predicted))
            .collect();
        ratios.sort_by(f64::total_cmp);
        slowdowns.upper = ratios[ratios.len() * 9 / 10].max(1.0);
        Some(slowdowns)
    }

    /// The expected ln(slowdown).
    fn expected(&self, predicted: f64) -> f64 {
        (self.mean + self.rise * (predicted - self.center)).max(1e-3)
    }
}

impl Columns {
    fn new(lists: &[MeasuredInstance]) -> Self {
        let mut numbers = BTreeMap::<&str, BTreeSet<u64>>::new();
        let mut texts = BTreeSet::new();
        for feature in lists.iter().flat_map(|list| list.features.iter()) {
            match feature.value() {
                InstanceValue::Number(number) => {
                    numbers
                        .entry(feature.name())
                        .or_default()
                        .insert(number.to_bits());
                }
                InstanceValue::Text(text) => {
                    texts.insert((feature.name().to_owned(), text.clone()));
                }
            }
        }
        let sizes = numbers
            .values()
            .enumerate()
            .filter(|(_, values)| values.len() >= MIN_VALUES);
        let sizes = sizes.map(|(place, _)| place).take(MAX_PAIRED).collect();
        let points = lists.iter().flat_map(|list| &list.measurements.points);
        let places = 0..lists
            .iter()
            .flat_map(|list| list.measurements.points.first())
            .map(|point| point.columns.len())
            .min()
            .unwrap_or(0);
        let differs = |&place: &usize| {
            let mut values = points
                .clone()
                .map(|point| point.columns.value(place).to_bits());
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let parameters: Vec<usize> = places.filter(differs).take(MAX_PARAMETERS).collect();
        let targets = lists
            .iter()
            .map(|list| list.target() + 1)
            .max()
            .unwrap_or(1);
        let mut columns = Self {
            numbers: numbers.into_keys().map(str::to_owned).collect(),
            sizes,
            texts: texts.into_iter().collect(),
            targets,
            tiles: parameters.len().min(MAX_PAIRED),
            parameters,
            list: Vec::new(),
        };
        columns.list = columns.all().collect();
        columns
    }

    fn all(&self) -> impl Iterator<Item = Column> {
        let numbers = 0..self.numbers.len();
        let pairs = pairs(&self.sizes);
        let tiled: Vec<usize> = (0..self.tiles).collect();
        let of_list = numbers
            .clone()
            .map(Column::Number)
            .chain(numbers.map(Column::TrailingZeros))
            .chain((0..self.texts.len()).map(Column::Text))
            .chain((0..self.targets).map(Column::Target))
            .chain(once(Column::Volume))
            .chain(
                pairs
                    .iter()
                    .map(|&(one, other)| Column::Product(one, other))
                    .collect::<Vec<_>>(),
            )
            .chain(
                pairs
                    .iter()
                    .map(|&(one, other)| Column::Ratio(one, other))
                    .collect::<Vec<_>>(),
            );
        let of_config = [Column::Score, Column::ParameterVolume, Column::Opaque]
            .into_iter()
            .chain((0..self.parameters.len()).map(Column::Parameter))
            .chain(
                self::pairs(&tiled)
                    .into_iter()
                    .map(|(one, other)| Column::ParameterProduct(one, other)),
            );
        let of_both = self.sizes.iter().flat_map(move |&size| {
            tiled
                .clone()
                .into_iter()
                .flat_map(move |tile| [Column::Tiles(size, tile), Column::Waste(size, tile)])
        });
        of_list.chain(of_config).chain(of_both)
    }

    /// What is known of an instance on a target.
    fn list_values(&self, features: &InstanceFeatures, target: usize) -> ListValues {
        let mut values = ListValues {
            numbers: vec![-1.0; self.numbers.len()],
            texts: vec![false; self.texts.len()],
            target,
        };
        for feature in features.iter() {
            match feature.value() {
                InstanceValue::Number(number) => {
                    let place = self
                        .numbers
                        .binary_search_by(|name| name.as_str().cmp(feature.name()));
                    if let Ok(place) = place {
                        values.numbers[place] = *number;
                    }
                }
                InstanceValue::Text(text) => {
                    let place = self.texts.binary_search_by(|(name, known)| {
                        (name.as_str(), known).cmp(&(feature.name(), text))
                    });
                    if let Ok(place) = place {
                        values.texts[place] = true;
                    }
                }
            }
        }
        values
    }

    fn parameters_of<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = f64> + 'a {
        self.parameters
            .iter()
            .map(|&place| point.columns.value(place))
    }
}

/// All pairs of different ones.
fn pairs(all: &[usize]) -> Vec<(usize, usize)> {
    let pairs = all
        .iter()
        .enumerate()
        .flat_map(|(place, &one)| all[place + 1..].iter().map(move |&other| (one, other)));
    pairs.collect()
}

impl MeasuredInstance {
    /// The number of its target, of which the call's own is 0.
    fn target(&self) -> usize {
        self.other_target.map_or(0, |number| number + 1)
    }
}

impl<'a> InstanceRows<'a> {
    /// The rows of all measurements, list by list.
    fn of_lists(columns: &'a Columns, lists: &[MeasuredInstance]) -> Self {
        let mut numbers = BTreeMap::<Vec<u64>, usize>::new();
        let mut parameters = Vec::new();
        let mut rows = Vec::new();
        for (number, list) in lists.iter().enumerate() {
            for point in &list.measurements.points {
                let values: Vec<f64> = columns.parameters_of(point).collect();
                let bits = values.iter().map(|value| value.to_bits()).collect();
                let next = numbers.len();
                let config = *numbers.entry(bits).or_insert(next);
                if config == next {
                    parameters.extend(values);
                }
                rows.push((number, config, point.score));
            }
        }
        Self {
            columns,
            lists: lists
                .iter()
                .map(|list| columns.list_values(&list.features, list.target()))
                .collect(),
            parameters: Cow::Owned(parameters),
            rows: Cow::Owned(rows),
        }
    }

    fn value(&self, column: Column, (list, config, score): (usize, usize, f64)) -> f64 {
        let list = &self.lists[list];
        let width = self.columns.parameters.len();
        let parameters = &self.parameters[config * width..][..width];
        let tiled = |size: usize, tile: usize| {
            let (size, tile) = (list.numbers[size], parameters[tile]);
            // Without a size or a tile there is nothing to count.
            (size > 0.0 && tile > 0.0).then(|| ((size / tile).ceil(), size / tile))
        };
        match column {
            Column::Number(number) => list.numbers[number],
            Column::TrailingZeros(number) => trailing_zeros(list.numbers[number]),
            Column::Text(text) => f64::from(u8::from(list.texts[text])),
            Column::Target(target) => f64::from(u8::from(list.target == target)),
            Column::Volume => self
                .columns
                .sizes
                .iter()
                .map(|&size| log(list.numbers[size]))
                .sum(),
            Column::Product(one, other) => log(list.numbers[one]) + log(list.numbers[other]),
            Column::Ratio(one, other) => log(list.numbers[one]) - log(list.numbers[other]),
            Column::Score => score,
            Column::Parameter(place) => parameters[place],
            Column::ParameterProduct(one, other) => log(parameters[one]) + log(parameters[other]),
            Column::ParameterVolume => parameters.iter().map(|&value| log(value)).sum(),
            Column::Opaque => f64::from(u8::from(parameters.iter().all(|&value| value < 0.0))),
            Column::Tiles(size, tile) => {
                tiled(size, tile).map_or(-1.0, |(count, _)| libm::log2(count))
            }
            Column::Waste(size, tile) => {
                tiled(size, tile).map_or(-1.0, |(count, exact)| libm::log2(count / exact))
            }
        }
    }
}

/// A logarithm of sizes and parameters, of which those below 1 add nothing.
fn log(value: f64) -> f64 {
    libm::log2(value.max(1.0))
}

#[expect(clippy::cast_possible_truncation, reason = "it is at most 2^62")]
fn trailing_zeros(value: f64) -> f64 {
    let is_whole = value >= 1.0 && value < (1_u64 << 62) as f64 && value.fract() == 0.0;
    if is_whole {
        f64::from((value as i64).trailing_zeros().min(8))
    } else {
        0.0
    }
}

impl Rows for InstanceRows<'_> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn columns(&self) -> usize {
        self.columns.list.len()
    }

    fn column(&self, number: usize) -> Vec<f64> {
        let column = self.columns.list[number];
        self.rows
            .iter()
            .map(|&row| self.value(column, row))
            .collect()
    }
}
