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

/// Returns a command that runs the server without flags.
pub(crate) fn program() -> Command {
    let mut program = hlorank_tests::program("hlorank-server");
    program
        .env("HLORANK_ONNXRUNTIME", onnxruntime())
        .env("ORT_DISABLE_TELEMETRY", "1");
    program
}

/// Starts a server that caches no embeddings.
pub(crate) fn start(flags: &[&str]) -> ServerProcess {
    let mut program = program();
    program.arg("--embedding-cache-bytes=0").args(flags);
    ServerProcess::run(program)
}

pub(crate) async fn channel(endpoint: &str) -> Channel {
    Channel::from_shared(endpoint.to_owned())
        .unwrap()
        .connect()
        .await
        .unwrap()
}

pub(crate) async fn cost_model(server: &ServerProcess) -> CostModelServiceClient<Channel> {
    CostModelServiceClient::new(channel(&server.endpoint).await)
        .max_decoding_message_size(usize::MAX)
}

pub(crate) async fn admin(server: &ServerProcess) -> ModelAdminServiceClient<Channel> {
    ModelAdminServiceClient::new(channel(server.admin.as_deref().unwrap()).await)
}

impl Question {
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
    ask_as(client, question, "").await
}

/// Makes such a call with an id.
pub(crate) async fn ask_as(
    client: &mut CostModelServiceClient<Channel>,
    question: Question,
    id: &str,
) -> Result<Vec<u32>, Status> {
    let answer = client
        .rank_configs(with_id(question.request(), id))
        .await?
        .into_inner();
    Ok(bits(&answer.scores))
}

/// Makes such a call as a stream.
pub(crate) async fn stream_as(
    client: &mut CostModelServiceClient<Channel>,
    question: Question,
    id: &str,
) -> Result<Vec<u32>, Status> {
    let request = with_id(tokio_stream::iter(question.streamed()), id);
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

fn with_id<T>(message: T, id: &str) -> Request<T> {
    let mut request = Request::new(message);
    if !id.is_empty() {
        request
            .metadata_mut()
            .insert("x-request-id", id.parse().unwrap());
    }
    request
}

pub(crate) fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

pub(crate) async fn scrape(server: &ServerProcess) -> Scrape {
    let (status, text) = http_get(server.metrics, "/metrics").await;
    assert_eq!(status, 200, "{text}");
    Scrape::parse(&text)
}

/// Waits for a condition that is expected soon.
pub(crate) async fn until(what: &str, mut is_there: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_there().await {
        assert!(started.elapsed() < PATIENCE, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a version of [`MODEL`] serves.
pub(crate) async fn until_serving(client: &Client, version: u64) {
    let started = Instant::now();
    loop {
        match client.get_model(MODEL, Some(version)).await {
            Ok(model) if model.state() == ModelState::Serving => return,
            model => assert!(started.elapsed() < PATIENCE, "not serving but {model:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sets a resource limit of the server, and returns the previous limit.
pub(crate) fn limit(server: &ServerProcess, resource: Resource, most: Option<u64>) -> Option<u64> {
    let maximum = getrlimit(resource).maximum;
    prlimit(
        pid(server),
        resource,
        Rlimit {
            current: most,
            maximum,
        },
    )
    .unwrap()
    .current
}

pub(crate) fn pid(server: &ServerProcess) -> Option<Pid> {
    Pid::from_raw(server.id().try_into().unwrap())
}

/// Prints why a test is skipped. Not with `eprintln!`, whose output the test harness captures.
pub(crate) fn skipped(why: &str) {
    use std::io::Write as _;
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "skipped: {test} needs {why}");
}
