//! Suggestions from a space that is too large to list.

use hlorank_client::v1::{
    self, ColumnValues, ConfigSpace, FeatureGraph, ParameterConfig, ParameterConfigs,
    SpaceConstraint,
};
use hlorank_tests::prelude::*;

use crate::feature_set::{TARGET, WithoutModels, space};

const COLUMNS: usize = 10;

fn graph() -> GraphHandle {
    let names: Vec<String> = (0..COLUMNS)
        .map(|column| format!("column {column}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    space(&names, FeatureGraph::default())
}

/// Ten columns of 64 values: 2^60 configurations, of which those count whose first two columns multiply to at most 256.
fn large_space() -> ConfigSpace {
    let values = (1..=64_u8).map(f32::from).collect();
    ConfigSpace {
        columns: vec![ColumnValues { values }; COLUMNS],
        constraints: vec![SpaceConstraint {
            factors: vec![0, 1],
            most: Some(256.0),
            ..SpaceConstraint::default()
        }],
    }
}

/// The farther each column is from its best value, the slower; the best of all fulfils the constraint.
fn seconds(config: &ParameterConfig) -> f64 {
    let off = config.values.iter().enumerate().map(|(column, value)| {
        let best = if column < 2 { 12.0 } else { 40.0 };
        ((f64::from(*value) - best) / 64.0).powi(2)
    });
    1e-3 * (3.0 * off.sum::<f64>()).exp()
}

#[tokio::test]
async fn a_search_of_a_space_that_nobody_can_list_comes_closer() {
    let subject = WithoutModels::start().await;
    let graph = graph();
    let mut measured: Vec<ParameterConfig> = Vec::new();
    let mut fastest = Vec::new();
    for round in 0..10 {
        let configs = measured.clone();
        let batch = config_batch(Configs::ParameterConfigs(ParameterConfigs { configs }));
        let adapt = Adapt::from(v1::Adapt {
            target: TARGET.to_owned(),
            batch: Some(batch),
            seconds: measured.iter().map(seconds).collect(),
            ..v1::Adapt::default()
        });
        let request = SuggestRequest::of_space(&graph, large_space())
            .adapt(Some(adapt).filter(|_| round > 0))
            .since_improvement(0, round)
            .count(8);
        let suggested = subject.client.suggest(&request).await.unwrap();
        assert_eq!(suggested.suggestions.len(), 8);
        let configs = suggested.configs;
        assert_eq!(configs.len(), 8);
        for config in &configs {
            assert!(config.values[0] * config.values[1] <= 256.0, "{config:?}");
        }
        measured.extend(configs);
        fastest.push(measured.iter().map(seconds).fold(f64::INFINITY, f64::min));
    }
    let distinct: BTreeSet<Vec<u32>> = measured.iter().map(|each| bits(&each.values)).collect();
    assert_eq!(distinct.len(), measured.len(), "nothing is suggested twice");
    // The best takes 1 ms, and a random configuration about 20.
    assert!(
        fastest[9] < 2e-3 && fastest[9] < fastest[0] / 2.0,
        "after each round of eight: {fastest:?}"
    );
}

#[tokio::test]
async fn what_is_being_measured_is_not_suggested() {
    let subject = WithoutModels::start().await;
    let column = |values: &[f32]| ColumnValues {
        values: values.to_vec(),
    };
    let mut columns = vec![column(&[1.0]); COLUMNS];
    columns[0] = column(&[1.0, 2.0, 3.0]);
    let pending = ParameterConfig {
        values: [&[2.0], &[1.0; COLUMNS - 1][..]].concat(),
    };
    let three = ConfigSpace {
        columns,
        constraints: Vec::new(),
    };
    let graph = graph();
    let request = SuggestRequest::of_space(&graph, three).count(8);
    let request = request.pending_configs(vec![pending]);
    let configs = subject.client.suggest(&request).await.unwrap().configs;
    let mut first: Vec<f32> = configs.iter().map(|config| config.values[0]).collect();
    first.sort_by(f32::total_cmp);
    assert_eq!(first, [1.0, 3.0]);
}
