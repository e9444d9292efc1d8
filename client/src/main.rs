//! `hlorank`: the command line of hlorank.

mod cli;

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    cli::run().await
}
