//! What a program says of its own arguments: completions for shells, and manual pages.

use std::{
    fs::create_dir_all,
    io::{self, Write as _},
    path::Path,
};

use clap::Command;
use clap_complete::{Shell, generate};
use clap_mangen::generate_to;

/// Prints the script that completes the arguments of a program in a shell.
pub fn print_completions(shell: Shell, mut command: Command) -> io::Result<()> {
    let program = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(shell, &mut command, program, &mut script);
    io::stdout().write_all(&script)
}

/// Writes a manual page for a program and for each of its commands. The folder is made if it is missing.
pub fn write_manual(folder: &Path, command: Command) -> io::Result<()> {
    create_dir_all(folder)?;
    generate_to(command, folder)
}
