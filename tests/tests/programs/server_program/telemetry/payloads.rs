//! The log contains nothing that clients send except the ids of calls, and what the audit log says of changes.

use hlorank_proto::v1::PinRequest;
use hlorank_tests::prelude::*;
use tonic::client::Grpc;
use tonic_prost::ProstCodec;

use super::calls::{KERNEL, putting, ranking, start, stream};

/// Word that must not appear in the log.
const SECRET: &str = "projekt_aurora";

fn with_label(label: &str) -> RankConfigsRequest {
    let model = ModelSelector {
        label: label.to_owned(),
        ..ModelSelector::default()
    };
    RankConfigsRequest {
        model: Some(model),
        ..ranking(KERNEL, 3)
    }
}

fn module_of(bytes: impl Into<Bytes>) -> PutGraphRequest {
    PutGraphRequest {
        graph: Some(kernel_graph(graph_of_module(bytes))),
    }
}

fn module_named_so() -> Vec<u8> {
    let named = HloInstructionProto {
        name: SECRET.to_owned(),
        ..operation("negate", 2, &[1])
    };
    single(vec![operation("parameter", 1, &[]), named])
}

/// Sends a request of one method to another method.
async fn mistaken(channel: Channel, message: GetModelRequest) -> Status {
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    let codec: ProstCodec<GetModelRequest, GetModelRequest> = ProstCodec::default();
    let path = "/hlorank.v1.CostModelService/RankConfigs".parse().unwrap();
    client
        .unary(Request::new(message), path, codec)
        .await
        .unwrap_err()
}

#[tokio::test]
async fn nothing_that_clients_send_is_logged() {
    let server = start(&[
        "--admin-listen=127.0.0.1:0",
        "--log=info,hlorank_server=trace,hlorank_graph=trace,hlorank_proto=trace",
    ]);
    let mut cost_model = server.cost_model().await;
    let mut secret = KERNEL.to_owned();
    for name in ["result", "kernel", "entry"] {
        secret = secret.replace(name, SECRET);
    }

    // Calls that succeed.
    cost_model.put_graph(putting(&secret)).await.unwrap();
    cost_model.rank_configs(ranking(&secret, 3)).await.unwrap();
    let unknown_opcode = secret.replace("negate", &format!("{SECRET}-opcode"));
    let put = cost_model
        .put_graph(putting(&unknown_opcode))
        .await
        .unwrap()
        .into_inner();
    says!(put.warnings[0].message, SECRET);
    cost_model
        .put_graph(module_of(module_named_so()))
        .await
        .unwrap();
    stream(&mut cost_model, &secret, &[2]).await.unwrap();
    let mut calls = 5;

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
        says!(refused.message(), SECRET);
        stream(&mut cost_model, &broken, &[]).await.unwrap_err();
        calls += 2;
    }
    cost_model.put_graph(module_of(SECRET)).await.unwrap_err();

    // Calls that fail because of other fields.
    let unknown = ranking(KERNEL, 3).with_model(SECRET);
    let refused = cost_model.rank_configs(unknown).await.unwrap_err();
    says!(refused.message(), SECRET);
    cost_model
        .rank_configs(with_label(SECRET))
        .await
        .unwrap_err();
    let unknown = GetModelRequest {
        name: SECRET.to_owned(),
        version: 1,
    };
    let mut models = server.models().await;
    models.get_model(unknown.clone()).await.unwrap_err();
    let refused = mistaken(server.channel().await, unknown).await;
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let pin = PinRequest {
        name: SECRET.to_owned(),
        version: 1,
    };
    let mut admin = server.admin_calls().await;
    let refused = admin.pin(pin).await.unwrap_err();
    says!(refused.message(), SECRET);
    calls += 6;

    let lines = server.lines(calls, is_access).await;
    assert_eq!(lines.len(), calls);
    let mut lines = server.stop().await.lines();
    lines.retain(|line| line["target"] != "audit");
    let log = format!("{lines:?}");
    assert!(!log.contains(SECRET), "{log}");
}
