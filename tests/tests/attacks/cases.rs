//! Calls that a server has to survive.

use hlorank_tests::attackers::{
    Broken, Client,
    messages::{framed, gzip},
};
use hlorank_tests::prelude::*;

/// Messages of one call, which differ by a number.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) path: String,
    messages: Box<dyn Fn(u32) -> Vec<Vec<u8>> + Send + Sync>,
}

impl Case {
    /// Messages of a method by its path.
    pub(crate) fn of_path(
        name: String,
        path: String,
        messages: impl Fn(u32) -> Vec<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            path,
            messages: Box::new(messages),
        }
    }

    /// Messages of a method of the cost model.
    pub(crate) fn new(
        name: &str,
        method: &str,
        messages: impl Fn(u32) -> Vec<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let path = format!("/hlorank.v1.CostModelService/{method}");
        Self::of_path(format!("{method} of {name}"), path, messages)
    }

    /// Makes the call on a connection of its own, in the encoding that takes fewer bytes if the server accepts its ratio.
    pub(crate) async fn call(&self, mut client: Client, number: u32) -> Result<Status, Broken> {
        let messages = (self.messages)(number);
        let (encoding, body) = encoded(&messages);
        client.call(&self.path, encoding, body).await
    }
}

/// The most that a compressed message may be a multiple of its compressed size, and from which size on.
const RATIO: usize = 500;
const RATIO_FROM: usize = 4 << 20;

fn encoded(messages: &[Vec<u8>]) -> (&'static str, Bytes) {
    let compressed = messages.iter().map(|message| gzip(message.as_slice()));
    let compressed: Vec<Vec<u8>> = compressed.collect();
    let is_accepted = |(message, compressed): (&Vec<u8>, &Vec<u8>)| {
        message.len() <= RATIO_FROM || message.len() <= RATIO * compressed.len()
    };
    let all_accepted = messages.iter().zip(&compressed).all(is_accepted);
    let (encoding, sent) = if all_accepted {
        ("gzip", &compressed[..])
    } else {
        ("identity", messages)
    };
    let frames: Vec<Bytes> = sent
        .iter()
        .map(|message| framed(message, all_accepted))
        .collect();
    (encoding, frames.concat().into())
}

/// Asserts that a call was answered, or refused with its reason, by a server that is not at fault.
pub(crate) fn assert_reason(name: &str, answer: &Result<Status, Broken>) {
    let status = answer
        .as_ref()
        .unwrap_or_else(|broken| panic!("{name}: no answer: {broken}"));
    if status.code() == Code::Ok {
        return;
    }
    let reason = status.get_details_error_info().map(|info| info.reason);
    let at_fault = [Code::Internal, Code::Unknown, Code::DataLoss];
    assert!(
        reason.is_some() && !at_fault.contains(&status.code()),
        "{name}: {status}"
    );
}
