//! The file of a space, as `Space.write` of the Python client writes it.

use std::{collections::BTreeMap, fmt, path::Path, slice};

use hlorank_client::{
    GraphHandle, SuggestRequest,
    v1::{
        self, ColumnValues, ConfigSpace, FeatureGraph, InstanceFeature, ParameterConfig,
        ParameterConfigs, SpaceConstraint, config_batch::Configs, graph::Source, instance_feature,
    },
};
use hlorank_graph::{Configurations, EncodedBatch, Limits, Task};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::{configuration::read_text, error::CommandError};

/// The configurations of something with parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceFile {
    name: String,
    #[serde(default)]
    instance: Instance,
    parameters: Parameters,
    /// Those to consider, each with a value for every parameter in the order of `parameters`; all combinations if there is no list.
    #[serde(default)]
    configurations: Option<Vec<Vec<Value>>>,
    /// What all combinations have to fulfil; a server draws from such a space.
    #[serde(default)]
    constraints: Vec<Constraint>,
}

/// A bound of a quotient of products of parameters, as a `SpaceConstraint`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Constraint {
    factors: Vec<String>,
    #[serde(default)]
    divisors: Vec<String>,
    #[serde(default)]
    least: Option<f64>,
    #[serde(default)]
    most: Option<f64>,
    #[serde(default)]
    is_whole: bool,
}

/// What is tuned, if it is one of several with these parameters.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Instance {
    /// A name, of which nothing is learned.
    Name(String),
    /// Features, of which a server learns.
    Features(BTreeMap<String, Feature>),
}

/// The value of a feature of an instance.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Feature {
    Number(f64),
    Flag(bool),
    Text(String),
}

/// The values of each parameter, in the order of the file.
#[derive(Debug)]
struct Parameters(Vec<(String, Vec<Value>)>);

/// A space that was read.
#[derive(Debug)]
pub(super) struct WorkerSpace {
    pub(super) graph: GraphHandle,
    parameters: Vec<(String, Vec<Value>)>,
    choices: Choices,
}

/// What a worker is given configurations of.
#[derive(Debug)]
enum Choices {
    Listed {
        configurations: Configurations,
        rows: Vec<Vec<Value>>,
    },
    /// Too many to list.
    Described(ConfigSpace),
}

/// A configuration to measure.
pub(super) struct GivenConfiguration {
    /// As an object.
    pub(super) json: String,
    pub(super) batch: Configurations,
}

/// Maximum number of configurations, the default of the server's `--max-configs`.
const MAX_CONFIGURATIONS: usize = 500_000;

impl Default for Instance {
    fn default() -> Self {
        Self::Name(String::new())
    }
}

impl From<Feature> for instance_feature::Value {
    fn from(feature: Feature) -> Self {
        match feature {
            Feature::Number(number) => Self::Number(number),
            Feature::Flag(is_set) => Self::Number(f64::from(u8::from(is_set))),
            Feature::Text(text) => Self::Text(text),
        }
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Parameters;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with the list of values of each parameter")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
                let mut parameters = Vec::new();
                while let Some(parameter) = map.next_entry()? {
                    parameters.push(parameter);
                }
                Ok(Parameters(parameters))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl WorkerSpace {
    pub(super) fn read(path: &Path) -> Result<Self, CommandError> {
        let wrong = |problem: &dyn fmt::Display| CommandError::input(path.display(), problem);
        let file: SpaceFile =
            serde_json::from_str(&read_text(path)?).map_err(|error| wrong(&error))?;
        Self::new(file).map_err(|problem| wrong(&problem))
    }

    fn new(file: SpaceFile) -> Result<Self, String> {
        let Parameters(parameters) = file.parameters;
        // The columns are in the order of names, so that the order of the file does not matter.
        let mut columns: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, (name, _)) in parameters.iter().enumerate() {
            if columns.insert(name, place).is_some() {
                return Err(format!("has the parameter `{name}` twice"));
            }
        }
        let sizes = parameters.iter().map(|(_, values)| values.len());
        let count = sizes.fold(1, usize::saturating_mul);
        let choices = match file.configurations {
            Some(rows) => listed(rows, &parameters, &columns)?,
            None if count > MAX_CONFIGURATIONS || !file.constraints.is_empty() => {
                Choices::Described(described(&file.constraints, &parameters, &columns)?)
            }
            None => listed(combinations(&parameters), &parameters, &columns)?,
        };
        let (instance, features) = match file.instance {
            Instance::Name(name) => (name, BTreeMap::new()),
            Instance::Features(features) => (String::new(), features),
        };
        let features = features.into_iter().map(|(name, value)| InstanceFeature {
            name,
            value: Some(value.into()),
        });
        let graph = FeatureGraph {
            feature_set: file.name,
            config_columns: columns.keys().map(|&name| name.to_owned()).collect(),
            instance,
            instance_features: features.collect(),
            ..FeatureGraph::default()
        };
        let graph = GraphHandle::of_message(v1::Graph {
            source: Some(Source::FeatureGraph(graph)),
            task: v1::Task::FeatureSet.into(),
            ..v1::Graph::default()
        });
        Ok(Self {
            graph: graph.expect("it has a graph"),
            parameters,
            choices,
        })
    }

    /// Number of configurations, if there is a list of them.
    pub(super) fn count(&self) -> Option<usize> {
        match &self.choices {
            Choices::Listed { rows, .. } => Some(rows.len()),
            Choices::Described(_) => None,
        }
    }

    /// Requests what to measure.
    pub(super) fn request(&self) -> SuggestRequest<'_> {
        match &self.choices {
            Choices::Listed { configurations, .. } => {
                SuggestRequest::new(&self.graph, configurations)
            }
            Choices::Described(space) => SuggestRequest::of_space(&self.graph, space.clone()),
        }
    }

    /// The configuration that is suggested by its number in the list, or among those that were drawn; nothing if the space lacks it.
    pub(super) fn given(
        &self,
        config: usize,
        drawn: &[ParameterConfig],
    ) -> Option<GivenConfiguration> {
        let (batch, values) = match &self.choices {
            Choices::Listed {
                configurations,
                rows,
            } => (configurations.select(&[config]), rows[config].clone()),
            Choices::Described(_) => {
                let drawn = drawn.get(config)?;
                let mut names: Vec<&str> = self.names().collect();
                names.sort_unstable();
                let value = |(name, values): &(String, Vec<Value>)| {
                    let number = drawn
                        .values
                        .get(names.binary_search(&name.as_str()).ok()?)?;
                    let is_drawn = |value: &&Value| number_of(value, values) == Some(*number);
                    values.iter().find(is_drawn).cloned()
                };
                let values: Option<Vec<Value>> = self.parameters.iter().map(value).collect();
                (batch_of(vec![drawn.clone()]).ok()?, values?)
            }
        };
        let object: Map<_, _> = self.names().map(str::to_owned).zip(values).collect();
        Some(GivenConfiguration {
            json: Value::Object(object).to_string(),
            batch,
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| name.as_str())
    }
}

/// Lists configurations.
fn listed(
    rows: Vec<Vec<Value>>,
    parameters: &[(String, Vec<Value>)],
    columns: &BTreeMap<&str, usize>,
) -> Result<Choices, String> {
    if rows.is_empty() || rows.len() > MAX_CONFIGURATIONS {
        let count = rows.len();
        return Err(format!(
            "has {count} configurations, expected 1 to {MAX_CONFIGURATIONS}"
        ));
    }
    let config = |(number, row): (usize, &Vec<Value>)| {
        if row.len() != parameters.len() {
            let (found, expected) = (row.len(), parameters.len());
            return Err(format!(
                "configuration {number} has {found} values for {expected} parameters"
            ));
        }
        let values = columns.values().map(|&place| {
            number_of(&row[place], &parameters[place].1).ok_or_else(|| {
                let (name, _) = &parameters[place];
                let value = &row[place];
                format!("configuration {number}: {value} is no value of `{name}`")
            })
        });
        let values = values.collect::<Result<_, _>>()?;
        Ok(ParameterConfig { values })
    };
    let configs = rows.iter().enumerate().map(config);
    let configurations = batch_of(configs.collect::<Result<_, String>>()?)?;
    Ok(Choices::Listed {
        configurations,
        rows,
    })
}

fn batch_of(configs: Vec<ParameterConfig>) -> Result<Configurations, String> {
    let configs = Configs::ParameterConfigs(ParameterConfigs { configs });
    EncodedBatch::try_from(&configs)
        .and_then(|batch| batch.read(Task::FeatureSet, &[0], &Limits::default()))
        .map_err(|error| error.to_string())
}

/// Describes what a server draws from.
fn described(
    constraints: &[Constraint],
    parameters: &[(String, Vec<Value>)],
    columns: &BTreeMap<&str, usize>,
) -> Result<ConfigSpace, String> {
    let column = |&place: &usize| {
        let (name, values) = &parameters[place];
        let numbers = values.iter().map(|value| {
            number_of(value, values).ok_or_else(|| format!("{value} is no value of `{name}`"))
        });
        let values = numbers.collect::<Result<_, _>>()?;
        Ok::<_, String>(ColumnValues { values })
    };
    let numbers = |names: &[String]| {
        let number = |name: &String| {
            let place = columns.keys().position(|known| known == name);
            let place = place.and_then(|place| u32::try_from(place).ok());
            place.ok_or_else(|| format!("a constraint names `{name}`, which is no parameter"))
        };
        names.iter().map(number).collect::<Result<Vec<u32>, _>>()
    };
    let constraint = |one: &Constraint| {
        Ok::<_, String>(SpaceConstraint {
            factors: numbers(&one.factors)?,
            divisors: numbers(&one.divisors)?,
            least: one.least,
            most: one.most,
            is_whole: one.is_whole,
        })
    };
    Ok(ConfigSpace {
        columns: columns.values().map(column).collect::<Result<_, _>>()?,
        constraints: constraints
            .iter()
            .map(constraint)
            .collect::<Result<_, _>>()?,
    })
}

/// All combinations, the last parameter changing fastest.
fn combinations(parameters: &[(String, Vec<Value>)]) -> Vec<Vec<Value>> {
    let mut rows = vec![Vec::new()];
    for (_, values) in parameters {
        let extend = |row: &Vec<Value>| {
            let row = row.clone();
            let value = move |value: &Value| [&row[..], slice::from_ref(value)].concat();
            values.iter().map(value).collect::<Vec<_>>()
        };
        rows = rows.iter().flat_map(extend).collect();
    }
    rows
}

/// The number that a value counts as: text as its place among the values, from 0, and null, for a parameter that does not apply, as -1.
#[expect(clippy::cast_possible_truncation, reason = "the server takes f32")]
fn number_of(value: &Value, values: &[Value]) -> Option<f32> {
    let place = values.iter().position(|each| each == value)?;
    match value {
        Value::Bool(is_set) => Some(f32::from(*is_set)),
        Value::Number(number) => number.as_f64().map(|number| number as f32),
        #[expect(
            clippy::cast_precision_loss,
            reason = "lists are far shorter than 2^24"
        )]
        Value::String(_) => Some(place as f32),
        Value::Null => Some(-1.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Graph;

    use super::*;

    const FIXTURE: &str = include_str!("../../../../tests/data/space.json");

    /// The hash of the graph that the Python client makes of the same space.
    const HASH: &str = "4656670a66b6af9fcc46c21fa36f721eda0fb0033b097cf26185839ca688f257";

    fn read(text: &str) -> Result<WorkerSpace, String> {
        WorkerSpace::new(serde_json::from_str(text).map_err(|error| error.to_string())?)
    }

    #[test]
    fn a_space_is_that_of_the_python_client() {
        let space = read(FIXTURE).unwrap();
        let message = FeatureGraph {
            feature_set: "gemm".to_owned(),
            config_columns: ["block", "order", "unroll"].map(str::to_owned).to_vec(),
            instance: "1024".to_owned(),
            ..FeatureGraph::default()
        };
        let message = v1::Graph {
            source: Some(Source::FeatureGraph(message)),
            ..v1::Graph::default()
        };
        let graph = Graph::of_message(&message, Task::FeatureSet, &Limits::default()).unwrap();
        assert_eq!(graph.hash().to_string(), HASH);
        // Columns are in the order of names, and text counts as its place.
        let Choices::Listed {
            configurations: Configurations::FeatureSet(batch),
            ..
        } = &space.choices
        else {
            panic!("it is listed");
        };
        let numbers = (0..3).map(|config| batch.values(config).collect());
        let numbers: Vec<Vec<f32>> = numbers.collect();
        assert_eq!(
            numbers,
            [[16.0, 0.0, 0.0], [32.5, 1.0, 0.0], [16.0, 1.0, 1.0]]
        );
        let one = space.given(1, &[]).unwrap().json;
        assert_eq!(one, r#"{"block":32.5,"order":"ji","unroll":false}"#);
    }

    #[test]
    fn a_space_that_cannot_be_listed_is_described() {
        let space = read(
            r#"{"name": "a", "parameters": {"y": [1, 2, 4], "x": ["a", "b"]},
                "constraints": [{"factors": ["y"], "divisors": ["x", "y"], "most": 8}]}"#,
        );
        let space = space.unwrap();
        assert_eq!(space.count(), None);
        let Choices::Described(described) = &space.choices else {
            panic!("it is described");
        };
        let columns: Vec<&[f32]> = described
            .columns
            .iter()
            .map(|column| &column.values[..])
            .collect();
        assert_eq!(columns, [&[0.0, 1.0][..], &[1.0, 2.0, 4.0]]);
        let [constraint] = &described.constraints[..] else {
            panic!("it has one constraint");
        };
        assert_eq!(
            (&constraint.factors[..], &constraint.divisors[..]),
            (&[1][..], &[0, 1][..])
        );
        assert_eq!((constraint.least, constraint.most), (None, Some(8.0)));
        let drawn = |values: [f32; 2]| ParameterConfig {
            values: values.to_vec(),
        };
        let given = space.given(1, &[drawn([0.0, 1.0]), drawn([1.0, 4.0])]);
        assert_eq!(given.unwrap().json, r#"{"x":"b","y":4}"#);
        assert!(space.given(0, &[drawn([0.0, 3.0])]).is_none());
        assert!(space.given(0, &[]).is_none());
        let unknown =
            read(r#"{"name": "a", "parameters": {"x": [1]}, "constraints": [{"factors": ["z"]}]}"#);
        assert!(unknown.unwrap_err().contains("names `z`"));
    }

    #[test]
    fn all_combinations_are_a_space_and_wrong_files_are_refused() {
        let all =
            read(r#"{"name": "a", "parameters": {"x": [1, 2, 3], "y": ["a", "b"]}}"#).unwrap();
        assert_eq!(all.count(), Some(6));
        let second = all.given(1, &[]).unwrap();
        assert_eq!(second.json, r#"{"x":1,"y":"b"}"#);
        let refused = |text: &str| read(text).unwrap_err();
        for (text, says) in [
            (
                r#"{"name": "a", "parameters": {"x": []}}"#,
                "has 0 configurations",
            ),
            (
                r#"{"name": "a", "parameters": {"x": [1], "x": [2]}}"#,
                "`x` twice",
            ),
            (
                r#"{"name": "a", "parameters": {"x": [1]}, "configurations": [[1, 2]]}"#,
                "2 values for 1",
            ),
            (
                r#"{"name": "a", "parameters": {"x": [1]}, "configurations": [[2]]}"#,
                "configuration 0: 2 is no value of `x`",
            ),
            (
                r#"{"name": "a", "parameters": {"x": [[]]}}"#,
                "no value of `x`",
            ),
            (r#"{"name": "a"}"#, "parameters"),
        ] {
            assert!(refused(text).contains(says), "{}", refused(text));
        }
    }
}
