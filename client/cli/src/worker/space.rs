//! The file of a space, as `Space.write` of the Python client writes it.

use std::{collections::BTreeMap, fmt, path::Path, slice};

use hlorank_client::{
    GraphHandle,
    v1::{
        self, FeatureGraph, InstanceFeature, ParameterConfig, ParameterConfigs,
        config_batch::Configs, graph::Source, instance_feature,
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
    pub(super) configurations: Configurations,
    names: Vec<String>,
    rows: Vec<Vec<Value>>,
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
        let rows = match file.configurations {
            Some(rows) => rows,
            None => combinations(&parameters)?,
        };
        if rows.is_empty() || rows.len() > MAX_CONFIGURATIONS {
            let count = rows.len();
            return Err(format!(
                "has {count} configurations, expected 1 to {MAX_CONFIGURATIONS}"
            ));
        }
        // The columns are in the order of names, so that the order of the file does not matter.
        let mut columns: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, (name, _)) in parameters.iter().enumerate() {
            if columns.insert(name, place).is_some() {
                return Err(format!("has the parameter `{name}` twice"));
            }
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
        let configs = Configs::ParameterConfigs(ParameterConfigs {
            configs: configs.collect::<Result<_, String>>()?,
        });
        let configurations = EncodedBatch::try_from(&configs)
            .and_then(|batch| batch.read(Task::FeatureSet, &[0], &Limits::default()))
            .map_err(|error| error.to_string())?;
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
            configurations,
            names: parameters.into_iter().map(|(name, _)| name).collect(),
            rows,
        })
    }

    /// A configuration as an object.
    pub(super) fn configuration(&self, number: usize) -> Value {
        let values = self.names.iter().cloned().zip(self.rows[number].clone());
        Value::Object(values.collect::<Map<_, _>>())
    }
}

/// All combinations, the last parameter changing fastest.
fn combinations(parameters: &[(String, Vec<Value>)]) -> Result<Vec<Vec<Value>>, String> {
    let sizes = parameters.iter().map(|(_, values)| values.len());
    let count = sizes.fold(1, usize::saturating_mul);
    if count > MAX_CONFIGURATIONS {
        return Err(format!(
            "has {count} combinations, at most {MAX_CONFIGURATIONS} are possible"
        ));
    }
    let mut rows = vec![Vec::new()];
    for (_, values) in parameters {
        let extend = |row: &Vec<Value>| {
            let row = row.clone();
            let value = move |value: &Value| [&row[..], slice::from_ref(value)].concat();
            values.iter().map(value).collect::<Vec<_>>()
        };
        rows = rows.iter().flat_map(extend).collect();
    }
    Ok(rows)
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
        let numbers: Vec<Vec<f32>> = (0..3)
            .map(|config| match &space.configurations {
                Configurations::FeatureSet(batch) => batch.values(config).collect(),
                _ => Vec::new(),
            })
            .collect();
        assert_eq!(
            numbers,
            [[16.0, 0.0, 0.0], [32.5, 1.0, 0.0], [16.0, 1.0, 1.0]]
        );
        let one = space.configuration(1).to_string();
        assert_eq!(one, r#"{"block":32.5,"order":"ji","unroll":false}"#);
    }

    #[test]
    fn all_combinations_are_a_space_and_wrong_files_are_refused() {
        let all =
            read(r#"{"name": "a", "parameters": {"x": [1, 2, 3], "y": ["a", "b"]}}"#).unwrap();
        assert_eq!(all.configurations.len(), 6);
        assert_eq!(all.configuration(1).to_string(), r#"{"x":1,"y":"b"}"#);
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
                r#"{"name": "a", "parameters": {"x": [[]]}}"#,
                "no value of `x`",
            ),
            (r#"{"name": "a"}"#, "parameters"),
        ] {
            assert!(refused(text).contains(says), "{}", refused(text));
        }
    }
}
