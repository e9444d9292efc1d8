//! Client of hlorank: sends graphs and configurations, and takes rankings back.
//!
//! ```no_run
//! # async fn example(measured: hlorank_graph::MeasuredGraph, configurations: hlorank_graph::Configurations)
//! # -> Result<(), hlorank_client::ClientError> {
//! use hlorank_client::{Client, Connection, GraphHandle, RankRequest};
//!
//! let client = Client::connect("http://127.0.0.1:7070", Connection::default()).await?;
//! let graph = GraphHandle::of(&measured);
//! let ranking = client.rank(&RankRequest::new(&graph, &configurations).top(10)).await?;
//! println!("measure these first: {:?}", ranking.best);
//! # Ok(())
//! # }
//! ```

mod admin;
mod attempt;
mod calls;
mod client;
mod connection;
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
#[cfg(test)]
mod vectors;

pub use admin::AdminClient;
pub use client::{CachedGraph, Client};
pub use connection::Connection;
pub use error::{ClientError, Refusal};
pub use graph::{GraphHandle, ROUTE_HEADER};
pub use hlorank_proto::v1;
pub use model::{ModelReference, ModelVersion, ParseModelReferenceError};
pub use ranking::{Ranked, Ranking, Timings};
pub use request::RankRequest;
pub use stream::{BatchScores, RankStream, StreamRequest};
