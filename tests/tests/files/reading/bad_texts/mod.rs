//! Invalid and hostile HLO text is rejected with an error that says what is wrong and where, and nothing panics.

mod limits;
mod mutated;

use hlorank_tests::prelude::*;

/// Returns a text whose entry computation has these lines, from line 4 on.
fn text(lines: &[&str]) -> String {
    format!("HloModule m\n\nENTRY %e {{\n  {}\n}}\n", lines.join("\n  "))
}

const PARAMETER: &str = "%p = f32[2,3] parameter(0)";

fn refused(text: &str) -> GraphError {
    match HloModule::read_text(text, &Limits::default()) {
        Err(error) => error,
        Ok(module) => panic!("a module of {} nodes was read", module.len()),
    }
}

fn read_within(text: &str, limits: &Limits) -> Result<usize, GraphError> {
    HloModule::read_text(text, limits).map(|module| module.len())
}
