//! `hlorank man`: writes manual pages.

use std::path::PathBuf;

use clap::{Args, Command};
use hlorank_arguments::write_manual;

use super::error::CommandError;

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder of the pages, such as ~/.local/share/man/man1; it is made if it is missing
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, command: Command) -> Result<(), CommandError> {
        write_manual(&self.folder, command).map_err(|source| CommandError::WrittenFile {
            path: self.folder.display().to_string(),
            source,
        })
    }
}
