//! `hlorank completions`: prints a script for command completion in a shell.

use clap::{Args, Command};
use clap_complete::Shell;
use hlorank_arguments::print_completions;

use super::error::CommandError;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell that runs the script
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, command: Command) -> Result<(), CommandError> {
        Ok(print_completions(self.shell, command)?)
    }
}
