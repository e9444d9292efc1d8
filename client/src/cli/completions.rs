//! `hlorank completions`: what a shell needs to complete commands.

use std::io::{self, Write as _};

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::{Cli, error::CommandError};

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), CommandError> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "hlorank", &mut script);
        Ok(io::stdout().write_all(&script)?)
    }
}
