//! Why configurations are ranked as they are: what each part of them does to the score.

use std::path::Path;

use hlorank_client::{Adapt, Client, GraphHandle, RankRequest, Ranking};
use hlorank_graph::{ConfigurationError, Configurations};
use serde::Serialize;

use super::{
    compared::Compared,
    exchange::effects,
    kernels::Kernels,
    parts::{Part, Parts, bounds, segments},
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
        let compared =
            Compared::of(ranked.job, ranked.ranking).map_err(|error| ranked.unsuitable(error))?;
        if let Configurations::Fusion(_) = &compared.configurations {
            return Self::of_kernels(ranked, &compared).await;
        }
        let parts = match &compared.configurations {
            Configurations::Layout(three) => segments(ranked.job.measured, three),
            Configurations::Tile(three) => bounds(three),
            _ => {
                return Err(CommandError::NotExplained {
                    path: ranked.path.display().to_string(),
                });
            }
        };
        Self::of_parts(
            ranked,
            &compared,
            parts.map_err(|error| ranked.unsuitable(error))?,
        )
        .await
    }

    async fn of_parts(
        ranked: &Ranked<'_>,
        compared: &Compared,
        parts: Parts,
    ) -> Result<Self, CommandError> {
        let answer = ranked.score(&parts.configurations, 0).await?;
        let (three, rest) = answer.scores.split_at(3);
        let exchanged: Vec<_> = parts
            .exchanged
            .into_iter()
            .zip(rest.iter().copied())
            .collect();
        let scores = [three[0], three[1], three[2]];
        let effects = effects(parts.list.len(), scores, &exchanged);
        let mut explained = parts.list;
        for (part, effects) in explained.iter_mut().zip(effects) {
            part.effects = effects;
        }
        explained.sort_by(|one, other| other.size().total_cmp(&one.size()));
        Ok(Self {
            parts: explained,
            left_out: parts.left_out,
            kernels: Vec::new(),
            ..Self::without_parts(ranked, compared, &answer, scores)
        })
    }

    async fn of_kernels(ranked: &Ranked<'_>, compared: &Compared) -> Result<Self, CommandError> {
        let answer = ranked.score(&compared.configurations, 3).await?;
        let kernels = [0, 1, 2].map(|config| {
            let place = answer
                .best
                .iter()
                .position(|ranked| ranked.config == config);
            let kernels = place.and_then(|place| answer.kernels.get(place));
            Kernels::of(ranked.job, kernels.map_or(&[], Vec::as_slice))
        });
        let scores = [answer.scores[0], answer.scores[1], answer.scores[2]];
        Ok(Self {
            kernels: kernels.into(),
            ..Self::without_parts(ranked, compared, &answer, scores)
        })
    }

    fn without_parts(
        ranked: &Ranked<'_>,
        compared: &Compared,
        answer: &Ranking,
        scores: [f32; 3],
    ) -> Self {
        let job = ranked.job;
        let roles = ["best", compared.reference, "worst"];
        let three = &compared.configurations;
        let slots = job.measured.graph.configurable();
        let explained = |config: usize| Explained {
            role: roles[config],
            number: compared.sent[config].map(|sent| job.number(sent)),
            score: scores[config],
            run_time_ns: compared.sent[config].and_then(|sent| job.run_time(sent)),
            configuration: ConfigurationForm::of(three, slots, config),
            set_nodes: set_nodes(three, slots, config),
            score_text: score_text(answer.unit, scores[config]),
            short: three.batch().describe(config, slots),
        };
        let kind_of_part = match three {
            Configurations::Layout(_) => "segment",
            _ => "bound",
        };
        Self {
            unit: unit_name(answer.unit),
            configurations: [0, 1, 2].map(explained),
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
            let single: f64 = self.parts.iter().map(|part| part.effects[config]).sum();
            (difference, difference - single)
        })
    }
}

impl Part {
    /// Returns the largest effect on the best and the worst.
    fn size(&self) -> f64 {
        self.effects[0].abs().max(self.effects[2].abs())
    }
}

impl Ranked<'_> {
    /// Scores other configurations with the model version and the measurements of the ranking.
    async fn score(
        &self,
        configurations: &Configurations,
        explain: u32,
    ) -> Result<Ranking, CommandError> {
        let request = RankRequest::new(self.graph, configurations)
            .model(Some(self.ranking.model.clone()))
            .adapt(self.adapt.clone())
            .explain(explain)
            .with_scores();
        let answer = self.client.rank(&request).await;
        answer.map_err(|source| CommandError::graph(self.path, self.job.module, source))
    }

    fn unsuitable(&self, source: ConfigurationError) -> CommandError {
        CommandError::Configuration {
            path: self.path.display().to_string(),
            source,
        }
    }
}
