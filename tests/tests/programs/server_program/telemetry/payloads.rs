//! The log contains nothing that clients send except the ids of calls, and what the audit log says of changes.

use hlorank_proto::v1::PinRequest;
use hlorank_tests::prelude::*;
use tonic::client::Grpc;
use tonic_prost::ProstCodec;

use super::calls::{KERNEL, is_access, putting, ranking, start, streamed};

/// Word that must not appear in the log.
const SECRET: &str = "projekt_aurora";

fn of_model(name: &str, label: &str) -> RankConfigsRequest {
    let model = ModelSelector {
        name: name.to_owned(),
        label: label.to_owned(),
        ..ModelSelector::default()
    };
    RankConfigsRequest {
        model: Some(model),
        ..ranking(KERNEL, 3)
    }
}

fn module_of(bytes: Vec<u8>) -> PutGraphRequest {
    let mut request = putting("");
    request.graph = request.graph.map(|graph| Graph {
        source: Some(Source::HloModule(bytes.into())),
        ..graph
    });
    request
}

fn module_named_so() -> Vec<u8> {
    let named = HloInstructionProto {
        name: SECRET.to_owned(),
        ..operation("negate", 2, &[1])
    };
    single(vec![operation("parameter", 1, &[]), named])
}

/// Sends a request of one method to another method.
async fn mistaken(channel: Channel) -> Code {
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    let message = GetModelRequest {
        name: SECRET.to_owned(),
        version: 1,
    };
    let codec: ProstCodec<GetModelRequest, GetModelRequest> = ProstCodec::default();
    let path = "/hlorank.v1.CostModelService/RankConfigs".parse().unwrap();
    client
        .unary(Request::new(message), path, codec)
        .await
        .unwrap_err()
        .code()
}

#[tokio::test]
async fn nothing_that_clients_send_is_logged() {
    let server = start(&[
        "--admin-listen=127.0.0.1:0",
        "--log=info,hlorank_server=trace,hlorank_graph=trace,hlorank_proto=trace",
    ]);
    let (mut cost_model, mut models) = (server.cost_model().await, server.models().await);
    let secret = KERNEL
        .replace("result", SECRET)
        .replace("kernel", SECRET)
        .replace("entry", SECRET);
    let mut calls = 0;

    // Calls that succeed.
    cost_model.put_graph(putting(&secret)).await.unwrap();
    cost_model.rank_configs(ranking(&secret, 3)).await.unwrap();
    let unknown_opcode = secret.replace("negate", &format!("{SECRET}-opcode"));
    let put = cost_model
        .put_graph(putting(&unknown_opcode))
        .await
        .unwrap()
        .into_inner();
    assert!(put.warnings[0].message.contains(SECRET), "{put:?}");
    cost_model
        .put_graph(module_of(module_named_so()))
        .await
        .unwrap();
    let messages = tokio_stream::iter(streamed(&secret, &[2]));
    let mut answers = cost_model
        .rank_configs_stream(messages)
        .await
        .unwrap()
        .into_inner();
    while answers.message().await.unwrap().is_some() {}
    calls += 5;

    // Calls that fail because of their graph, with messages that quote it.
    for broken in [
        format!("{SECRET} HloModule"),
        secret.replace("(%input)", &format!("(%{SECRET}_operand)")),
        secret.replace("f32[16,8] negate", &format!("f32[{SECRET}] negate")),
        secret.replace("%input", &format!("%{SECRET}")),
        secret.replace(
            "negate(%input)",
            &format!("call(%input), to_apply=%{SECRET}_callee"),
        ),
    ] {
        let refused = cost_model
            .rank_configs(ranking(&broken, 3))
            .await
            .expect_err(&broken);
        assert_eq!(refused.code(), Code::InvalidArgument, "{broken}: {refused}");
        assert!(refused.message().contains(SECRET), "{refused}");
        let messages = tokio_stream::iter(streamed(&broken, &[]));
        let mut answers = cost_model
            .rank_configs_stream(messages)
            .await
            .unwrap()
            .into_inner();
        answers.message().await.unwrap_err();
        calls += 2;
    }
    cost_model
        .put_graph(module_of(SECRET.into()))
        .await
        .unwrap_err();

    // Calls that fail because of other fields.
    let refused = cost_model
        .rank_configs(of_model(SECRET, ""))
        .await
        .unwrap_err();
    assert!(refused.message().contains(SECRET), "{refused}");
    cost_model
        .rank_configs(of_model("", SECRET))
        .await
        .unwrap_err();
    let unknown = GetModelRequest {
        name: SECRET.to_owned(),
        version: 0,
    };
    models.get_model(unknown).await.unwrap_err();
    assert_eq!(
        mistaken(server.channel().await).await,
        Code::InvalidArgument
    );
    let serving = server
        .lines(1, |line| line["fields"]["message"] == "serving")
        .await
        .remove(0);
    let admin = Channel::from_shared(format!(
        "http://{}",
        serving["fields"]["admin"].as_str().unwrap()
    ))
    .unwrap();
    let mut admin = ModelAdminServiceClient::new(admin.connect().await.unwrap());
    let refused = admin
        .pin(PinRequest {
            name: SECRET.to_owned(),
            version: 1,
        })
        .await
        .unwrap_err();
    assert!(refused.message().contains(SECRET), "{refused}");
    calls += 6;

    let lines = server.lines(calls, is_access).await;
    assert_eq!(lines.len(), calls);
    let stopped = server.stop().await;
    let mut lines = stopped.lines();
    lines.retain(|line| line["target"] != "audit");
    let log = format!("{lines:?}");
    assert!(!log.contains(SECRET), "{log}");
}
