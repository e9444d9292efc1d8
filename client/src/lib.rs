//! Client of hlorank: sends graphs and configurations, and takes rankings back.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{path::Path, time::Duration};
//!
//! use hlorank_client::{Client, Connection, GraphHandle, RankRequest};
//! use hlorank_graph::{GraphFile, Limits, Task};
//!
//! let client = Client::connect("http://127.0.0.1:7070", Connection::default()).await?;
//! let file = GraphFile::read(Path::new("layouts.pb"), Task::Layout, &Limits::default())?;
//! for measured in &file.graphs {
//!     let Some(measurements) = &measured.measurements else { continue };
//!     let graph = GraphHandle::of(measured);
//!     let request = RankRequest::new(&graph, &measurements.configurations).top(10).timeout(Duration::from_secs(5));
//!     println!("measure these first: {:?}", client.rank(&request).await?.best);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! * [`Client::connect`] is for one server, [`Client::connect_replicas`] for several, of which each has its graphs.
//! * [`Client::rank`] ranks candidates that are known at once; [`Client::rank_stream`] those that come in batches.
//! * A [`RankCall`] is a request to be made again and again; a [`trace`] is a file of them.
//! * A [`GraphHandle`] is sent once, then by hash, and again where a server has lost the graph.
//! * Calls have a deadline ([`Connection::timeout`]), and are tried again where that is safe ([`Connection::retries`]).
//!   `client/README.md` tells which errors are final.
//! * An address at `https://` is called over TLS: [`Connection::authorities`], [`Connection::identity`] and
//!   [`Connection::token`] say who is trusted, and who calls.

mod admin;
mod attempt;
mod batches;
mod calls;
mod client;
mod connection;
mod credentials;
mod deadline;
mod error;
mod graph;
mod model;
pub mod quality;
mod ranking;
mod replicas;
mod request;
mod retry;
mod stream;
pub mod trace;
#[cfg(test)]
mod vectors;

pub use admin::AdminClient;
pub use client::{CachedGraph, Client};
pub use connection::Connection;
pub use credentials::{Identity, ParseTokenError, Token};
pub use error::{ClientError, Refusal};
pub use graph::{GraphHandle, ROUTE_HEADER};
pub use hlorank_proto::v1;
pub use model::{ModelReference, ModelVersion, ParseModelReferenceError};
pub use ranking::{Ranked, Ranking, Timings};
pub use request::{RankCall, RankRequest};
pub use stream::{BatchScores, RankStream, StreamRequest};
