//! The columns that trees learn from: the features of a list's instance, the parameters of a configuration, and what they say together.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use hlorank_graph::{InstanceFeatures, InstanceValue};

use super::RelatedList;
use crate::adaptation::{Point, trees::Rows};

/// The columns that trees learn from.
#[derive(Debug)]
pub(super) struct Columns {
    /// The features that are numbers, and those of them that make pairs and tiles.
    numbers: Vec<String>,
    sizes: Vec<usize>,
    /// The features that are texts, with each value.
    texts: Vec<(String, String)>,
    /// The places of parameters in a point. The first of them make products and tiles.
    parameters: Vec<usize>,
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
pub(crate) const MAX_PARAMETERS: usize = 256;
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
        let others = lists.iter().filter_map(|list| list.other_target);
        let mut columns = Self {
            numbers: numbers.into_keys().map(str::to_owned).collect(),
            sizes,
            texts: texts.into_iter().collect(),
            parameters: places.filter(differs).take(MAX_PARAMETERS).collect(),
            list: Vec::new(),
        };
        columns.list = columns.all(others.max());
        columns
    }

    fn all(&self, last_target: Option<usize>) -> Vec<Column> {
        let tiles: Vec<usize> = (0..self.parameters.len().min(MAX_PAIRED)).collect();
        let mut all = vec![
            Column::Volume,
            Column::Score,
            Column::ParameterVolume,
            Column::Opaque,
        ];
        for number in 0..self.numbers.len() {
            all.extend([Column::Number(number), Column::TrailingZeros(number)]);
        }
        all.extend((0..self.texts.len()).map(Column::Text));
        all.extend((0..last_target.map_or(0, |last| last + 1)).map(Column::Target));
        all.extend((0..self.parameters.len()).map(Column::Parameter));
        for (one, other) in pairs(&self.sizes) {
            all.extend([Column::Product(one, other), Column::Ratio(one, other)]);
        }
        for (one, other) in pairs(&tiles) {
            all.push(Column::ParameterProduct(one, other));
        }
        for &size in &self.sizes {
            for &tile in &tiles {
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
            let name = feature.name();
            match feature.value() {
                InstanceValue::Number(number) => {
                    let mut places = self.numbers.iter();
                    if let Some(place) = places.position(|known| known == name) {
                        values.numbers[place] = *number;
                    }
                }
                InstanceValue::Text(text) => {
                    let mut places = self.texts.iter();
                    let place = places.position(|(known, value)| known == name && value == text);
                    if let Some(place) = place {
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
fn pairs(all: &[usize]) -> Vec<(usize, usize)> {
    let pairs = all
        .iter()
        .enumerate()
        .flat_map(|(place, &one)| all[place + 1..].iter().map(move |&other| (one, other)));
    pairs.collect()
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
        let tiled = |size: usize, tile: usize| {
            let (size, tile) = (list.numbers[size], parameters[tile]);
            // Without a size or a tile there is nothing to count.
            (size > 0.0 && tile > 0.0).then(|| ((size / tile).ceil(), size / tile))
        };
        match column {
            Column::Number(number) => list.numbers[number],
            Column::TrailingZeros(number) => trailing_zeros(list.numbers[number]),
            Column::Text(text) => f64::from(u8::from(list.texts[text])),
            Column::Target(target) => f64::from(u8::from(list.other_target == Some(target))),
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
