//! Why configurations are ranked as they are: what their parts do to the score, or where the time of a fusion goes.

use hlorank_client::{Client, GraphHandle, Ranking, v1::KernelTime};
use hlorank_graph::Configurations;
use serde::Serialize;

use super::parts::{Choice, Parts, ReportPart, opcode};
use crate::{
    configuration::{ConfigurationForm, default_number},
    error::CommandError,
    input::{Job, Subject},
    output::{Section, Table, counted, grouped, or_dash, run_time, score_text, seconds},
    run_times::RunTimes,
};

/// What makes the best and the worst configuration of a ranking differ from the default.
#[derive(Debug, Serialize)]
pub(super) struct Explanation {
    /// The best, the reference and the worst.
    pub(super) configurations: [ComparedConfiguration; 3],
    /// What `parts` are: segments or bounds.
    kind_of_part: &'static str,
    /// Parts in which the three differ, the largest effect first; empty for fusions.
    parts: Vec<ReportPart>,
    /// Number of such parts that were not explained.
    left_out: usize,
    /// Kernels of the three fusions; empty otherwise.
    kernels: Vec<Vec<KernelShare>>,
}

/// One of the configurations that are compared.
#[derive(Debug, Serialize)]
pub(super) struct ComparedConfiguration {
    /// `best`, `worst`, or what the reference is.
    pub(super) role: &'static str,
    /// Number of the configuration in the file.
    number: usize,
    pub(super) score: f32,
    pub(super) run_time_ns: Option<i64>,
    configuration: ConfigurationForm,
    #[serde(skip)]
    score_text: String,
    #[serde(skip)]
    short: String,
}

/// A kernel of a fusion, and its predicted run time.
#[derive(Debug, Serialize)]
struct KernelShare {
    /// Number of the node that it writes.
    node: u32,
    opcode: &'static str,
    computed_nodes: u32,
    seconds: f32,
}

/// Maximum number of parts or kernels in a table.
const SHOWN: usize = 20;

/// Maximum number of nodes of a segment in a row of a table.
const SHOWN_NODES: usize = 4;

/// Number of letters of a bar that is the whole time.
const BAR_LETTERS: f32 = 40.0;

impl Explanation {
    /// Explains a ranking, which has all scores, with one more call to the model version that ranked.
    pub(super) async fn new(
        subject: &Subject,
        client: &Client,
        job: &Job<'_>,
        graph: &GraphHandle,
        ranking: &Ranking,
    ) -> Result<Self, CommandError> {
        let path = &subject.graph;
        let default = job.run_times.as_ref().and_then(RunTimes::default_config);
        let default = default.or_else(|| default_number(job.configurations));
        let reference = if default.is_some() {
            "default"
        } else {
            "first"
        };
        let best = ranking.best.first().map_or(0, |ranked| ranked.config);
        let numbers = [
            best,
            default.unwrap_or(0),
            worst(&ranking.scores).unwrap_or(best),
        ];
        let three = job.configurations.select(&numbers);
        let (parts, explained) = match &three {
            Configurations::Layout(three) => (Some(Parts::segments(job.measured, three)), 0),
            Configurations::Tile(three) => (Some(Parts::bounds(three)), 0),
            // A fusion decides which kernels there are, so no part of it has an effect of its own.
            // Its kernels say where the time goes.
            Configurations::Fusion(_) => (None, 3),
            Configurations::FeatureSet(_) => {
                let problem = "is a graph of a feature set, whose configurations have no parts that could be explained";
                return Err(CommandError::input(path.display(), problem));
            }
        };
        let parts = parts.transpose();
        let parts = parts.map_err(|source| CommandError::configuration(path, &source))?;
        let scored = parts.as_ref().map_or(&three, |parts| &parts.configurations);
        // Scores of different versions cannot be compared, and the default may change between two
        // calls.
        let request = subject
            .request(graph, job, scored)
            .model(Some(ranking.model.clone()))
            .explain(explained)
            .with_scores();
        let (answer, _) = subject.rank(client, job, &request).await?;
        let slots = job.measured.graph.configurable();
        let configurations = [0, 1, 2].map(|config| ComparedConfiguration {
            role: ["best", reference, "worst"][config],
            number: job.number(numbers[config]),
            // The client has checked that every configuration has a score.
            score: answer.scores[config],
            run_time_ns: job.run_time(numbers[config]),
            configuration: ConfigurationForm::new(&three, slots, config),
            score_text: score_text(answer.unit, answer.scores[config]),
            short: three.batch().describe(config, slots),
        });
        let kind_of_part = match &three {
            Configurations::Layout(_) => "segment",
            _ => "bound",
        };
        let kernels = match parts {
            Some(_) => Vec::new(),
            None => [0, 1, 2].map(|config| kernels(job, &answer, config)).into(),
        };
        Ok(Self {
            configurations,
            kind_of_part,
            left_out: parts.as_ref().map_or(0, |parts| parts.left_out),
            parts: parts.map_or_else(Vec::new, |parts| parts.with_effects(&answer.scores)),
            kernels,
        })
    }

    /// Returns the tables of the explanation.
    pub(super) fn sections(&self) -> Vec<Section> {
        let mut sections = vec![self.compared()];
        if self.kernels.is_empty() {
            sections.push(self.effects());
        }
        let kernels = self.configurations.iter().zip(&self.kernels);
        sections.extend(kernels.map(|(explained, kernels)| section_of(explained.role, kernels)));
        sections
    }

    fn compared(&self) -> Section {
        let mut table = Table::new(&["", ">number", ">score", ">measured", "configuration"]);
        for explained in &self.configurations {
            table.row([
                explained.role.to_owned(),
                explained.number.to_string(),
                explained.score_text.clone(),
                or_dash(explained.run_time_ns.map(run_time)),
                explained.short.clone(),
            ]);
        }
        Section {
            title: "What is compared".to_owned(),
            table: Some(table.without_unknown()),
            notes: Vec::new(),
        }
    }

    fn effects(&self) -> Section {
        let kind = self.kind_of_part;
        let reference = self.configurations[1].role;
        if self.parts.is_empty() {
            return Section {
                title: format!("No single {kind} explains how the three differ"),
                table: None,
                notes: Vec::new(),
            };
        }
        let (what, contents) = if kind == "segment" {
            ("layouts of one segment do", "nodes: best's layouts")
        } else {
            ("bounds at one place do", "best, reference, worst")
        };
        let mut table = Table::new(&[
            &format!(">{kind}"),
            ">best",
            &format!(">{reference}"),
            ">worst",
            contents,
        ]);
        for part in self.parts.iter().take(SHOWN) {
            let [best, reference, worst] = part.effects.map(effect);
            table.row([part.name.clone(), best, reference, worst, part.contents()]);
        }
        let note = |count: usize, what: &str| {
            (count > 0).then(|| format!("and {} {what}", grouped(count)))
        };
        let others = note(
            self.parts.len().saturating_sub(SHOWN),
            "others with smaller effects",
        );
        let left_out = note(
            self.left_out,
            "more whose effects were not computed, since a call has a limit",
        );
        let meaning = format!(
            "Negative is predicted faster. For best and worst: the score minus that with the {reference}'s choice in this \
             {kind}. For {reference}: what the best's choice in this {kind} alone would change."
        );
        // A model is no sum of its parts, so single effects need not add up to the difference.
        let [[to_best, with_best], [to_worst, with_worst]] = [0, 2].map(|config| {
            let score = |config: usize| f64::from(self.configurations[config].score);
            let difference = score(config) - score(1);
            let single: f64 = self.parts.iter().map(|part| part.effects[config]).sum();
            [difference, difference - single].map(effect)
        });
        let combined = format!(
            "From the {reference} to the best, the score changes by {to_best}, and to the worst by {to_worst}. Of these, \
             {with_best} and {with_worst} are due to several {kind}s together."
        );
        Section {
            title: format!("What the {what} to the score"),
            table: Some(table),
            notes: [others, left_out, Some(meaning), Some(combined)]
                .into_iter()
                .flatten()
                .collect(),
        }
    }
}

impl ReportPart {
    fn contents(&self) -> String {
        let text = |choice: &Choice| match choice.node {
            // A row has no space for three layouts of each node, so it shows the best's.
            Some(node) => format!("{node} {} {}", choice.what, choice.values[0]),
            None => choice.values.join(", "),
        };
        let mut shown: Vec<_> = self.choices.iter().take(SHOWN_NODES).map(text).collect();
        if self.choices.len() > SHOWN_NODES {
            shown.push(format!(
                "{} more",
                grouped(self.choices.len() - SHOWN_NODES)
            ));
        }
        let text = shown.join(", ");
        // A bound has no nodes.
        if self.nodes.is_empty() {
            return text;
        }
        format!("{}: {text}", counted(self.nodes.len(), "node"))
    }
}

/// Returns the number of the highest finite score.
fn worst(scores: &[f32]) -> Option<usize> {
    // An infinite score says that a kernel is too large for the model, and not how slow it is.
    let numbered = scores.iter().enumerate();
    let finite = numbered.filter(|(_, score)| score.is_finite());
    let worst = finite.max_by(|(_, one), (_, other)| one.total_cmp(other));
    worst.map(|(number, _)| number)
}

/// Returns the kernels of a configuration of an answer, the longest first; none if its score is infinite.
fn kernels(job: &Job<'_>, answer: &Ranking, config: usize) -> Vec<KernelShare> {
    // Kernels are in the order of the ranking.
    let mut best = answer.best.iter();
    let place = best.position(|ranked| ranked.config == config);
    let kernels = place.and_then(|place| answer.kernels.get(place));
    let kernel = |kernel: &KernelTime| KernelShare {
        node: kernel.node,
        opcode: opcode(&job.measured.graph, kernel.node),
        computed_nodes: kernel.computed_nodes,
        seconds: kernel.seconds,
    };
    let mut kernels: Vec<_> = kernels.into_iter().flatten().map(kernel).collect();
    kernels.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    kernels
}

/// Returns the table of the kernels of a fusion.
fn section_of(role: &str, kernels: &[KernelShare]) -> Section {
    if kernels.is_empty() {
        return Section {
            title: format!("Kernels of the {role}: one is too large for the model"),
            table: None,
            notes: Vec::new(),
        };
    }
    let total: f32 = kernels.iter().map(|kernel| kernel.seconds).sum();
    let mut table = Table::new(&[">node", "opcode", ">computes", ">time", ">share", ""]);
    for kernel in kernels.iter().take(SHOWN) {
        let share = kernel.seconds / total;
        table.row([
            kernel.node.to_string(),
            kernel.opcode.to_owned(),
            counted(kernel.computed_nodes as usize, "node"),
            seconds(kernel.seconds),
            format!("{:.1} %", 100.0 * share),
            bar(share),
        ]);
    }
    let others = kernels.get(SHOWN..).filter(|others| !others.is_empty());
    let others = others.map(|others| {
        let time: f32 = others.iter().map(|kernel| kernel.seconds).sum();
        let number = grouped(others.len());
        format!("and {number} others with {} in all", seconds(time))
    });
    Section {
        title: format!(
            "Kernels of the {role}: {}, {} predicted",
            counted(kernels.len(), "kernel"),
            seconds(total)
        ),
        table: Some(table),
        notes: others.into_iter().collect(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1"
)]
fn bar(share: f32) -> String {
    "█".repeat((share * BAR_LETTERS).round() as usize)
}

/// Formats an effect with its sign.
fn effect(effect: f64) -> String {
    if effect == 0.0 {
        "0".to_owned()
    } else {
        format!("{effect:+.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_the_last_one_that_can_run() {
        assert_eq!(worst(&[1.0, f32::INFINITY, 3.0, -2.0]), Some(2));
        assert_eq!(worst(&[f32::INFINITY]), None);
    }
}
