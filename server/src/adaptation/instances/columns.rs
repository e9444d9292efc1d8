//! The columns that trees learn from: the features of an instance, the parameters of a configuration, and what they say together.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    iter::once,
};

use hlorank_graph::{InstanceFeatures, InstanceValue};

use super::measured_instance::MeasuredInstance;
use crate::adaptation::{Point, trees::Rows};

/// The columns that trees learn from.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// The features that are numbers, and those of them that make pairs and tiles.
    pub(super) numbers: Vec<String>,
    pub(super) sizes: Vec<usize>,
    /// The features that are texts, with each value.
    pub(super) texts: Vec<(String, String)>,
    /// Number of targets.
    pub(super) targets: usize,
    /// The places of parameters in a point, and those of them that make products and tiles.
    pub(super) parameters: Vec<usize>,
    pub(super) tiles: usize,
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
    /// The product of all sizes.
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
pub(super) struct InstanceRows<'a> {
    pub(super) columns: &'a Columns,
    /// `[lists]`
    pub(super) lists: Cow<'a, [ListValues]>,
    /// `[distinct configurations, parameters]`
    pub(super) parameters: Cow<'a, [f64]>,
    /// `[rows]` numbers of the list and of the configuration, and the score.
    pub(super) rows: Cow<'a, [(usize, usize, f64)]>,
}

/// What is known of a list.
#[derive(Clone)]
pub(super) struct ListValues {
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

impl Columns {
    pub(super) fn new(lists: &[MeasuredInstance]) -> Self {
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
            .filter_map(|list| list.measurements.points.first())
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

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let names = self.numbers.iter().map(String::len);
        let texts = self
            .texts
            .iter()
            .map(|(name, text)| name.len() + text.len());
        names.sum::<usize>() + texts.sum::<usize>() + size_of_val(&*self.list)
    }

    /// What is known of an instance on a target.
    pub(super) fn list_values(&self, features: &InstanceFeatures, target: usize) -> ListValues {
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

    pub(super) fn parameters_of<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = f64> + 'a {
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

impl<'a> InstanceRows<'a> {
    /// The rows of all measurements, list by list.
    pub(super) fn of_lists(columns: &'a Columns, lists: &[MeasuredInstance]) -> Self {
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

/// How often 2 divides a number, at most 8 times.
fn trailing_zeros(value: f64) -> f64 {
    let mut half = value / 2.0;
    let mut zeros = 0.0;
    while value != 0.0 && zeros < 8.0 && half.fract() == 0.0 {
        half /= 2.0;
        zeros += 1.0;
    }
    zeros
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
