//! `hlorank rank`: ranks the configurations to measure first.

use std::{
    fmt::{self, Display, Formatter},
    time::{Duration, Instant},
};

use clap::{Args, builder::styling::Style};
use hlorank_client::{Client, GraphHandle, RankRequest, RankedConfig, Ranking, v1};
use hlorank_graph::Configurations;
use serde::Serialize;

use crate::{
    configuration::ConfigurationForm,
    error::CommandError,
    input::{Job, Subject},
    lesson::{Lesson, confidence_text},
    measured::Prediction,
    output::{
        Format, GOOD, Table, WARNING, counted, grouped, or_dash, printable, run_time, score_text,
        styled, unit_name,
    },
    progress::Progress,
    run_times::RunTimes,
};

const EXAMPLES: &str = "\
Examples:
  hlorank rank --graph kernels.pb --top 5
  hlorank rank --graph module.hlo.txt --configs candidates.json --json
  hlorank rank --graph kernels.pb --module 3 --model tile-iree-cpu@canary
  hlorank rank --graph module.hlo.txt --configs candidates.json --measured measured.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rank {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    top: Top,
}

/// How much of a ranking to show.
#[derive(Debug, Args)]
#[command(next_help_heading = "Graph and model")]
pub(crate) struct Top {
    /// Number of best configurations to show, or `all`
    #[arg(long, value_name = "K", default_value = "10", value_parser = top)]
    pub(crate) top: u32,
}

/// Reads how many configurations to show; 0 stands for all on the wire alone.
fn top(text: &str) -> Result<u32, String> {
    match text.parse() {
        _ if text == "all" => Ok(0),
        Ok(top) if top > 0 => Ok(top),
        _ => Err("expected a whole number above 0, or `all`".to_owned()),
    }
}

/// The rankings of a file.
#[derive(Debug, Serialize)]
struct RankReport {
    graphs: Vec<GraphRanking>,
}

/// The ranking of one graph.
#[derive(Debug, Serialize)]
pub(crate) struct GraphRanking {
    module: usize,
    pub(crate) name: String,
    kind: String,
    nodes: usize,
    graph_hash: String,
    model: String,
    /// Unit of the scores, if they have one.
    pub(crate) unit: Option<&'static str>,
    configurations: usize,
    ranking: Vec<RankedConfiguration>,
    measured: Option<MeasuredSummary>,
    /// What the server learned from measurements.
    learned: Option<Lesson>,
    /// How far the ranking can be trusted, if the server knows it.
    confidence: Option<v1::Confidence>,
    reuse: v1::ReuseCounts,
    round_trip_ms: f64,
    server_ms: Stages,
    warnings: Vec<v1::Warning>,
}

/// One of the best configurations.
#[derive(Debug, Serialize)]
struct RankedConfiguration {
    /// Rank, from 1.
    rank: usize,
    /// Number of the configuration in the file.
    number: usize,
    score: f32,
    predicted: Option<Prediction>,
    run_time_ns: Option<i64>,
    over_default: Option<f64>,
    configuration: ConfigurationForm,
    /// The score with its unit.
    #[serde(skip)]
    score_text: String,
    #[serde(skip)]
    short: String,
}

/// The run times that measuring the best-ranked configurations would have found, in nanoseconds.
#[derive(Debug, Serialize)]
struct MeasuredSummary {
    configurations: usize,
    best_of_ranking_ns: Option<i64>,
    default_ns: Option<i64>,
    best_ns: i64,
    best_number: usize,
    /// Number of runs in the file that failed or do not fit the graph.
    skipped_runs: usize,
}

/// Time of each stage on the server, in milliseconds.
#[derive(Debug, Serialize)]
struct Stages {
    queue: f64,
    featurize: f64,
    parse: f64,
    encode: f64,
    head: f64,
    rank: f64,
    total: f64,
}

impl Rank {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let subject = &self.subject;
        let progress = Progress::over(1);
        // Files are read before the connection is opened, so a wrong one is reported at once.
        let loaded = subject.load(&progress)?;
        let jobs = loaded.iter().map(|loaded| subject.job(loaded));
        let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        let client = subject.server.connect().await?;
        let mut graphs = Vec::new();
        for job in &jobs {
            let handle = GraphHandle::from_measured(job.measured);
            let request = subject.request(&handle, job, job.configurations);
            let request = request.top(self.top.top);
            let (ranking, time) = subject.rank(&client, job, &request).await?;
            graphs.push(GraphRanking::new(job, ranking, time));
            progress.advance();
        }
        Ok(format.print(&RankReport { graphs })?)
    }
}

impl Subject {
    /// Returns the request to rank configurations of a graph.
    pub(crate) fn request<'a>(
        &self,
        graph: &'a GraphHandle,
        job: &Job<'_>,
        configurations: &Configurations,
    ) -> RankRequest<'a> {
        RankRequest::new(graph, configurations)
            .model(self.model.model.clone())
            .target(self.measurements.target())
            .adapt(job.learned.as_ref().map(|learned| &learned.adapt))
    }

    /// Ranks the configurations of a graph, and returns the time that it took.
    pub(crate) async fn rank(
        &self,
        client: &Client,
        job: &Job<'_>,
        request: &RankRequest<'_>,
    ) -> Result<(Ranking, Duration), CommandError> {
        let start = Instant::now();
        match client.rank(request).await {
            Ok(ranking) => Ok((ranking, start.elapsed())),
            Err(source) => Err(CommandError::graph(&self.graph, job.module, source)),
        }
    }
}

impl GraphRanking {
    pub(crate) fn new(job: &Job<'_>, ranking: Ranking, round_trip: Duration) -> Self {
        let graph = &job.measured.graph;
        let best =
            (0..ranking.best.len()).map(|place| RankedConfiguration::new(job, &ranking, place));
        let best = best.collect();
        let run_times = job.run_times.as_ref();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let timings = ranking.timings;
        Self {
            module: job.module,
            name: job.measured.name.clone(),
            kind: graph.task().to_string(),
            nodes: graph.len(),
            graph_hash: ranking.graph_hash.to_string(),
            model: ranking.model.to_string(),
            unit: unit_name(ranking.unit),
            configurations: job.configurations.len(),
            ranking: best,
            measured: run_times.and_then(|times| MeasuredSummary::new(times, &ranking.best)),
            learned: ranking.adaptation.as_ref().map(Lesson::from),
            confidence: ranking.confidence,
            reuse: ranking.reuse,
            round_trip_ms: milliseconds(round_trip),
            server_ms: Stages {
                queue: milliseconds(timings.queue),
                featurize: milliseconds(timings.featurize),
                parse: milliseconds(timings.parse),
                encode: milliseconds(timings.encode),
                head: milliseconds(timings.head),
                rank: milliseconds(timings.rank),
                total: milliseconds(timings.total),
            },
            warnings: ranking.warnings,
        }
    }
}

impl RankedConfiguration {
    fn new(job: &Job<'_>, ranking: &Ranking, place: usize) -> Self {
        let RankedConfig { config, score } = ranking.best[place];
        let slots = job.measured.graph.configurable();
        let run_times = job.run_times.as_ref();
        Self {
            rank: place + 1,
            number: job.number(config),
            score,
            predicted: Prediction::at_place(ranking, place),
            run_time_ns: job.run_time(config),
            over_default: run_times.and_then(|times| times.over_default(config)),
            configuration: ConfigurationForm::new(job.configurations, slots, config),
            score_text: score_text(ranking.unit, score),
            short: job.configurations.batch().describe(config, slots),
        }
    }
}

impl MeasuredSummary {
    fn new(times: &RunTimes<'_>, best: &[RankedConfig]) -> Option<Self> {
        // A tuner that measures only the best-ranked configurations finds the fastest of these. Its
        // distance to the fastest of all is what the ranking would have cost.
        let (fastest, best_ns) = times.best()?;
        let best_of_ranking = times.fastest(best.iter().map(|ranked| ranked.config));
        Some(Self {
            configurations: times.len(),
            best_of_ranking_ns: best_of_ranking.map(|(_, time)| time),
            default_ns: times.default(),
            best_ns,
            best_number: times.number(fastest),
            skipped_runs: times.skipped(),
        })
    }
}

impl Display for RankReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for (position, graph) in self.graphs.iter().enumerate() {
            let gap = if position > 0 { "\n" } else { "" };
            writeln!(formatter, "{gap}{}\n\n{}", graph.heading(), graph.table())?;
            graph
                .remarks()
                .iter()
                .try_for_each(|remark| writeln!(formatter, "{remark}"))?;
        }
        Ok(())
    }
}

impl GraphRanking {
    pub(crate) fn heading(&self) -> String {
        let configurations = counted(self.configurations, "configuration");
        format!(
            "{}: {}, {}, {configurations}, {} distinct, {}, {:.1} ms",
            printable(&self.name),
            self.kind,
            counted(self.nodes, "node"),
            grouped(count(self.reuse.distinct_configs)),
            printable(&self.model),
            self.round_trip_ms,
        )
    }

    /// Returns the ranking as a table. Configurations at the end of a line are long, so empty columns are left out.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(&[
            ">rank",
            ">number",
            ">score",
            ">predicted",
            ">measured",
            ">vs default",
            "configuration",
        ]);
        let measured = self.measured.as_ref();
        let best = measured.and_then(|all| all.best_of_ranking_ns);
        for row in &self.ranking {
            let cells = [
                grouped(row.rank),
                row.number.to_string(),
                row.score_text.clone(),
                or_dash(row.predicted),
                or_dash(row.run_time_ns.map(run_time)),
                or_dash(row.over_default.map(|ratio| format!("{ratio:.2}x"))),
                row.short.clone(),
            ];
            // Equal run times are equally good, and all of them are highlighted.
            let is_best = best.is_some() && row.run_time_ns == best;
            table.styled_row(if is_best { GOOD } else { Style::new() }, cells);
        }
        table.without_unknown()
    }

    /// Returns sentences about the work, how far the ranking can be trusted, and what is unusual. The comparison with
    /// measured run times comes last, where it stays in view.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let work = format!("{}; {}", self.server_ms, reuse_text(self.reuse));
        let learned = self.learned.as_ref().map(ToString::to_string);
        let confidence = self.confidence.as_ref().map(confidence_text);
        let warnings = self.warnings.iter().map(warning_text);
        let measured = self.measured.as_ref();
        let measured = measured.map(|measured| measured.sentence(self.ranking.len()));
        let remarks = std::iter::once(work).chain(learned).chain(confidence);
        remarks.chain(warnings).chain(measured).collect()
    }
}

impl MeasuredSummary {
    /// Returns a sentence about the run time that measuring only the `top` best-ranked would have found.
    fn sentence(&self, top: usize) -> String {
        let chosen = match self.best_of_ranking_ns {
            Some(time) => format!("The best of the top {top} runs in {}", run_time(time)),
            None => format!("None of the top {top} was measured"),
        };
        let default = match self.default_ns {
            Some(time) => format!("the default configuration takes {}", run_time(time)),
            None => "the default configuration was not measured".to_owned(),
        };
        let measured = counted(self.configurations, "measured configuration");
        let best = run_time(self.best_ns);
        let number = self.best_number;
        let skipped = match self.skipped_runs {
            0 => String::new(),
            runs => {
                let runs = counted(runs, "run");
                format!(" {runs} of the file skipped: failed or not applicable.")
            }
        };
        format!(
            "{chosen}; {default}, and the true best of {measured} takes {best} (number {number}).{skipped}"
        )
    }
}

fn warning_text(v1::Warning { reason, message }: &v1::Warning) -> String {
    let label = styled(WARNING, "warning:");
    // A warning may quote names of the request, which can contain control characters.
    format!("{label} {} ({})", printable(message), printable(reason))
}

impl Display for Stages {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "server {:.2} ms: queue {:.2}, featurize {:.2}, parse {:.2}, encode {:.2}, head {:.2}, rank {:.2}",
            self.total, self.queue, self.featurize, self.parse, self.encode, self.head, self.rank,
        )
    }
}

fn reuse_text(reuse: v1::ReuseCounts) -> String {
    format!(
        "segment rows {}: {} distinct, {} evaluated, {} cached",
        grouped(count(reuse.segment_rows)),
        grouped(count(reuse.distinct_segment_rows)),
        grouped(count(reuse.rows_evaluated)),
        grouped(count(reuse.rows_cached)),
    )
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_sentence_compares_the_ranking_with_the_measurements() {
        let mut summary = MeasuredSummary {
            configurations: 579,
            best_of_ranking_ns: Some(12_340),
            default_ns: Some(15_000),
            best_ns: 12_000,
            best_number: 17,
            skipped_runs: 0,
        };
        assert_eq!(
            summary.sentence(10),
            "The best of the top 10 runs in 12.34 µs; the default configuration takes 15.00 µs, and the true \
             best of 579 measured configurations takes 12.00 µs (number 17)."
        );
        (summary.best_of_ranking_ns, summary.default_ns) = (None, None);
        let sentence = summary.sentence(3);
        assert!(sentence.starts_with(
            "None of the top 3 was measured; the default configuration was not measured"
        ));
    }
}
