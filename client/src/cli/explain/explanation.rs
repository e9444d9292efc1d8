//! Why configurations are ranked as they are: what each part of them does to the score.

use std::path::Path;

use hlorank_client::{Adapt, Client, GraphHandle, RankRequest, Ranking};
use hlorank_graph::Configurations;
use serde::Serialize;

use super::{
    bounds::bounds,
    compared::Compared,
    kernels::Kernels,
    parts::{Part, Parts},
    segments::segments,
};
use crate::cli::{
    configuration::{ConfigurationForm, set_nodes},
    error::CommandError,
    job::Job,
    score::{score_text, unit_name},
};

/// What makes the best and the worst configuration of a ranking differ from the default.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// Unit of scores and effects, if they have one.
    pub(crate) unit: Option<&'static str>,
    /// The best, the reference and the worst.
    pub(crate) configurations: [Explained; 3],
    /// What `parts` are: segments or bounds.
    pub(crate) kind_of_part: &'static str,
    /// Parts in which the three differ, the largest effect first; empty for fusions.
    pub(crate) parts: Vec<Part>,
    /// Number of such parts that were not explained.
    pub(crate) left_out: usize,
    /// Kernels of the three fusions; empty otherwise.
    pub(crate) kernels: Vec<Kernels>,
}

/// One of the configurations that are compared.
#[derive(Debug, Serialize)]
pub(crate) struct Explained {
    /// `best`, `worst`, or what the reference is.
    pub(crate) role: &'static str,
    /// Number of the configuration in the file; none if it is not in the file.
    pub(crate) number: Option<usize>,
    pub(crate) score: f32,
    pub(crate) run_time_ns: Option<i64>,
    pub(crate) configuration: ConfigurationForm,
    /// Node of every slot that the configuration sets.
    pub(crate) set_nodes: Vec<u32>,
    #[serde(skip)]
    pub(crate) score_text: String,
    #[serde(skip)]
    pub(crate) short: String,
}

/// The call that ranked a graph.
pub(crate) struct Ranked<'a> {
    pub(crate) client: &'a Client,
    /// File of the graph.
    pub(crate) path: &'a Path,
    pub(crate) job: &'a Job<'a>,
    pub(crate) graph: &'a GraphHandle,
    /// What the server learned from.
    pub(crate) adapt: Option<Adapt>,
    /// The answer, with the score of every configuration.
    pub(crate) ranking: &'a Ranking,
}

impl Explanation {
    /// Explains a ranking with one more call to the model version that ranked.
    pub(crate) async fn of(ranked: &Ranked<'_>) -> Result<Self, CommandError> {
        let compared = Compared::of(ranked.job, ranked.ranking);
        let compared =
            compared.map_err(|source| CommandError::configuration(ranked.path, source))?;
        match compared.configurations {
            Configurations::Fusion(_) => Self::of_kernels(ranked, &compared).await,
            _ => Self::of_parts(ranked, &compared).await,
        }
    }

    async fn of_parts(ranked: &Ranked<'_>, compared: &Compared) -> Result<Self, CommandError> {
        let parts = ranked.parts(compared)?;
        // The three are scored again, because the reference may be none of the configurations that
        // were ranked.
        let answer = ranked.score(&parts.configurations, 0).await?;
        Ok(Self {
            left_out: parts.left_out,
            parts: parts.with_effects(&answer.scores),
            ..Self::without_parts(ranked.job, compared, &answer)
        })
    }

    // A fusion decides which kernels there are, so no part of it has an effect of its own. Its
    // kernels say where the time goes.
    async fn of_kernels(ranked: &Ranked<'_>, compared: &Compared) -> Result<Self, CommandError> {
        let answer = ranked.score(&compared.configurations, 3).await?;
        let kernels = [0, 1, 2].map(|config| Kernels::of_config(ranked.job, &answer, config));
        Ok(Self {
            kernels: kernels.into(),
            ..Self::without_parts(ranked.job, compared, &answer)
        })
    }

    /// Returns the explanation without parts and kernels. The first three configurations of the
    /// answer are the compared ones.
    fn without_parts(job: &Job<'_>, compared: &Compared, answer: &Ranking) -> Self {
        let kind_of_part = match compared.configurations {
            Configurations::Layout(_) => "segment",
            _ => "bound",
        };
        Self {
            unit: unit_name(answer.unit),
            configurations: [0, 1, 2].map(|config| Explained::of(job, compared, answer, config)),
            kind_of_part,
            parts: Vec::new(),
            left_out: 0,
            kernels: Vec::new(),
        }
    }

    /// Returns how far the scores of the best and the worst are from the reference's, and how much of that is no effect of
    /// a single part but of several together.
    pub(crate) fn combined(&self) -> [(f64, f64); 2] {
        let score = |config: usize| f64::from(self.configurations[config].score);
        [0, 2].map(|config| {
            let difference = score(config) - score(1);
            // If scores were sums over parts, the effects would add up to the difference.
            let single: f64 = self.parts.iter().map(|part| part.effects[config]).sum();
            (difference, difference - single)
        })
    }
}

impl Explained {
    fn of(job: &Job<'_>, compared: &Compared, answer: &Ranking, config: usize) -> Self {
        let three = &compared.configurations;
        let slots = job.measured.graph.configurable();
        let sent = compared.sent[config];
        // The client has checked that every configuration has a score.
        let score = answer.scores[config];
        Self {
            role: ["best", compared.reference, "worst"][config],
            number: sent.map(|sent| job.number(sent)),
            score,
            run_time_ns: sent.and_then(|sent| job.run_time(sent)),
            configuration: ConfigurationForm::of(three, slots, config),
            set_nodes: set_nodes(three, slots, config),
            score_text: score_text(answer.unit, score),
            short: three.batch().describe(config, slots),
        }
    }
}

impl Ranked<'_> {
    /// Returns the parts in which the compared configurations differ.
    fn parts(&self, compared: &Compared) -> Result<Parts, CommandError> {
        let parts = match &compared.configurations {
            Configurations::Layout(three) => segments(self.job.measured, three),
            Configurations::Tile(three) => bounds(three),
            Configurations::Fusion(_) | Configurations::FeatureSet(_) => {
                let path = self.path.display().to_string();
                return Err(CommandError::NotExplained { path });
            }
        };
        parts.map_err(|source| CommandError::configuration(self.path, source))
    }

    /// Scores other configurations with the model version and the measurements of the ranking.
    async fn score(
        &self,
        configurations: &Configurations,
        explain: u32,
    ) -> Result<Ranking, CommandError> {
        // Scores of different versions cannot be compared, and the default may change between two
        // calls.
        let request = RankRequest::new(self.graph, configurations)
            .model(Some(self.ranking.model.clone()))
            .adapt(self.adapt.clone())
            .explain(explain)
            .with_scores();
        let answer = self.client.rank(&request).await;
        answer.map_err(|source| CommandError::graph(self.path, self.job.module, source))
    }
}
