//! Input of a client that no computation fits.

use hlorank_tests::attackers::{Attacker, RANK, huge_graphs, messages, messages::framed};
use hlorank_tests::prelude::*;

use crate::attacked::{Attacked, until_calls};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_numbers_are_the_fault_of_the_client() {
    let attacked = Attacked::start(&[]).await;
    let target = attacked
        .endpoint()
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    let mut client = Attacker::alone(target).client(1 << 16).await.unwrap();
    for request in messages::huge_graphs() {
        let status = client
            .call(RANK, "identity", framed(&request, false))
            .await
            .unwrap();
        println!("{:?}: {}", status.code(), status.message());
        assert!(
            matches!(status.code(), Code::Ok | Code::InvalidArgument),
            "{status}"
        );
    }
    drop(client);
    let attack = || huge_graphs(&attacked.aim(), 2, Duration::from_millis(5));
    attacked
        .endures("huge graphs", attack, async |attack| {
            until_calls(attack, 200).await;
        })
        .await;
    let errors = attacked.server.stop().await.lines();
    let errors: Vec<_> = errors
        .iter()
        .filter(|line| line["level"] == "ERROR")
        .collect();
    assert!(
        errors.is_empty(),
        "{} errors, such as {}",
        errors.len(),
        errors[0]
    );
}
