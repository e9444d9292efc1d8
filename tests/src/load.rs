//! Requests at a fixed rate, however long their answers take.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hlorank_client::{Client, ClientError, GraphHandle, RankRequest, Ranking};
use hlorank_graph::Configurations;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};

/// Request that is sent repeatedly.
#[derive(Debug)]
pub struct Question {
    /// Graph of the request.
    pub graph: GraphHandle,
    /// Configurations to rank.
    pub configurations: Configurations,
}

/// Load that continues until it is stopped.
pub struct Load {
    stop: Arc<AtomicBool>,
    calling: JoinHandle<Vec<Answer>>,
}

/// Result of one request.
#[derive(Debug)]
pub struct Answer {
    /// Time from when the request was due until its answer, including a wait to be sent.
    pub took: Duration,
    /// Ranking, or why there is none.
    pub ranking: Result<Ranking, ClientError>,
}

impl Load {
    /// Sends the questions in turn, one every `pause`.
    pub fn start(client: Client, questions: Vec<Question>, pause: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let calling = tokio::spawn(ask(client, questions.into(), pause, Arc::clone(&stop)));
        Self { stop, calling }
    }

    /// Stops sending, waits for the last answer and returns all answers.
    pub async fn finish(self) -> Vec<Answer> {
        self.stop.store(true, Ordering::Relaxed);
        self.calling.await.expect("requests do not panic")
    }
}

async fn ask(
    client: Client,
    questions: Arc<[Question]>,
    pause: Duration,
    stop: Arc<AtomicBool>,
) -> Vec<Answer> {
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut asked = JoinSet::new();
    for number in 0.. {
        let due = ticks.tick().await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (client, questions) = (client.clone(), Arc::clone(&questions));
        asked.spawn(async move {
            let Question {
                graph,
                configurations,
            } = &questions[number % questions.len()];
            let request = RankRequest::new(graph, configurations).with_scores();
            let ranking = client.rank(&request).await;
            Answer {
                took: due.elapsed(),
                ranking,
            }
        });
    }
    asked.join_all().await
}
