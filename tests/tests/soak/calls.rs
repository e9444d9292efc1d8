//! Calls at a fixed rate, whose answers are compared with the first ones.

use std::{error::Error, sync::OnceLock};

use hlorank_tests::prelude::*;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval},
};

use crate::DEADLINE;

/// Calls that continue until they are stopped.
pub(crate) struct Calls {
    answers: mpsc::UnboundedReceiver<Answer>,
    calling: JoinHandle<()>,
}

/// Result of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Time from when the call was due.
    pub(crate) took: Duration,
    /// Why the call failed, or what is wrong with its scores.
    pub(crate) wrong: Option<String>,
}

/// Request that is repeated. Its scores must not change, because the weights of the models do not.
struct Repeated {
    question: Question,
    scores: OnceLock<Vec<f32>>,
}

/// Number of batches of a stream.
const BATCHES: usize = 3;

impl Calls {
    /// Starts calls at this rate per second.
    pub(crate) fn start(client: Client, rate: f64, stopped: watch::Receiver<()>) -> Self {
        let (sender, answers) = mpsc::unbounded_channel();
        let calling = tokio::spawn(ask(client, rate, stopped, sender));
        Self { answers, calling }
    }

    /// Takes the results since the last time.
    pub(crate) fn take(&mut self) -> Vec<Answer> {
        std::iter::from_fn(|| self.answers.try_recv().ok()).collect()
    }

    /// Waits for the last answer.
    pub(crate) async fn ended(&mut self) {
        (&mut self.calling).await.expect("calling does not panic");
        // Each call in flight holds a sender.
        while self.answers.sender_strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn ask(
    client: Client,
    rate: f64,
    mut stopped: watch::Receiver<()>,
    answers: mpsc::UnboundedSender<Answer>,
) {
    let repeated: Arc<[Repeated]> = repeated().into();
    let mut ticks = interval(Duration::from_secs_f64(1.0 / rate));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in 0.. {
        let due = tokio::select! {
            due = ticks.tick() => due,
            _ = stopped.changed() => return,
        };
        let (client, repeated, answers) = (client.clone(), Arc::clone(&repeated), answers.clone());
        tokio::spawn(async move {
            let wrong = call(&client, &repeated, number).await.err();
            let _ = answers.send(Answer {
                took: Instant::now() - due,
                wrong,
            });
        });
    }
}

/// Returns measured graphs, and a kernel with many tiles.
fn repeated() -> Vec<Repeated> {
    let measured = measured_graphs();
    let question = |graph| Question {
        graph: GraphHandle::from_measured(graph),
        configurations: configurations(graph).clone(),
    };
    let large = Question {
        graph: GraphHandle::features(&kernel_of(40)),
        configurations: grid_configurations(1500),
    };
    let questions = measured.iter().map(question).chain([large]);
    questions
        .map(|question| Repeated {
            question,
            scores: OnceLock::new(),
        })
        .collect()
}

/// Why a call failed, or what is wrong with its scores.
type Wrong = Box<dyn Error + Send + Sync>;

/// Makes one call: half of the calls have new graphs, a quarter repeat known requests, and a quarter are streams.
async fn call(client: &Client, repeated: &[Repeated], number: usize) -> Result<(), String> {
    let known = &repeated[number / 4 % repeated.len()];
    let called = match number % 4 {
        0 => known.rank(client).await,
        1 => known.stream(client).await,
        _ => rank_new(client, number).await,
    };
    called.map_err(|wrong| format!("call {number}: {wrong}"))
}

async fn rank_new(client: &Client, number: usize) -> Result<(), Wrong> {
    let (graph, configurations) = varying(number);
    let graph = GraphHandle::features(&graph);
    let request = RankRequest::new(&graph, &configurations).with_scores();
    let scores = client.rank(&request).await?.scores;
    if scores.len() == configurations.len() && scores.iter().all(|score| score.is_finite()) {
        return Ok(());
    }
    Err(format!("its scores are {scores:?}").into())
}

impl Repeated {
    async fn rank(&self, client: &Client) -> Result<(), Wrong> {
        let request = RankRequest::new(&self.question.graph, &self.question.configurations);
        let ranking = client.rank(&request.with_scores()).await?;
        self.check(&ranking.scores)
    }

    async fn stream(&self, client: &Client) -> Result<(), Wrong> {
        let request = StreamRequest::new(&self.question.graph).timeout(DEADLINE);
        let mut stream = client.rank_stream(&request).await?;
        for _ in 0..BATCHES {
            stream.send(&self.question.configurations).await?;
            let batch = stream.scores().await?.ok_or("the stream ended")?;
            self.check(&batch.scores)?;
        }
        stream.finish().await?;
        Ok(())
    }

    fn check(&self, scores: &[f32]) -> Result<(), Wrong> {
        let first = self.scores.get_or_init(|| scores.to_vec());
        if first == scores {
            return Ok(());
        }
        Err(format!("its scores were {first:?} and became {scores:?}").into())
    }
}
