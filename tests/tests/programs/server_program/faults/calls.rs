//! A server process, and calls of it.

use std::fmt::Write as _;

use hlorank_proto::v1::rank_configs_stream_response::Part as AnswerPart;
use hlorank_tests::prelude::*;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

pub(crate) const MODEL: &str = TILE_MODEL;

/// Maximum wait for background work on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Request to rank a number of tiles of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) nodes: usize,
    pub(crate) tiles: i64,
}

/// Starts a server that caches no embeddings.
pub(crate) fn start(flags: &[&str]) -> ServerProcess {
    ServerProcess::start(&[&["--embedding-cache-bytes=0"], flags].concat())
}

impl Question {
    /// Returns a question of a few nodes and tiles.
    pub(crate) const fn new(nodes: usize, tiles: i64) -> Self {
        Self { nodes, tiles }
    }

    fn graph(self) -> Graph {
        let mut text =
            "HloModule kernel\n\nENTRY %entry {\n  %n0 = f32[16,8] parameter(0)\n".to_owned();
        for node in 1..self.nodes {
            let root = if node + 1 == self.nodes { "ROOT " } else { "" };
            writeln!(text, "  {root}%n{node} = f32[16,8] negate(%n{})", node - 1).unwrap();
        }
        text.push_str("}\n");
        kernel_graph(graph_of_text(text))
    }

    fn tiles(self) -> Configs {
        packed_tiles(&grid_tiles(self.tiles))
    }

    pub(crate) fn request(self) -> RankConfigsRequest {
        rank_request(self.graph(), self.tiles()).with_scores()
    }

    /// Returns the same as a stream of one batch.
    pub(crate) fn streamed(self) -> Vec<RankConfigsStreamRequest> {
        vec![stream_start(self.graph()), stream_batch(self.tiles())]
    }
}

/// Makes a call, and returns the bits of the scores.
pub(crate) async fn ask(
    client: &mut CostModelServiceClient<Channel>,
    question: Question,
) -> Result<Vec<u32>, Status> {
    ask_as(client, question, "asked").await
}

/// Makes such a call with an id.
pub(crate) async fn ask_as(
    client: &mut CostModelServiceClient<Channel>,
    question: Question,
    id: &str,
) -> Result<Vec<u32>, Status> {
    let request = with_headers(question.request(), &[("x-request-id", id)]);
    let answer = client.rank_configs(request).await?;
    Ok(bits(&answer.into_inner().scores))
}

/// Makes such a call as a stream.
pub(crate) async fn stream_as(
    client: &mut CostModelServiceClient<Channel>,
    question: Question,
    id: &str,
) -> Result<Vec<u32>, Status> {
    let messages = tokio_stream::iter(question.streamed());
    let request = with_headers(messages, &[("x-request-id", id)]);
    let mut answers = client.rank_configs_stream(request).await?.into_inner();
    let (mut scores, mut ranked) = (Vec::new(), false);
    while let Some(answer) = answers.message().await? {
        match answer.part.unwrap() {
            AnswerPart::Scores(batch) => scores.extend(bits(&batch.scores)),
            AnswerPart::Ranking(_) => ranked = true,
            AnswerPart::Started(_) => {}
        }
    }
    assert!(ranked, "a stream ended well before it was ranked");
    Ok(scores)
}

/// Waits until a server has this number of calls in progress.
pub(crate) async fn until_in_progress(server: &ServerProcess, calls: u8) {
    let in_progress =
        |scrape: &Scrape| scrape.value("hlorank_requests_in_progress", &[]) >= calls.into();
    server.until_metrics(in_progress).await;
}

/// Asserts that a server ends well, and returns its log.
pub(crate) async fn ended_well(server: ServerProcess) -> Stopped {
    let stopped = server.stop().await;
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    assert!(!stopped.log.contains("panic"), "{}", stopped.log);
    stopped
}

/// Sets a resource limit of a server, and returns the previous limit.
pub(crate) fn limit(process: u32, resource: Resource, most: Option<u64>) -> Option<u64> {
    let limits = Rlimit {
        current: most,
        maximum: getrlimit(resource).maximum,
    };
    let before = prlimit(Some(pid(process)), resource, limits).unwrap();
    before.current
}

pub(crate) fn pid(process: u32) -> Pid {
    Pid::from_raw(process.try_into().unwrap()).unwrap()
}
