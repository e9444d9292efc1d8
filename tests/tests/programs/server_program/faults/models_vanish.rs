//! The whole model folder disappears, as if it were unmounted, and comes back.

use hlorank_tests::prelude::*;

use super::calls::{MODEL, Question, ask, ended_well, start};

const QUESTION: Question = Question::new(8, 20);

#[tokio::test(flavor = "multi_thread")]
async fn models_serve_while_their_folder_is_away_and_new_ones_once_it_is_back() {
    let artifacts = Artifacts::all();
    let server = start(&[
        &artifacts.flag(),
        "--admin-listen=127.0.0.1:0",
        "--poll-seconds=3600",
    ]);
    let models = server.client().await;
    let version = models.get_model(MODEL, None).await.unwrap().version;
    let mut client = server.cost_model().await;
    let answer = ask(&mut client, QUESTION).await.unwrap();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let calling = tokio::spawn(async move {
        let mut answers = Vec::new();
        while stopped.try_recv().is_err() {
            answers.push(ask(&mut client, QUESTION).await.unwrap());
        }
        answers
    });

    let elsewhere = tempfile::tempdir_in(artifacts.folder().parent().unwrap()).unwrap();
    let away = elsewhere.path().join("models");
    fs::rename(artifacts.folder(), &away).unwrap();
    let unreadable = with_message("cannot read the model folder");
    server.lines(1, &unreadable).await;
    let mut admin = server.admin_calls().await;
    for _ in 0..3 {
        let refused = admin.reload(ReloadRequest {}).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
        assert_eq!(reason(&refused), "MODELS_UNREADABLE");
    }
    let model = models.get_model(MODEL, None).await.unwrap();
    assert!(model.serving && model.version == version, "{model:?}");

    fs::rename(&away, artifacts.folder()).unwrap();
    admin.reload(ReloadRequest {}).await.unwrap();
    // The folder is watched again: polling alone would find the version much later.
    artifacts.publish(MODEL, version + 1, |_| ());
    server.until(MODEL, version + 1, ModelState::Serving).await;
    stop.send(()).unwrap();
    let mut answers = calling.await.unwrap();
    assert!(answers.len() > 10, "{} answers", answers.len());
    answers.dedup();
    assert_eq!(answers, [answer]);
    let stopped = ended_well(server).await;
    // The failure is logged once, however often the folder was polled.
    let logged = stopped.lines().into_iter().filter(unreadable).count();
    assert_eq!(logged, 1, "{}", stopped.log);
}
