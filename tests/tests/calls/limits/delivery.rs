//! Limits of the time that messages take, and of their form.

use hlorank_proto::v1::Adapt;
use hlorank_tests::{
    attackers::{
        RANK, RANK_STREAM,
        messages::{framed, gzip},
    },
    prelude::*,
};

use crate::limits::{
    open_call::{OpenCall, status_of},
    request::{kernel, tiles},
};

const LIST: &str = "/hlorank.v1.ModelService/ListModels";
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// The beginning of a message of 100 bytes.
const BEGUN: [u8; 6] = [0, 0, 0, 0, 100, 10];

fn check(status: &Status, expected: &str, word: &str) {
    assert_eq!(reason(status), expected, "{status}");
    says!(status.message(), word);
}

#[tokio::test(flavor = "multi_thread")]
async fn seconds_of_a_message() {
    let server = TestServer::start_with(&["--max-message-seconds=0.5"]).await;
    let channel = server.channel().await;
    let started = Instant::now();
    let mut calls = Vec::new();
    for path in [RANK, RANK_STREAM, LIST, CHECK] {
        // One call sends nothing, and one a part of its message.
        calls.push(OpenCall::open(&channel, path));
        let slow = OpenCall::open(&channel, path);
        slow.send(BEGUN.to_vec());
        calls.push(slow);
    }
    let start = framed(&stream_start(kernel()).encode_to_vec(), false);
    let later = OpenCall::open(&channel, RANK_STREAM);
    later.send(start.clone());
    later.send(BEGUN.to_vec());
    let together = OpenCall::open(&channel, RANK_STREAM);
    together.send([&start[..], &BEGUN].concat());
    calls.extend([later, together]);
    for call in calls {
        let late = call.ended().await;
        check(&late, "MESSAGE_LATE", "--max-message-seconds");
    }
    assert!(started.elapsed() >= Duration::from_millis(500));
    server.until_idle().await;

    // A stream may wait for longer between messages.
    let patient = OpenCall::open(&channel, RANK_STREAM);
    patient.send(start);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(patient.is_open());
}

#[tokio::test]
async fn seconds_without_a_message_of_a_stream() {
    let server = TestServer::start_with(&["--max-stream-idle-seconds=0.2"]).await;
    let start = stream_start(kernel()).encode_to_vec();
    let ended = status_of(&server.channel().await, RANK_STREAM, &start).await;
    check(&ended, "STREAM_IDLE", "--max-stream-idle-seconds");
    server.until_idle().await;
}

/// Makes a call with bytes of this encoding, and returns its status.
async fn sent(channel: &Channel, encoding: &str, bytes: impl Into<Bytes>) -> Status {
    let call = OpenCall::open_with(channel, RANK, encoding);
    call.send(bytes);
    call.ended().await
}

#[tokio::test]
async fn fields_of_a_message() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    // An unknown field, which decoders skip.
    let field = [0xfa, 0x3f, 0x00];
    let mut message = rank_request(kernel(), tiles(3)).encode_to_vec();
    message.extend(field.repeat(59_900));
    let status = status_of(&channel, RANK, &message).await;
    assert_eq!(status.code(), Code::Ok, "{status}");
    message.extend(field.repeat(100));
    let plain = status_of(&channel, RANK, &message).await;
    check(&plain, "REQUEST_MALFORMED", "60000 fields");
    let compressed = framed(&gzip(&message[..]), true);
    let compressed = sent(&channel, "gzip", compressed).await;
    check(&compressed, "REQUEST_MALFORMED", "60000 fields");
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
    let measured = [adapt.encode_to_vec(), two_forms.clone()].concat();
    for (named, request, sent) in [
        ("batch", without_batch, two_forms),
        ("adapt.batch", request, field(0x3a, &measured)),
    ] {
        let message = [request.encode_to_vec(), sent].concat();
        let status = status_of(&channel, RANK, &message).await;
        check(&status, "REQUEST_MALFORMED", named);
        let found = status.get_details_bad_request().unwrap();
        assert_eq!(found.field_violations[0].field, named, "{status}");
    }
}

#[tokio::test]
async fn messages_that_are_not_frames() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    for (encoding, bytes, word) in [
        ("gzip", Bytes::from_static(&[2, 0, 0, 0, 0]), "flag is 2"),
        ("identity", framed(&[], true), "grpc-encoding"),
        ("gzip", framed(b"not gzip", true), "decompressed"),
    ] {
        let status = sent(&channel, encoding, bytes).await;
        check(&status, "REQUEST_MALFORMED", word);
    }
    let unsupported = sent(&channel, "deflate", framed(&[], true)).await;
    check(&unsupported, "COMPRESSION_UNSUPPORTED", "deflate");
    let supported = unsupported.metadata().get("grpc-accept-encoding");
    assert!(supported.is_some(), "{unsupported}");
    let listed = server
        .models()
        .await
        .list_models(ListModelsRequest {})
        .await;
    listed.expect("the connection goes on");
}

#[tokio::test]
async fn bytes_that_are_no_message() {
    let server = TestServer::start().await;
    // Field 1 of a request is a message, but here it is a number.
    let wrong = PackedTileConfigs {
        config_count: 7,
        ..Default::default()
    };
    for path in [RANK, RANK_STREAM] {
        let status = status_of(&server.channel().await, path, &wrong.encode_to_vec()).await;
        check(&status, "REQUEST_MALFORMED", "not a readable message");
        assert!(status.get_details_bad_request().is_none(), "{status}");
    }
}
