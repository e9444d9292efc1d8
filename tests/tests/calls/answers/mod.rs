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
