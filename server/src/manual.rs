//! What `hlorank-server` says about its own arguments: manual pages, and completions for shells.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process,
};

use clap::{Command, FromArgMatches as _, Subcommand};
use clap_complete::Shell;
use hlorank_arguments::{print_completions, write_manual};

// Commands that do not start a server. A documentation comment would become the description of the program.
#[derive(Debug, Subcommand)]
enum ManualCommand {
    /// Print a script for command completion in a shell
    Completions {
        /// Shell that runs the script
        shell: Shell,
    },
    /// Write the manual pages
    Man {
        /// Folder of the pages, such as ~/.local/share/man/man1; it is made if it is missing
        folder: PathBuf,
    },
}

/// Adds the commands to the program.
pub(crate) fn with_manual(command: Command) -> Command {
    ManualCommand::augment_subcommands(command)
}

/// Runs one of the commands, and ends the process, if the arguments have one.
pub(crate) fn run_if_asked(command: Command, matches: &clap::ArgMatches) {
    let Ok(asked) = ManualCommand::from_arg_matches(matches) else {
        return;
    };
    let code = asked.run(command).map_or_else(
        |error| {
            // Unlike `eprintln!`, this does not panic if standard error is closed.
            let _ = writeln!(io::stderr(), "hlorank-server: {error}");
            1
        },
        |()| 0,
    );
    process::exit(code)
}

impl ManualCommand {
    fn run(self, command: Command) -> io::Result<()> {
        match self {
            Self::Completions { shell } => print_completions(shell, command),
            Self::Man { folder } => write_manual(&folder, command)
                .map_err(|error| io::Error::other(format!("{}: {error}", folder.display()))),
        }
    }
}
