//! A server whose tile model gets other versions, and requests for it.

use std::time::Duration;

use hlorank_client::{GraphHandle, RankRequest, Ranking, v1::ModelState};

use crate::{
    Answer, Artifacts, Load, Question, Reach, TILE_MODEL, TestServer, grid_configurations,
    kernel_of,
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
    ///
    /// # Panics
    /// If it does not serve them.
    pub async fn start() -> Self {
        Self::start_with(Artifacts::tiles(), &[]).await
    }

    /// Starts a server with these models and flags.
    ///
    /// # Panics
    /// If it does not serve them.
    pub async fn start_with(artifacts: Artifacts, flags: &[&str]) -> Self {
        let models = artifacts.flag();
        let flags = [&[models.as_str(), "--admin-listen=127.0.0.1:0"], flags].concat();
        let server = TestServer::start_with(&flags).await;
        let serving = server
            .client()
            .await
            .get_model(MODEL, None)
            .await
            .expect("an answer");
        assert!(serving.serving);
        Self {
            artifacts,
            server,
            first: serving.version,
        }
    }

    /// Publishes a valid version, and waits until it serves.
    pub async fn publish(&self, version: u64) {
        self.artifacts.publish(MODEL, version, |_| ());
        self.server.until(MODEL, version, ModelState::Serving).await;
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
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn ask(&self, model: &str, nodes: u8) -> Ranking {
        let Question {
            graph,
            configurations,
        } = question(nodes);
        let model = Some(model.parse().expect("a name"));
        let request = RankRequest::new(&graph, &configurations)
            .model(model)
            .with_scores();
        self.server
            .client()
            .await
            .rank(&request)
            .await
            .expect("an answer")
    }

    /// Returns all versions of the model with their states.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn states(&self) -> Vec<(u64, ModelState)> {
        let models = self
            .server
            .client()
            .await
            .list_models()
            .await
            .expect("an answer");
        let own = models.iter().filter(|model| model.name == MODEL);
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

/// Returns the rankings of a load.
///
/// # Panics
/// If a request failed, or if there were only a few.
pub fn rankings(answers: Vec<Answer>) -> Vec<Ranking> {
    assert!(
        answers.len() > 10,
        "a load of {} requests shows nothing",
        answers.len()
    );
    answers
        .into_iter()
        .map(|answer| answer.ranking.unwrap_or_else(|error| panic!("{error}")))
        .collect()
}
