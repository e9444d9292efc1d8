//! Compressed messages.

use hlorank_tests::prelude::*;
use tonic::codec::CompressionEncoding::Gzip;

fn request() -> RankConfigsRequest {
    let configs = (1..=500).map(|bound| TileConfig {
        output_bounds: vec![bound],
        ..Default::default()
    });
    let configs = Configs::TileConfigs(TileConfigs {
        configs: configs.collect(),
    });
    rank_request(graph_of_module(two_dots()), configs).with_scores()
}

#[tokio::test]
async fn compressed_requests_have_compressed_answers() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    let plain = CostModelServiceClient::new(channel.clone())
        .rank_configs(request())
        .await
        .unwrap();
    let client = CostModelServiceClient::new(channel).accept_compressed(Gzip);
    let sent = client
        .clone()
        .send_compressed(Gzip)
        .rank_configs(request())
        .await
        .unwrap();
    assert_eq!(sent.metadata().get("grpc-encoding").unwrap(), "gzip");
    assert_eq!(sent.get_ref().scores, plain.get_ref().scores);
    let unsent = { client }.rank_configs(request()).await.unwrap();
    assert!(
        unsent.metadata().get("grpc-encoding").is_none(),
        "the request was not compressed"
    );
}
