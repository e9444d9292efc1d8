//! `/metrics` has every series from the start and counts exactly; `/healthz` and `/readyz` report the state.

mod caches;
mod calls;
mod listener;
mod table;
mod work;

use hlorank_tests::prelude::*;

fn kernel() -> GraphHandle {
    GraphHandle::features(&kernel_of(3))
}

async fn rank(client: &Client, graph: &GraphHandle, batch: &Configurations) -> Ranking {
    client.rank(&RankRequest::new(graph, batch)).await.unwrap()
}
