use hlorank_graph::NamedFeatureSet;
use hlorank_tests::prelude::*;

use super::{Subject, assert_near};

/// Ranks configurations of a graph of a set, and returns the name of the model.
async fn model_of(
    server: &TestServer,
    set: &str,
    model: Option<&str>,
) -> Result<String, ClientError> {
    let (features, limits) = (vec![1.0; 6], Limits::default());
    let graph = FeatureGraph::new(set.to_owned(), 2, features, vec![[1, 0]], &limits);
    let graph = GraphHandle::feature_graph(&graph.unwrap());
    let batch = Configurations::FeatureSet(Loops::batch(2, 3, &mut Rng::with_seed(0)));
    let model = model.map(|name| name.parse().unwrap());
    let request = RankRequest::new(&graph, &batch).model(model);
    Ok(server.client().await.rank(&request).await?.model.name)
}

fn other(set: &str, name: &str) -> FeatureSetModel {
    FeatureSetModel {
        set: Loops::set(set),
        ..FeatureSetModel::of_loops(name)
    }
}

#[tokio::test]
async fn the_set_of_the_graph_selects_the_model() {
    let models = Artifacts::copy();
    let sets = [("loops", "loops-sum"), ("nests", "nests-sum")];
    for (set, name) in sets {
        other(set, name).write(models.folder(), 1);
    }
    let server = TestServer::start_with(&[&models.flag()]).await;
    for (set, name) in sets {
        assert_eq!(model_of(&server, set, None).await.unwrap(), name);
    }
    let named = model_of(&server, "loops", Some("nests-sum")).await;
    assert_reason(&named.unwrap_err(), "FEATURE_SET_MISMATCH");
}

#[tokio::test]
async fn a_server_needs_only_models_that_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let models = format!("--models={}", folder.path().display());
    let built_in = "--default-models=none";
    let refused = async |default: &str| {
        let started = TestServer::try_start_with(&[&models, default]).await;
        started.err().unwrap().to_string()
    };
    // A folder that is no model's.
    fs::create_dir(folder.path().join("notes")).unwrap();
    says!(refused(built_in).await, "no model could be loaded");
    other("loops", "loops-sum").write(folder.path(), 1);
    let named = refused("--default-models=tile=tiles").await;
    says!(named, "no version of model `tiles`");
    let server = TestServer::start_with(&[&models, built_in]).await;
    let ready = http_get(server.metrics_address(), "/readyz").await;
    assert_eq!(ready, (200, "ready\n".to_owned()));
    let name = model_of(&server, "loops", None).await.unwrap();
    assert_eq!(name, "loops-sum");
}

#[tokio::test]
async fn a_setting_chooses_among_several_models_of_a_set() {
    let models = Artifacts::copy();
    for name in ["a-sum", "b-sum"] {
        other("loops", name).write(models.folder(), 1);
    }
    let server = TestServer::start_with(&[&models.flag()]).await;
    let several = model_of(&server, "loops", None).await.unwrap_err();
    assert_reason(&several, "MODEL_NOT_FOUND");
    says!(several.to_string(), "--default-models loops=MODEL");
    let named = model_of(&server, "loops", Some("a-sum")).await;
    assert_eq!(named.unwrap(), "a-sum");
    let flags = [&models.flag(), "--default-models=loops=b-sum"];
    let server = TestServer::start_with(&flags).await;
    let chosen = model_of(&server, "loops", None).await;
    assert_eq!(chosen.unwrap(), "b-sum");
}

#[tokio::test]
async fn a_new_version_and_a_canary_serve() {
    let model = FeatureSetModel::of_loops("loops-sum");
    let subject = Subject::with(model, &["--admin-listen=127.0.0.1:0"]).await;
    let (server, models) = (&subject.server, subject.models.folder());
    let second = FeatureSetModel {
        node_weights: vec![1.0, 0.5, 2.0],
        ..subject.model.clone()
    };
    second.write(models, 2);
    server.reload();
    server.until("loops-sum", 2, ModelState::Serving).await;
    let mut random = Rng::with_seed(5);
    let graph = Loops::graph(4, &mut random);
    let batch = Loops::batch(4, 12, &mut random);
    let expected = second.scores(&graph, &batch);
    assert_near(&subject.rank(&graph, &batch).await.scores, &expected);

    // A canary of other columns cannot answer for the graphs of the stable version.
    let columns = ["a", "b"].map(str::to_owned).to_vec();
    let third = FeatureSetModel {
        set: NamedFeatureSet::new("loops".to_owned(), columns.clone(), columns).unwrap(),
        node_weights: vec![1.0, 1.0],
        ..second
    };
    third.write(models, 3);
    let admin = server.admin().await;
    admin.pin("loops-sum", 2).await.unwrap();
    admin.set_canary("loops-sum", 3, 100).await.unwrap();
    let canary = server.until("loops-sum", 3, ModelState::Serving).await;
    assert_eq!(canary.canary_percent, 100);
    assert_eq!(canary.feature_set.unwrap().node_features.len(), 2);
    assert_near(&subject.rank(&graph, &batch).await.scores, &expected);
}
