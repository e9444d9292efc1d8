use hlorank_proto::v1;
use hlorank_tests::prelude::*;

use super::{Subject, assert_near};

fn request(set: &str, columns: usize) -> RankConfigsRequest {
    let values = vec![1.0; 2 * columns];
    let graph =
        FeatureGraph::new(set.to_owned(), 2, values, vec![[1, 0]], &Limits::default()).unwrap();
    let features = graph
        .features()
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect::<Vec<u8>>();
    let graph = v1::FeatureGraph {
        feature_set: set.to_owned(),
        nodes: 2,
        node_features: features.into(),
        edges: vec![1, 0],
        ..v1::FeatureGraph::default()
    };
    let batch = Loops::batch(2, 3, &mut Rng::with_seed(0));
    let form = Configurations::FeatureSet(batch).to_smallest_form();
    rank_request(graph_of(v1::graph::Source::FeatureGraph(graph)), form)
}

async fn model_of(subject: &Subject, request: RankConfigsRequest) -> Result<(String, u64), Status> {
    let answer = subject.server.rank(request).await?;
    Ok(answer
        .model
        .map(|model| (model.name, model.version))
        .unwrap())
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
    for (set, name) in [("loops", "loops-sum"), ("nests", "nests-sum")] {
        other(set, name).write(models.folder(), 1);
    }
    let server = TestServer::start_with(&[&models.flag()]).await;
    let subject = Subject {
        client: server.client().await,
        server,
        model: other("loops", "loops-sum"),
        models,
    };
    for (set, name) in [("loops", "loops-sum"), ("nests", "nests-sum")] {
        assert_eq!(
            model_of(&subject, request(set, 3)).await.unwrap(),
            (name.to_owned(), 1)
        );
    }
    let unknown = model_of(&subject, request("trees", 3)).await.unwrap_err();
    assert_eq!(
        (unknown.code(), &*reason(&unknown)),
        (Code::NotFound, "FEATURE_SET_UNKNOWN")
    );
    assert!(
        ["`trees`", "`loops`", "`nests`"]
            .iter()
            .all(|set| unknown.message().contains(set)),
        "{unknown}"
    );
    let named = request("loops", 3).with_model("nests-sum");
    let refused = model_of(&subject, named).await.unwrap_err();
    assert_eq!(
        (refused.code(), &*reason(&refused)),
        (Code::InvalidArgument, "FEATURE_SET_MISMATCH")
    );
    let tiles = model_of(&subject, request("loops", 3).with_model(TILE_MODEL))
        .await
        .unwrap_err();
    assert_eq!(
        (tiles.code(), &*reason(&tiles)),
        (Code::InvalidArgument, "MODEL_TASK_MISMATCH")
    );
}

#[tokio::test]
async fn a_server_needs_only_models_that_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let models = format!("--models={}", folder.path().display());
    let built_in = "--default-models=none";
    // A folder that is no model's.
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    let empty = TestServer::try_start_with(&[&models, built_in])
        .await
        .err()
        .unwrap()
        .to_string();
    says!(empty, "no model could be loaded");
    other("loops", "loops-sum").write(folder.path(), 1);
    let named = TestServer::try_start_with(&[&models, "--default-models=tile=tiles"])
        .await
        .err()
        .unwrap();
    says!(named.to_string(), "no version of model `tiles`");
    let server = TestServer::start_with(&[&models, built_in]).await;
    let (status, text) = http_get(server.metrics_address(), "/readyz").await;
    assert_eq!((status, text.as_str()), (200, "ready\n"));
    let ranked = server.rank(request("loops", 3)).await.unwrap();
    assert_eq!(ranked.model.unwrap().name, "loops-sum");
}

#[tokio::test]
async fn a_setting_chooses_among_several_models_of_a_set() {
    let models = Artifacts::copy();
    for name in ["a-sum", "b-sum"] {
        other("loops", name).write(models.folder(), 1);
    }
    let folder = models.flag();
    let start = async |flags: &[&str]| {
        let server = TestServer::start_with(&[&[folder.as_str()], flags].concat()).await;
        Subject {
            client: server.client().await,
            server,
            model: other("loops", "a-sum"),
            models: Artifacts::copy(),
        }
    };
    let subject = start(&[]).await;
    let several = model_of(&subject, request("loops", 3)).await.unwrap_err();
    assert_eq!(
        (several.code(), &*reason(&several)),
        (Code::NotFound, "MODEL_NOT_FOUND")
    );
    says!(several.message(), "--default-models loops=MODEL");
    let named = request("loops", 3).with_model("a-sum");
    assert_eq!(model_of(&subject, named).await.unwrap().0, "a-sum");
    let subject = start(&["--default-models=loops=b-sum"]).await;
    assert_eq!(
        model_of(&subject, request("loops", 3)).await.unwrap().0,
        "b-sum"
    );
}

#[tokio::test]
async fn a_model_tells_its_set() {
    let subject = Subject::new().await;
    let listed = subject
        .server
        .models()
        .await
        .list_models(ListModelsRequest {})
        .await
        .unwrap()
        .into_inner();
    let model = listed
        .models
        .iter()
        .find(|model| model.name == "loops-sum")
        .unwrap();
    let set = model.feature_set.clone().unwrap();
    assert_eq!(
        (
            set.name.as_str(),
            set.node_features.len(),
            set.config_features.len()
        ),
        ("loops", 3, 2)
    );
    assert_eq!(
        model.feature_digest,
        Loops::set("loops").digest().0.to_vec()
    );
    assert!(model.default_for_task && model.task() == v1::Task::FeatureSet);
    for other in &listed.models {
        assert_eq!(
            other.feature_set.is_some(),
            other.task() == v1::Task::FeatureSet,
            "{}",
            other.name
        );
    }
}

#[tokio::test]
async fn a_new_version_and_a_canary_serve() {
    let subject = Subject::with(
        FeatureSetModel::of_loops("loops-sum"),
        &["--admin-listen=127.0.0.1:0"],
    )
    .await;
    let second = FeatureSetModel {
        node_weights: vec![1.0, 0.5, 2.0],
        ..subject.model.clone()
    };
    second.write(subject.models.folder(), 2);
    subject.server.reload();
    subject
        .server
        .until("loops-sum", 2, ModelState::Serving)
        .await;
    let mut random = Rng::with_seed(5);
    let (graph, batch) = (
        Loops::graph(4, &mut random),
        Loops::batch(4, 12, &mut random),
    );
    assert_near(
        &subject.rank(&graph, &batch).await.scores,
        &second.scores(&graph, &batch),
    );
    // A canary of other columns cannot answer for the graphs of the stable version.
    let columns = ["a", "b"].map(str::to_owned).to_vec();
    let set =
        hlorank_graph::NamedFeatureSet::new("loops".to_owned(), columns.clone(), columns).unwrap();
    let third = FeatureSetModel {
        set,
        node_weights: vec![1.0, 1.0],
        ..second.clone()
    };
    third.write(subject.models.folder(), 3);
    let admin = subject.server.admin().await;
    admin.pin("loops-sum", 2).await.unwrap();
    admin.set_canary("loops-sum", 3, 100).await.unwrap();
    subject
        .server
        .until("loops-sum", 3, ModelState::Serving)
        .await;
    assert_near(
        &subject.rank(&graph, &batch).await.scores,
        &second.scores(&graph, &batch),
    );
    let version = GetModelRequest {
        name: "loops-sum".to_owned(),
        version: 3,
    };
    let model = subject
        .server
        .models()
        .await
        .get_model(version)
        .await
        .unwrap()
        .into_inner()
        .model
        .unwrap();
    assert_eq!(
        (
            model.canary_percent,
            model.feature_set.unwrap().node_features.len()
        ),
        (100, 2)
    );
}
