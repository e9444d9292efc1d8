//! Answers are right: equal to recorded scores, from one call to the next, and whatever is shared. Models of whole graphs load
//! and rank beside the others.

mod golden_cases;
mod one_answer;
mod padding;
mod ranking;
mod sharing;
mod whole_batches;
mod whole_graph_artifacts;
mod whole_graph_models;

use hlorank_tests::prelude::*;

/// Returns the first golden case of a whole-graph model.
fn golden_case(model: &str) -> GoldenCase {
    golden_cases(&fixture("registry").join(model).join("1")).remove(0)
}

/// Ranks these configurations of a golden case.
async fn rank_chosen(client: &Client, model: &str, case: &GoldenCase, chosen: &[usize]) -> Ranking {
    let graph = GraphHandle::features(&case.graph);
    let ranked = rank_by(client, model, &graph, &case.configurations.select(chosen)).await;
    ranked.unwrap_or_else(|error| panic!("{model}: {error}"))
}
