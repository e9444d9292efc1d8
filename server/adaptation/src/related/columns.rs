//! The columns that trees learn from: the features of a list's instance, the parameters of a configuration, and what they say together.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use hlorank_graph::{InstanceFeatures, InstanceValue};

use super::RelatedList;
use crate::{Point, trees::Rows};

/// The columns that trees learn from.
#[derive(Debug)]
pub(super) struct Columns {
    /// The features that are numbers, in order.
    numbers: Vec<String>,
    /// The features that are texts, with each value, in order.
    texts: Vec<(String, String)>,
    /// The places of parameters in a point.
    parameters: Vec<usize>,
    /// The places of values that make pairs: of numbers, and of parameters, which come after all numbers.
    sizes: Vec<usize>,
    tiles: Vec<usize>,
    list: Vec<Column>,
}

/// A column of the values at these places: of numbers, then of parameters.
#[derive(Clone, Copy, Debug)]
enum Column {
    Value(usize),
    /// Logarithm of the largest power of two that divides it, at most 8.
    TrailingZeros(usize),
    Text(usize),
    Target(usize),
    /// The product of all sizes.
    Volume,
    ParameterVolume,
    Product(usize, usize),
    Ratio(usize, usize),
    Score,
    /// Whether it has no parameters, such as a call of a library.
    Opaque,
    /// How many tiles of a parameter a size has, and what the last one wastes.
    Tiles(usize, usize),
    Waste(usize, usize),
}

/// Rows of (list, configuration).
pub(super) struct RelatedRows<'a> {
    pub(super) columns: &'a Columns,
    /// `[lists]`
    pub(super) lists: Cow<'a, [ListValues]>,
    /// `[distinct configurations, parameters]`
    pub(super) parameters: Cow<'a, [f64]>,
    /// `[rows]`
    pub(super) rows: Cow<'a, [RelatedRow]>,
}

/// The numbers of a list and of a configuration, and the model's score.
pub(super) type RelatedRow = (usize, usize, f64);

/// What is known of a list.
#[derive(Clone)]
pub(super) struct ListValues {
    /// `[numbers]` -1 if it lacks the feature.
    numbers: Vec<f64>,
    /// `[texts]`
    texts: Vec<bool>,
    /// `None` on the call's own target.
    other_target: Option<usize>,
}

/// Maximum number of parameters of a configuration that are looked at, and of sizes and of parameters that are looked at in pairs.
pub const MAX_PARAMETERS: usize = 256;
const MAX_PAIRED: usize = 12;

/// Minimum number of different values of a size.
const MIN_VALUES: usize = 4;

impl Columns {
    pub(super) fn new(lists: &[RelatedList]) -> Self {
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
        let points = || lists.iter().flat_map(|list| &list.measurements.points);
        let places = 0..points().map(Point::features).min().unwrap_or(0);
        let differs = |&place: &usize| {
            let mut values = points().map(|point| point.feature(place).to_bits());
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let parameters: Vec<usize> = places.filter(differs).take(MAX_PARAMETERS).collect();
        let tiles = (numbers.len()..).take(parameters.len().min(MAX_PAIRED));
        let targets = lists.iter().filter_map(|list| list.other_target);
        let mut columns = Self {
            tiles: tiles.collect(),
            numbers: numbers.into_keys().map(str::to_owned).collect(),
            texts: texts.into_iter().collect(),
            parameters,
            sizes,
            list: Vec::new(),
        };
        columns.list = columns.all(targets.map(|target| target + 1).max());
        columns
    }

    fn all(&self, targets: Option<usize>) -> Vec<Column> {
        let mut all = vec![
            Column::Volume,
            Column::Score,
            Column::ParameterVolume,
            Column::Opaque,
        ];
        let numbers = self.numbers.len();
        all.extend((0..numbers).map(Column::TrailingZeros));
        all.extend((0..numbers + self.parameters.len()).map(Column::Value));
        all.extend((0..self.texts.len()).map(Column::Text));
        all.extend((0..targets.unwrap_or(0)).map(Column::Target));
        for (one, other) in pairs(&self.sizes).chain(pairs(&self.tiles)) {
            all.extend([Column::Product(one, other), Column::Ratio(one, other)]);
        }
        for &size in &self.sizes {
            for &tile in &self.tiles {
                all.extend([Column::Tiles(size, tile), Column::Waste(size, tile)]);
            }
        }
        all
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

    /// Texts that no known list has, with the names of their features.
    pub(super) fn unknown_values(&self, features: &InstanceFeatures) -> Vec<(String, String)> {
        let texts = features.iter().filter_map(|feature| match feature.value() {
            InstanceValue::Text(text) => Some((feature.name().to_owned(), text.clone())),
            InstanceValue::Number(_) => None,
        });
        let is_unknown = |text: &(String, String)| self.texts.binary_search(text).is_err();
        texts.filter(is_unknown).collect()
    }

    /// What is known of an instance on a target.
    fn list_values(&self, features: &InstanceFeatures, other_target: Option<usize>) -> ListValues {
        let mut values = ListValues {
            numbers: vec![-1.0; self.numbers.len()],
            texts: vec![false; self.texts.len()],
            other_target,
        };
        for feature in features.iter() {
            let name = feature.name().to_owned();
            match feature.value() {
                InstanceValue::Number(number) => {
                    if let Ok(place) = self.numbers.binary_search(&name) {
                        values.numbers[place] = *number;
                    }
                }
                InstanceValue::Text(text) => {
                    if let Ok(place) = self.texts.binary_search(&(name, text.clone())) {
                        values.texts[place] = true;
                    }
                }
            }
        }
        values
    }

    fn parameters_of<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = f64> + 'a {
        self.parameters.iter().map(|&place| point.feature(place))
    }
}

/// All pairs of different ones.
fn pairs(all: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let places = all.iter().enumerate();
    places.flat_map(|(place, &one)| all[place + 1..].iter().map(move |&other| (one, other)))
}

impl<'a> RelatedRows<'a> {
    /// The rows of all measurements, list by list.
    pub(super) fn of_lists(columns: &'a Columns, lists: &[RelatedList]) -> Self {
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
                .map(|list| columns.list_values(&list.features, list.other_target))
                .collect(),
            parameters: Cow::Owned(parameters),
            rows: Cow::Owned(rows),
        }
    }

    /// The rows of some configurations of a list that was not measured.
    pub(super) fn of_points(
        columns: &'a Columns,
        features: &InstanceFeatures,
        other_target: Option<usize>,
        points: &[Point],
    ) -> Self {
        let rows = points.iter().enumerate();
        Self {
            lists: Cow::Owned(vec![columns.list_values(features, other_target)]),
            parameters: points
                .iter()
                .flat_map(|point| columns.parameters_of(point))
                .collect(),
            rows: rows
                .map(|(number, point)| (0, number, point.score))
                .collect(),
            columns,
        }
    }

    fn value(&self, column: Column, (list, config, score): RelatedRow) -> f64 {
        let list = &self.lists[list];
        let width = self.columns.parameters.len();
        let parameters = &self.parameters[config * width..][..width];
        let numbers = &list.numbers;
        let value = |place: usize| match place.checked_sub(numbers.len()) {
            None => numbers[place],
            Some(parameter) => parameters[parameter],
        };
        let log = |place: usize| log(value(place));
        let tiled = |size: usize, tile: usize| {
            let (size, tile) = (value(size), value(tile));
            // Without a size or a tile there is nothing to count.
            (size > 0.0 && tile > 0.0).then(|| ((size / tile).ceil(), size / tile))
        };
        let flag = |is_true: bool| f64::from(u8::from(is_true));
        match column {
            Column::Value(place) => value(place),
            Column::TrailingZeros(number) => trailing_zeros(numbers[number]),
            Column::Text(text) => flag(list.texts[text]),
            Column::Target(target) => flag(list.other_target == Some(target)),
            Column::Volume => self.columns.sizes.iter().copied().map(log).sum(),
            Column::ParameterVolume => (numbers.len()..).take(width).map(log).sum(),
            Column::Product(one, other) => log(one) + log(other),
            Column::Ratio(one, other) => log(one) - log(other),
            Column::Score => score,
            Column::Opaque => flag(parameters.iter().all(|&value| value < 0.0)),
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

impl Rows for RelatedRows<'_> {
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
