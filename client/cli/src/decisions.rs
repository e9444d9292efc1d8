//! `hlorank decisions`: shows which configurations everybody uses, writes them to a file, and replaces them.

use std::{
    fmt::{self, Display, Formatter},
    fs, io,
    path::PathBuf,
};

use clap::{Args, Subcommand};
use hlorank_client::{
    Client,
    v1::{
        DecideRequest, Decision, DecisionEvidence, DecisionKey, ListDecisionsRequest, Proposal,
        decide_request::Step, decide_response::Outcome,
    },
};
use hlorank_graph::{escaped, from_hex, to_hex};
use serde::Serialize;

use crate::{
    error::CommandError,
    measurements::age,
    output::{Format, Table, counted, or_dash, seconds, write_lines},
    replicas::print_each,
    server::Server,
};

#[derive(Debug, Subcommand)]
pub(crate) enum DecisionsCommand {
    /// List what is decided
    List(List),
    /// Show the decision of a key, and those that it superseded, with their values
    Show(Show),
    /// Replace the decision of a key for calls from now on
    Supersede(Supersede),
    /// Write all decisions as lines of JSON
    Export(Export),
}

impl DecisionsCommand {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::List(list) => list.run(format).await,
            Self::Show(show) => show.run(format).await,
            Self::Supersede(supersede) => supersede.run(format).await,
            Self::Export(export) => export.run().await,
        }
    }
}

/// Which decisions to list.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    server: Server,
}

/// The decisions that a command is about.
#[derive(Debug, Args)]
struct Chosen {
    /// Only those of this namespace, such as triton
    #[arg(long, value_name = "NAME", default_value_t, hide_default_value = true)]
    namespace: String,
    /// Only those of this target, its parts in any order
    #[arg(long, value_name = "PARTS", default_value_t, hide_default_value = true)]
    target: String,
    /// Superseded ones, too
    #[arg(long)]
    all_generations: bool,
    /// Only those that were made after this snapshot
    #[arg(
        long,
        value_name = "SNAPSHOT",
        default_value_t,
        hide_default_value = true
    )]
    after: u64,
}

/// What a decision is about.
#[derive(Debug, Args)]
struct Subject {
    /// Namespace, such as triton
    #[arg(long, value_name = "NAME")]
    namespace: String,
    /// Key as `hlorank decisions list` shows it
    ///
    /// A text, or `hex:` and the bytes in hexadecimal digits.
    #[arg(long, value_name = "KEY", value_parser = key)]
    key: Key,
    /// Target, its parts in any order
    #[arg(long, value_name = "PARTS")]
    target: String,
}

/// Bytes of a key.
#[derive(Clone, Debug)]
struct Key(Vec<u8>);

/// Decision to show.
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    server: Server,
}

/// Decision to replace, and by what.
#[derive(Debug, Args)]
pub(crate) struct Supersede {
    #[command(flatten)]
    subject: Subject,
    /// Generation to replace, which must be the latest
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    generation: u64,
    /// File with the new value
    #[arg(long, value_name = "FILE")]
    value: PathBuf,
    /// Mean run time of the new value in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t,
        hide_default_value = true
    )]
    seconds: f64,
    /// Number of runs that the time is the mean of
    #[arg(long, value_name = "RUNS", default_value_t, hide_default_value = true)]
    runs: u32,
    #[command(flatten)]
    server: Server,
}

/// Decisions to write.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// File to write to [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    server: Server,
}

/// Some decisions.
#[derive(Debug, Serialize)]
struct DecisionsReport {
    decisions: Vec<DecisionReport>,
    #[serde(skip)]
    with_values: bool,
}

/// All fields of a decision.
#[derive(Debug, Serialize)]
struct DecisionReport {
    namespace: String,
    key: String,
    target: String,
    generation: u64,
    snapshot: u64,
    value: String,
    #[serde(flatten)]
    evidence: DecisionEvidence,
    reporter: String,
    decided_at: u64,
}

/// What bytes that are no text are written with, in hexadecimal digits.
const HEX: &str = "hex:";

impl List {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        let request = self.chosen.request();
        let list = async |client: &Client| {
            Ok(DecisionsReport {
                decisions: reports(listed(client, request.clone()).await?),
                with_values: false,
            })
        };
        print_each(format, self.server.connect_each().await?, list).await
    }
}

impl Show {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        let request = ListDecisionsRequest {
            namespace: self.subject.namespace,
            key: self.subject.key.0.into(),
            target: self.subject.target,
            all_generations: true,
            ..ListDecisionsRequest::default()
        };
        let show = async |client: &Client| {
            let mut decisions = reports(listed(client, request.clone()).await?);
            // The current one comes first.
            decisions.reverse();
            Ok(DecisionsReport {
                decisions,
                with_values: true,
            })
        };
        print_each(format, self.server.connect_each().await?, show).await
    }
}

impl Supersede {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        let value = fs::read(&self.value);
        let value = value.map_err(|error| CommandError::input(self.value.display(), error))?;
        let proposal = Proposal {
            value: value.into(),
            evidence: Some(DecisionEvidence {
                seconds: self.seconds,
                runs: self.runs,
                ..DecisionEvidence::default()
            }),
            supersede: self.generation,
        };
        let key = DecisionKey {
            namespace: self.subject.namespace,
            key: self.subject.key.0.into(),
            target: self.subject.target,
        };
        let decision = propose(&self.server.connect().await?, key, proposal).await?;
        let decisions = vec![DecisionReport::new(decision)];
        Ok(format.print(&DecisionsReport {
            decisions,
            with_values: true,
        })?)
    }
}

impl Export {
    async fn run(self) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let mut lines = String::new();
        for decision in reports(listed(&client, self.chosen.request()).await?) {
            let line = serde_json::to_string(&decision).map_err(io::Error::from)?;
            lines += &escaped(&line);
            lines.push('\n');
        }
        match self.out {
            Some(path) => {
                fs::write(&path, lines).map_err(|error| CommandError::written(&path, error))
            }
            None if lines.is_empty() => Ok(()),
            None => Ok(write_lines(io::stdout().lock(), &lines)?),
        }
    }
}

impl Chosen {
    fn request(&self) -> ListDecisionsRequest {
        ListDecisionsRequest {
            namespace: self.namespace.clone(),
            target: self.target.clone(),
            all_generations: self.all_generations,
            after_snapshot: self.after,
            ..ListDecisionsRequest::default()
        }
    }
}

/// Proposes a value, and returns the decision.
pub(crate) async fn propose(
    client: &Client,
    key: DecisionKey,
    proposal: Proposal,
) -> Result<Decision, CommandError> {
    let request = DecideRequest {
        key: Some(key),
        step: Some(Step::Propose(proposal)),
        ..DecideRequest::default()
    };
    match client.decide(&request).await?.outcome {
        Some(Outcome::Decided(decision)) => Ok(decision),
        _ => Ok(Decision::default()),
    }
}

/// Returns all decisions that a server lists, page by page.
pub(crate) async fn listed(
    client: &Client,
    mut request: ListDecisionsRequest,
) -> Result<Vec<Decision>, CommandError> {
    let mut decisions = Vec::new();
    loop {
        let page = client.list_decisions(&request).await?;
        decisions.extend(page.decisions);
        if page.next_page_token.is_empty() {
            return Ok(decisions);
        }
        request.page_token = page.next_page_token;
    }
}

fn reports(decisions: Vec<Decision>) -> Vec<DecisionReport> {
    decisions.into_iter().map(DecisionReport::new).collect()
}

impl DecisionReport {
    fn new(decision: Decision) -> Self {
        let key = decision.key.unwrap_or_default();
        Self {
            namespace: key.namespace,
            key: text_of(&key.key),
            target: key.target,
            generation: decision.generation,
            snapshot: decision.snapshot,
            value: text_of(&decision.value),
            evidence: decision.evidence.unwrap_or_default(),
            reporter: decision.reporter,
            decided_at: decision.decided_at,
        }
    }

    fn run_time(&self) -> String {
        let time = Some(self.evidence.seconds).filter(|seconds| *seconds > 0.0);
        or_dash(time.map(seconds))
    }
}

/// Writes bytes as text if they are one, else in hexadecimal digits.
fn text_of(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.starts_with(HEX)
    {
        return text.to_owned();
    }
    format!("{HEX}{}", to_hex(bytes))
}

/// Reads what [`text_of`] wrote.
fn key(text: &str) -> Result<Key, &'static str> {
    let Some(digits) = text.strip_prefix(HEX) else {
        return Ok(Key(text.as_bytes().to_owned()));
    };
    from_hex(digits)
        .map(Key)
        .ok_or("expected an even number of hexadecimal digits after `hex:`")
}

impl Display for DecisionsReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.decisions.is_empty() {
            return writeln!(formatter, "The server keeps no such decisions.");
        }
        let columns = [
            "namespace",
            "key",
            "target",
            ">generation",
            ">time",
            ">runs",
            "decided",
            "by",
        ];
        let mut table = Table::new(&columns);
        for decision in &self.decisions {
            table.row([
                decision.namespace.clone(),
                decision.key.clone(),
                decision.target.clone(),
                decision.generation.to_string(),
                decision.run_time(),
                or_dash(Some(decision.evidence.runs).filter(|runs| *runs > 0)),
                age::shown(decision.decided_at),
                or_dash(Some(&decision.reporter).filter(|name| !name.is_empty())),
            ]);
        }
        writeln!(formatter, "{}", table.without_unknown())?;
        if self.with_values {
            for DecisionReport {
                generation, value, ..
            } in &self.decisions
            {
                writeln!(formatter, "Generation {generation}: {value}")?;
            }
            return Ok(());
        }
        writeln!(formatter, "{}.", counted(self.decisions.len(), "decision"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        for bytes in [&b"gemm 1024"[..], b"hex:00", &[0, 255, 16], b""] {
            assert_eq!(key(&text_of(bytes)).unwrap().0, bytes);
        }
        assert_eq!(text_of(&[0, 255]), "hex:00ff");
        assert!(key("hex:0").is_err() && key("hex:xy").is_err());
    }
}
