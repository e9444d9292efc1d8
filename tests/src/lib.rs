//! Whole-system tests of hlorank, and the helpers that they share. Each file or folder of `tests/` covers one
//! behaviour.
#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "what a helper needs, its test needs"
)]

mod answering;
mod artifacts;
pub mod attackers;
mod data;
#[path = "../../graph/tests/graphs/forms.rs"]
pub mod every_form;
mod feature_set;
mod figure;
mod load;
mod measured;
mod memory;
mod model;
pub mod module;
mod naive;
mod npz;
pub mod onnx;
mod postgres;
pub mod prelude;
mod process;
mod program;
mod programs;
mod prometheus;
mod reach;
mod refusal;
mod request;
mod scrape;
pub mod security;
mod server;
pub mod subject;
mod synthetic;
mod team;

pub use answering::{AnsweringServer, Answers, valid_ranking};
pub use artifacts::{Artifacts, golden_cases};
pub use data::{HLO_FIXTURES, fixture, modules, onnxruntime, repository, shared, skipped};
pub use every_form::forms;
pub use feature_set::{FeatureSetModel, Loops, ParameterSpace};
pub use figure::{Figure, Target, Times, chosen_parts};
pub use load::{Answer, Load, Question};
pub use measured::{
    adapt, configurations, measured_graph_of, measured_graphs, measured_graphs_of, outcomes, pairs,
    part, rank_measured, read_graphs, read_graphs_in, reasons, run_times, seconds_of, some_of,
};
pub use memory::{peak_bytes, reset_peak, resident_bytes, with_fragments};
pub use model::{
    SMALL_TILE_MODEL, TILE_MODEL, all_models, all_models_flag, load_model, load_version, models,
    rank_by, score_alone,
};
pub use naive::score_naively;
pub use npz::Arrays;
pub use postgres::Postgres;
pub use process::{ServerProcess, Stopped, is_access, refused_start, server_program, with_message};
pub use program::program;
pub use programs::{fusion_neighbours, program_graph, program_module, random_fusions};
pub use prometheus::{Prometheus, prometheus};
pub use reach::Reach;
pub use refusal::{assert_reason, bits, reason};
pub use request::{
    RankRequestBuilder, config_batch, deletion, graph_by_hash, graph_of, graph_of_module,
    graph_of_text, kernel_graph, model_named, packed_tiles, rank_request, repeated_tiles,
    stream_batch, stream_start, stream_start_with, with_headers,
};
pub use scrape::{Sample, Scrape, ScrapedFamily, http_answer, http_get};
pub use server::{TestServer, store_flag, storing_server, storing_server_at};
pub use synthetic::{
    MANY_TILES, block_graph, chain_kernel, grid_configurations, grid_tiles, kernel_of, layouts,
    slow_kernel, tiles, varying,
};
pub use team::Team;
