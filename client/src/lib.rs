//! Client of hlorank: sends graphs and configurations to a server, and receives rankings.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{path::Path, time::Duration};
//!
//! use hlorank_client::{Client, Connection, GraphFile, GraphHandle, Limits, RankRequest, Task};
//!
//! let client = Client::connect("http://127.0.0.1:7070", Connection::default()).await?;
//! let file = GraphFile::read(Path::new("layouts.pb"), Task::Layout, &Limits::default())?;
//! for measured in &file.graphs {
//!     let Some(measurements) = &measured.measurements else { continue };
//!     let graph = GraphHandle::from_measured(measured);
//!     let request = RankRequest::new(&graph, &measurements.configurations).top(10).timeout(Duration::from_secs(5));
//!     println!("measure these first: {:?}", client.rank(&request).await?.best);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! * [`Client::connect`] connects to one server, [`Client::connect_replicas`] to several that share the graphs,
//!   [`Client::connect_each`] and [`AdminClient::connect_each`] to each of several by itself.
//! * [`Client::rank`] ranks one batch of configurations, [`Client::rank_stream`] any number of batches.
//! * [`Client::suggest`] proposes what to measure next, given what was measured, and [`Client::report_measurements`] keeps
//!   that on the server for later calls.
//! * [`Client::decide`] returns the configuration that everybody uses, or decides it.
//! * A [`GraphHandle`] is sent once and by hash afterwards. It is sent again if a server has lost the graph.
//! * Calls have a deadline ([`Connection::timeout`]) and are retried if that is safe ([`Connection::retries`]).
//!   `client/README.md` lists the errors that are final.
//! * Calls to `https://` go over TLS: [`Connection::authorities`] are trusted, and [`Connection::identity`] and
//!   [`Connection::token`] identify the caller.

mod adapt;
mod address;
mod admin;
mod answer;
mod calls;
mod client;
mod connection;
mod credentials;
mod error;
mod failure;
mod graph;
mod measurements;
mod model;
mod ranking;
mod replicas;
mod request;
mod retry;
mod stream;
mod suggest;
#[cfg(test)]
mod tests;

pub use adapt::{Adapt, MeasuredOutcome};
pub use address::Address;
pub use admin::AdminClient;
pub use answer::InvalidAnswer;
pub use client::{CachedGraph, Client};
pub use connection::Connection;
pub use credentials::{Identity, ParseTokenError, TlsSettingsError, Token};
pub use error::{ClientError, ParseAddressError, Refusal};
pub use failure::ConnectionFailure;
pub use graph::{GraphHandle, ROUTE_HEADER};
pub use hlorank_graph::{
    ConfigurationError, Configurations, GraphFile, LayoutBatchBuilder, LayoutEntry, Limits, Task,
    TileBatch, TileConfiguration, quality,
};
pub use hlorank_proto::v1::{self, SuggestionReason, SuggestionSource};
pub use measurements::{ReportDetails, ReportOutcome};
pub use model::{ModelReference, ModelVersion, ParseModelReferenceError};
pub use ranking::{RankedConfig, Ranking, Timings};
pub use request::RankRequest;
pub use stream::{BatchScores, RankStream, StreamRequest};
pub use suggest::{SuggestRequest, Suggestion, Suggestions};

/// The snippets of the page, which are compiled with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Page;
