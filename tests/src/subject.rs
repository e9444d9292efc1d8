//! A server whose tile model gets other versions, and requests for it.

use std::{fs, time::Duration};

use hlorank_client::{
    AdminClient, GraphHandle, ModelVersion, Ranking,
    v1::{Model, ModelRejection, ModelState},
};

use crate::{
    Answer, Artifacts, Load, Question, Reach, TILE_MODEL, TestServer, grid_configurations,
    kernel_of, rank_by,
};

/// Model whose versions come and go.
pub const MODEL: &str = TILE_MODEL;

/// Pause between two requests of a load.
const PAUSE: Duration = Duration::from_millis(5);

/// A server and the folder of its models.
pub struct Subject {
    /// The folder.
    pub artifacts: Artifacts,
    /// The server.
    pub server: TestServer,
    /// Version that ships.
    pub first: u64,
}

impl Subject {
    /// Starts a server with both tile models.
    pub async fn start() -> Self {
        Self::start_with(Artifacts::tiles(), &[]).await
    }

    /// Starts a server with these models and flags.
    pub async fn start_with(artifacts: Artifacts, flags: &[&str]) -> Self {
        let models = artifacts.flag();
        let flags = [&[models.as_str(), "--admin-listen=127.0.0.1:0"], flags].concat();
        let server = TestServer::start_with(&flags).await;
        let serving = server.client().await.get_model(MODEL, None).await;
        let serving = serving.expect("an answer");
        assert!(serving.serving);
        Self {
            artifacts,
            server,
            first: serving.version,
        }
    }

    /// Stops the server, and starts another one with the same models and these flags.
    pub async fn restart(self, flags: &[&str]) -> Self {
        self.server.stop().await;
        Self::start_with(self.artifacts, flags).await
    }

    /// Connects an admin client.
    pub async fn admin(&self) -> AdminClient {
        self.server.admin().await
    }

    /// Publishes a valid version, and waits until it serves.
    pub async fn publish(&self, version: u64) {
        self.artifacts.publish(MODEL, version, |_| ());
        self.until(version, ModelState::Serving).await;
    }

    /// Removes the folder of a version.
    pub fn remove(&self, version: u64) {
        let versions = self.artifacts.folder().join(MODEL);
        fs::remove_dir_all(versions.join(version.to_string())).expect("the folder of a version");
    }

    /// Waits until a version is in this state, and returns it.
    pub async fn until(&self, version: u64, state: ModelState) -> Model {
        self.server.until(MODEL, version, state).await
    }

    /// Waits until a version is rejected, and returns why.
    pub async fn rejection(&self, version: u64) -> ModelRejection {
        let rejected = self.until(version, ModelState::Rejected).await;
        rejected.rejection.expect("a reason")
    }

    /// Returns the version that answers a call that names none.
    pub async fn serving(&self) -> u64 {
        match self.ask(MODEL, 12).await.model.version {
            ModelVersion::Number(version) => version,
            version => panic!("{version:?} is no number"),
        }
    }

    /// Begins to send requests again and again.
    pub async fn load(&self) -> Load {
        Load::start(
            self.server.client().await,
            vec![question(12), question(40)],
            PAUSE,
        )
    }

    /// Returns the scores of a model, or of a version of it, for a kernel.
    pub async fn ask(&self, model: &str, nodes: u8) -> Ranking {
        let Question {
            graph,
            configurations,
        } = question(nodes);
        let client = self.server.client().await;
        let ranking = rank_by(&client, model, &graph, &configurations).await;
        ranking.expect("an answer")
    }

    /// Returns all versions of the model with their states.
    pub async fn states(&self) -> Vec<(u64, ModelState)> {
        let models = self.server.client().await.list_models().await;
        let models = models.expect("an answer").into_iter();
        let own = models.filter(|model| model.name == MODEL);
        own.map(|model| (model.version, model.state())).collect()
    }
}

/// Returns a request for tiles of a kernel of this number of nodes.
pub fn question(nodes: u8) -> Question {
    Question {
        graph: GraphHandle::features(&kernel_of(nodes)),
        configurations: grid_configurations(20),
    }
}

/// Returns the rankings of a load, none of whose requests may have failed.
pub fn rankings(answers: Vec<Answer>) -> Vec<Ranking> {
    let count = answers.len();
    assert!(count > 10, "a load of {count} requests shows nothing");
    answers
        .into_iter()
        .map(|answer| answer.ranking.unwrap_or_else(|error| panic!("{error}")))
        .collect()
}
