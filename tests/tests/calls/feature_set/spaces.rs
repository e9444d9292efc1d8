//! Suggestions from a space that is too large to list.

use std::collections::BTreeSet;

use hlorank_proto::v1::{
    Adapt, ColumnValues, ConfigSpace, FeatureGraph, ParameterConfig, ParameterConfigs,
    SpaceConstraint,
};
use hlorank_tests::prelude::*;

/// Ten columns of 64 values: 2^60 configurations, of which those count whose first two columns multiply to at most 256.
const COLUMNS: usize = 10;

fn space() -> ConfigSpace {
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

fn graph() -> Graph {
    let names = (0..COLUMNS).map(|column| format!("column {column}"));
    Graph {
        source: Some(Source::FeatureGraph(FeatureGraph {
            feature_set: "options".to_owned(),
            config_columns: names.collect(),
            ..FeatureGraph::default()
        })),
        ..Graph::default()
    }
}

fn batch(configs: &[ParameterConfig]) -> ConfigBatch {
    let configs = configs.to_vec();
    ConfigBatch {
        configs: Some(Configs::ParameterConfigs(ParameterConfigs { configs })),
    }
}

fn bits(config: &ParameterConfig) -> Vec<u32> {
    config.values.iter().map(|value| value.to_bits()).collect()
}

#[tokio::test]
async fn a_search_of_a_space_that_nobody_can_list_comes_closer() {
    let models = tempfile::tempdir().unwrap();
    let models_flag = format!("--models={}", models.path().display());
    let server = TestServer::start_with(&[&models_flag, "--default-models=none"]).await;
    let mut measured: Vec<ParameterConfig> = Vec::new();
    let mut fastest = Vec::new();
    for round in 0..10 {
        let adapt = Adapt {
            target: "a board".to_owned(),
            batch: Some(batch(&measured)),
            seconds: measured.iter().map(seconds).collect(),
            ..Adapt::default()
        };
        let request = SuggestConfigsRequest {
            graph: Some(graph()),
            space: Some(space()),
            adapt: Some(adapt).filter(|_| !measured.is_empty()),
            count: 8,
            seed: round,
            ..SuggestConfigsRequest::default()
        };
        let answer = server.cost_model().await.suggest_configs(request).await;
        let answer = answer.unwrap().into_inner();
        let configs = answer.configs.unwrap().configs;
        assert_eq!((answer.suggestions.len(), configs.len()), (8, 8));
        let numbers = answer.suggestions.iter().map(|each| each.config);
        assert!(numbers.eq(0..8));
        for config in &configs {
            assert!(config.values[0] * config.values[1] <= 256.0, "{config:?}");
        }
        measured.extend(configs);
        fastest.push(measured.iter().map(seconds).fold(f64::INFINITY, f64::min));
    }
    let distinct: BTreeSet<Vec<u32>> = measured.iter().map(bits).collect();
    assert_eq!(distinct.len(), measured.len(), "nothing is suggested twice");
    println!("fastest after each round of eight: {fastest:?}");
    // The best takes 1 ms, and a random configuration about 20.
    assert!(
        fastest[9] < 2e-3 && fastest[9] < fastest[0] / 2.0,
        "{fastest:?}"
    );
}

#[tokio::test]
async fn what_is_being_measured_is_not_suggested() {
    let models = tempfile::tempdir().unwrap();
    let models_flag = format!("--models={}", models.path().display());
    let server = TestServer::start_with(&[&models_flag, "--default-models=none"]).await;
    let column = |values: &[f32]| ColumnValues {
        values: values.to_vec(),
    };
    let mut columns = vec![column(&[1.0]); COLUMNS];
    columns[0] = column(&[1.0, 2.0, 3.0]);
    let pending = ParameterConfig {
        values: [&[2.0], &[1.0; COLUMNS - 1][..]].concat(),
    };
    let request = SuggestConfigsRequest {
        graph: Some(graph()),
        space: Some(ConfigSpace {
            columns,
            constraints: Vec::new(),
        }),
        count: 8,
        pending_configs: Some(ParameterConfigs {
            configs: vec![pending],
        }),
        ..SuggestConfigsRequest::default()
    };
    let answer = server.cost_model().await.suggest_configs(request).await;
    let configs = answer.unwrap().into_inner().configs.unwrap().configs;
    let mut first: Vec<f32> = configs.iter().map(|config| config.values[0]).collect();
    first.sort_by(f32::total_cmp);
    assert_eq!(first, [1.0, 3.0]);
}
