//! Limits of the time that messages take, and of their form.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use hlorank_proto::v1::Adapt;
use hlorank_tests::prelude::*;

use crate::limits::{
    open_call::{OpenCall, framed},
    request::{kernel, tiles},
};

const RANK: &str = "/hlorank.v1.CostModelService/RankConfigs";
const STREAM: &str = "/hlorank.v1.CostModelService/RankConfigsStream";
const LIST: &str = "/hlorank.v1.ModelService/ListModels";
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// The beginning of a message of 100 bytes.
const BEGUN: [u8; 6] = [0, 0, 0, 0, 100, 10];

fn check(status: &Status, code: Code, reason: &str, word: &str) {
    let info = status
        .get_details_error_info()
        .unwrap_or_else(|| panic!("{status}"));
    assert_eq!(
        (status.code(), info.reason.as_str()),
        (code, reason),
        "{status}"
    );
    assert!(status.message().contains(word), "{status}");
}

fn check_late(status: &Status) {
    check(
        status,
        Code::DeadlineExceeded,
        "MESSAGE_LATE",
        "--max-message-seconds",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn seconds_of_a_message() {
    let server = TestServer::start_with(&["--max-message-seconds=0.5"]).await;
    let channel = server.channel().await;
    let started = Instant::now();
    let calls: Vec<_> = [RANK, STREAM, LIST, CHECK]
        .into_iter()
        .flat_map(|path| {
            let [silent, slow] = [(); 2].map(|()| OpenCall::open(&channel, path));
            slow.send(BEGUN.to_vec());
            [silent, slow]
        })
        .collect();
    let later = OpenCall::open(&channel, STREAM);
    later.send_message(&stream_start(kernel()));
    later.send(BEGUN.to_vec());
    let together = OpenCall::open(&channel, STREAM);
    let start = prost::Message::encode_to_vec(&stream_start(kernel()));
    together.send([framed(0, &start), BEGUN.to_vec()].concat());
    for call in calls {
        check_late(&call.ended().await);
    }
    check_late(&later.ended().await);
    check_late(&together.ended().await);
    println!("all late calls ended after {:?}", started.elapsed());
    assert!(started.elapsed() >= Duration::from_millis(500));
    server.until_idle().await;

    // A stream may wait for longer between messages.
    let patient = OpenCall::open(&channel, STREAM);
    patient.send_message(&stream_start(kernel()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(patient.is_open());
}

#[tokio::test]
async fn seconds_without_a_message_of_a_stream() {
    let server = TestServer::start_with(&["--max-stream-idle-seconds=0.2"]).await;
    let stream = OpenCall::open(&server.channel().await, STREAM);
    stream.send_message(&stream_start(kernel()));
    let ended = stream.ended().await;
    check(
        &ended,
        Code::DeadlineExceeded,
        "STREAM_IDLE",
        "--max-stream-idle-seconds",
    );
    server.until_idle().await;
}

async fn refused(channel: &Channel, encoding: &str, sent: Vec<u8>) -> Status {
    let call = OpenCall::open_with(channel, RANK, encoding);
    call.send(sent);
    call.ended().await
}

#[tokio::test]
async fn fields_of_a_message() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    // An unknown field, which decoders skip.
    let field = [0xfa, 0x3f, 0x00];
    let mut message = prost::Message::encode_to_vec(&rank_request(kernel(), tiles(3)));
    message.extend(field.repeat(59_900));
    let status = refused(&channel, "identity", framed(0, &message)).await;
    assert_eq!(status.code(), Code::Ok, "{status}");
    message.extend(field.repeat(100));
    let malformed =
        |status: &Status, word| check(status, Code::InvalidArgument, "REQUEST_MALFORMED", word);
    malformed(
        &refused(&channel, "identity", framed(0, &message)).await,
        "60000 fields",
    );
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&message).unwrap();
    let compressed = encoder.finish().unwrap();
    malformed(
        &refused(&channel, "gzip", framed(1, &compressed)).await,
        "60000 fields",
    );
}

#[tokio::test]
async fn a_batch_of_two_forms_is_named_by_its_field() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    let field = |key: u8, value: &[u8]| [&[key, value.len().try_into().unwrap()], value].concat();
    let two_forms = field(0x12, &[0x22, 0, 0x2a, 0]); // `batch`, with both kinds of tiles
    let request = rank_request(kernel(), tiles(3));
    let without_batch = RankConfigsRequest {
        batch: None,
        ..request.clone()
    };
    let adapt = Adapt {
        target: "a board".to_owned(),
        seconds: vec![1.0],
        ..Adapt::default()
    };
    let measured = [prost::Message::encode_to_vec(&adapt), two_forms.clone()].concat();
    for (named, request, sent) in [
        ("batch", without_batch, two_forms),
        ("adapt.batch", request, field(0x3a, &measured)),
    ] {
        let message = [prost::Message::encode_to_vec(&request), sent].concat();
        let status = refused(&channel, "identity", framed(0, &message)).await;
        check(&status, Code::InvalidArgument, "REQUEST_MALFORMED", named);
        let found = status.get_details_bad_request().unwrap();
        assert_eq!(found.field_violations[0].field, named, "{status}");
    }
}

#[tokio::test]
async fn messages_that_are_not_frames() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    let malformed =
        |status: &Status, word| check(status, Code::InvalidArgument, "REQUEST_MALFORMED", word);
    malformed(
        &refused(&channel, "gzip", framed(2, &[])).await,
        "flag is 2",
    );
    malformed(
        &refused(&channel, "identity", framed(1, &[])).await,
        "grpc-encoding",
    );
    malformed(
        &refused(&channel, "gzip", framed(1, b"not gzip")).await,
        "decompressed",
    );
    let unsupported = refused(&channel, "deflate", framed(1, &[])).await;
    check(
        &unsupported,
        Code::Unimplemented,
        "COMPRESSION_UNSUPPORTED",
        "deflate",
    );
    assert!(
        unsupported.metadata().get("grpc-accept-encoding").is_some(),
        "{unsupported}"
    );
    server
        .models()
        .await
        .list_models(ListModelsRequest {})
        .await
        .expect("the connection goes on");
}
