//! The commands. Each creates a report, which is printed as text or as one JSON document.

mod bench;
mod completions;
mod configuration;
mod credentials;
mod draw;
mod error;
mod eval;
mod exit;
mod failure;
mod graph;
mod input;
mod measured;
mod models;
mod output;
mod progress;
mod rank;
mod run_times;
mod server;
mod style;
mod suggest;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use self::{error::CommandError, exit::EXIT_CODES, output::Format};

/// Ranks compiler configurations of HLO graphs by predicted run time.
#[derive(Debug, Parser)]
#[command(name = "hlorank", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Rank configurations of a graph by predicted run time
    Rank(rank::Rank),
    /// Propose which configurations of a graph to measure next
    Suggest(suggest::Suggest),
    /// Compare rankings with measured run times
    Eval(eval::Eval),
    /// Send load to a server and measure its latency
    Bench(bench::Bench),
    /// List the models of a server, or change which versions serve
    Models(models::Models),
    /// Inspect files of graphs without a server
    #[command(subcommand)]
    Graph(graph::GraphCommand),
    /// Print a script for command completion in a shell
    Completions(completions::Completions),
}

/// Runs the command of the arguments.
pub(crate) async fn run() -> ExitCode {
    let cli = Cli::parse();
    let format = Format::from_json_flag(cli.json);
    // Boxed, since the state of a command that holds requests is large.
    match Box::pin(cli.command.run(format)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            format.print_failure(&error);
            error.exit().into()
        }
    }
}

impl Command {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::Rank(rank) => Box::pin(rank.run(format)).await,
            Self::Suggest(suggest) => Box::pin(suggest.run(format)).await,
            Self::Eval(eval) => Box::pin(eval.run(format)).await,
            Self::Bench(bench) => bench.run(format).await,
            Self::Models(models) => models.run(format).await,
            Self::Graph(command) => command.run(format),
            Self::Completions(completions) => completions.run(Cli::command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
