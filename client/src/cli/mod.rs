//! The commands. Each makes a report, which is printed as text for people or as one JSON document.

mod configuration;
mod error;
mod eval;
mod graph;
mod input;
mod models;
mod output;
mod rank;
mod run_times;
mod server;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::{
    error::{CommandError, describe},
    output::Format,
};

/// Ranks compiler configurations of HLO graphs by predicted run time.
#[derive(Debug, Parser)]
#[command(name = "hlorank", version, propagate_version = true, arg_required_else_help = true)]
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
    /// Compare rankings with measured run times
    Eval(eval::Eval),
    /// List the models of a server, and change which versions serve
    Models(models::Models),
    /// Read files of graphs, without a server
    #[command(subcommand)]
    Graph(graph::GraphCommand),
}

/// Runs the command that the arguments name: exit code 0, 1 where it fails, 2 where the arguments are wrong.
pub(crate) async fn run() -> ExitCode {
    let cli = Cli::parse();
    match cli.command.run(Format::from_json_flag(cli.json)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", describe(&error));
            ExitCode::FAILURE
        }
    }
}

impl Command {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::Rank(rank) => rank.run(format).await,
            Self::Eval(eval) => eval.run(format).await,
            Self::Models(models) => models.run(format).await,
            Self::Graph(command) => command.run(format),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
