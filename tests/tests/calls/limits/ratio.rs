//! The limit of the ratio between decompressed and compressed bytes is far from what batches have.

use std::io::Write as _;

use hlorank_tests::prelude::*;

/// The limit.
const MAX_RATIO: usize = 500;

/// The limit applies to messages of more bytes.
const MIN_BYTES: usize = 4 << 20;

fn gzip(message: &[u8]) -> usize {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(message).unwrap();
    encoder.finish().unwrap().len()
}

/// Returns a message of more than the minimum, with configurations drawn from those that were measured.
fn message_of(configs: impl Fn(usize) -> Configs) -> Vec<u8> {
    let message = |count| {
        let batch = Some(config_batch(configs(count)));
        RankConfigsRequest {
            batch,
            ..RankConfigsRequest::default()
        }
        .encode_to_vec()
    };
    message(1000 * MIN_BYTES / message(1000).len() + 1000)
}

#[test]
fn batches_are_far_from_the_limit_of_compression() {
    let mut most = 0;
    for graph in measured_graphs() {
        let measured = configurations(&graph);
        let configurable = &graph.graph.configurable();
        let count = forms(measured, configurable).len();
        for form in 0..count {
            let drawn = |count: usize| {
                let mut random = fastrand::Rng::with_seed(1);
                std::iter::repeat_with(move || random.usize(..measured.len())).take(count)
            };
            let message = message_of(|count| {
                forms(&part(measured, drawn(count)), configurable).swap_remove(form)
            });
            let ratio = message.len() / gzip(&message);
            println!(
                "{}, form {form}, {} bytes: {ratio}",
                graph.name,
                message.len()
            );
            most = most.max(ratio);
        }
    }
    assert!(2 * most < MAX_RATIO, "{most}");
}
