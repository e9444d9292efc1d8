//! `hlorank`: the command line of hlorank. Each command creates a report, which is printed as text or as one JSON document.

mod configuration;
mod decisions;
mod error;
mod eval;
mod failure;
mod graph;
mod input;
mod lesson;
mod measured;
mod measurements;
mod models;
mod output;
mod progress;
mod rank;
mod replicas;
mod report;
mod run_times;
mod server;
mod suggest;
mod worker;
mod xla_cache;

use std::{env, path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, builder::Resettable};

use clap_complete::Shell;
use hlorank_arguments::{matches_of_process, print_completions, unknown_variables, write_manual};

use crate::{
    error::{CommandError, EXIT_CODES},
    output::Format,
};

/// Ranks compiler configurations of HLO graphs by predicted run time.
#[derive(Debug, Parser)]
#[command(name = "hlorank", version, arg_required_else_help = true)]
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
    /// Rank configurations, and show what makes the best and the worst differ from the default
    Report(report::Report),
    /// Propose which configurations of a graph to measure next
    Suggest(suggest::Suggest),
    /// Measure configurations of a space with a command, beside other workers
    Worker(worker::Worker),
    /// Compare rankings with measured run times
    Eval(eval::Eval),
    /// List the models of a server, or change which versions serve
    Models(models::Models),
    /// List or delete measurements that a server keeps, and take them to files and back
    #[command(subcommand)]
    Measurements(measurements::MeasurementsCommand),
    /// Show which configurations everybody uses, and replace them
    #[command(subcommand)]
    Decisions(decisions::DecisionsCommand),
    /// Have jobs of XLA use the same results of its autotuning
    #[command(subcommand)]
    XlaCache(xla_cache::XlaCacheCommand),
    /// Inspect files of graphs without a server
    #[command(subcommand)]
    Graph(graph::GraphCommand),
    /// Print a script for command completion in a shell
    Completions {
        /// Shell that runs the script
        shell: Shell,
    },
    /// Write the manual pages of all commands
    Man {
        /// Folder of the pages, such as ~/.local/share/man/man1; it is made if it is missing
        folder: PathBuf,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::from_process();
    let format = if cli.json { Format::Json } else { Format::Text };
    for unknown in unknown_variables(env::vars_os().map(|(name, _)| name)) {
        format.print_warning(&unknown);
    }
    // Boxed, since the state of a command that holds requests is large.
    match Box::pin(cli.command.run(format)).await {
        Ok(()) => ExitCode::SUCCESS,
        // A reader such as `head` closes the pipe once it has the lines that it wants.
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            format.print_failure(&error);
            error.exit()
        }
    }
}

impl Cli {
    /// Reads the arguments of this process. Ends it if they are wrong, or if they ask for help.
    fn from_process() -> Self {
        // clap prints the help while it reads the arguments, so its form must be set before that.
        let is_summary = env::args_os().any(|argument| argument == "-h");
        let mut matches = matches_of_process(with_help(Cli::command(), is_summary));
        Self::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
    }
}

/// Sets the form of the help, and leaves out variables that are empty. In a summary, every option has one line, without its environment variable and its default.
fn with_help(command: clap::Command, is_summary: bool) -> clap::Command {
    command
        .mut_args(|option| {
            // A flag without a value has neither a variable nor a default to hide.
            let is_bare = is_summary && option.get_action().takes_values();
            let is_empty = |name| env::var_os(name).is_some_and(|value| value.is_empty());
            // A variable that is set to nothing is how many environments leave one out.
            let option = match option.get_env() {
                Some(name) if is_empty(name) => option.env(Resettable::Reset),
                _ => option,
            };
            option.hide_env(is_bare).hide_default_value(is_bare)
        })
        .mut_subcommands(|command| with_help(command, is_summary))
}

impl Command {
    async fn run(self, format: Format) -> Result<(), CommandError> {
        // A future is as large as the largest that it awaits. Those that hold requests are boxed.
        match self {
            Self::Rank(rank) => Box::pin(rank.run(format)).await,
            Self::Report(report) => Box::pin(report.run(format)).await,
            Self::Suggest(suggest) => Box::pin(suggest.run(format)).await,
            Self::Worker(worker) => Box::pin(worker.run(format)).await,
            Self::Eval(eval) => Box::pin(eval.run(format)).await,
            Self::Models(models) => models.run(format).await,
            Self::Measurements(command) => Box::pin(command.run(format)).await,
            Self::Decisions(command) => Box::pin(command.run(format)).await,
            Self::XlaCache(command) => Box::pin(command.run(format)).await,
            Self::Graph(command) => command.run(format),
            Self::Completions { shell } => Ok(print_completions(shell, Cli::command())?),
            Self::Man { folder } => {
                let written = write_manual(&folder, Cli::command());
                written.map_err(|error| CommandError::written(&folder, error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_arguments::VARIABLES;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_variable_is_in_the_list_of_variables() {
        check_variables(&Cli::command());
    }

    fn check_variables(command: &clap::Command) {
        for variable in command.get_arguments().filter_map(clap::Arg::get_env) {
            assert!(
                VARIABLES.iter().any(|known| variable == *known),
                "{}",
                variable.display()
            );
        }
        command.get_subcommands().for_each(check_variables);
    }

    #[test]
    fn a_summary_has_one_line_per_option() {
        check_summary(with_help(Cli::command(), true));
    }

    fn check_summary(mut command: clap::Command) {
        command.build();
        let name = command.get_name().to_owned();
        let summary = command.render_help().to_string();
        let options = summary
            .lines()
            .skip_while(|line| !line.ends_with("ptions:"))
            .skip(1);
        let options = options
            .take_while(|line| !line.starts_with("Examples") && !line.starts_with("Exit codes"));
        for line in options.filter(|line| !line.is_empty() && !line.ends_with(':')) {
            let option = line.trim_start();
            assert!(
                option.starts_with('-') && option.contains("  "),
                "{name}: no line of one option: {line}"
            );
        }
        command.get_subcommands().cloned().for_each(check_summary);
    }
}
