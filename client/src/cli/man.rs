//! `hlorank man`: writes manual pages.

use std::{fs::create_dir_all, path::PathBuf};

use clap::{Args, Command};
use clap_mangen::generate_to;

use super::error::CommandError;

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder of the pages, such as ~/.local/share/man/man1; it is made if it is missing
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, command: Command) -> Result<(), CommandError> {
        create_dir_all(&self.folder)
            .and_then(|()| generate_to(command, &self.folder))
            .map_err(|source| CommandError::OutputFile { path: self.folder.display().to_string(), source })
    }
}
