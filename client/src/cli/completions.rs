//! `hlorank completions`: prints a script for command completion in a shell.

use std::io::{self, Write as _};

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::error::CommandError;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell that runs the script
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, mut command: Command) -> Result<(), CommandError> {
        let mut script = Vec::new();
        generate(self.shell, &mut command, "hlorank", &mut script);
        Ok(io::stdout().write_all(&script)?)
    }
}
