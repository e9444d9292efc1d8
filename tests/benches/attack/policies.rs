//! Changes of policies by two servers on one model folder.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use hlorank_client::{AdminClient, ClientError, Connection};
use hlorank_tests::{SMALL_TILE_MODEL, ServerProcess};
use serde_json::Value;
use tokio::{task::JoinHandle, time::sleep};

use crate::site::Site;

/// Two operators who change the policies of different models until this is dropped.
pub(crate) struct PolicyChanges {
    counts: Arc<Counts>,
    changing: JoinHandle<()>,
    _second: ServerProcess,
}

#[derive(Debug, Default)]
struct Counts {
    acknowledged: AtomicUsize,
    lost: AtomicUsize,
    refused: AtomicUsize,
}

/// Numbers of changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changes {
    /// A server acknowledged them.
    pub(crate) acknowledged: usize,
    /// Of these, `policy.json` lacked them afterwards.
    pub(crate) lost: usize,
    /// A server refused them.
    pub(crate) refused: usize,
}

/// The models that are pinned and unpinned, each at one server.
const MODELS: [&str; 2] = [SMALL_TILE_MODEL, "layout-xla-cpu-sage"];

/// Pause between two changes of a model.
const PAUSE: Duration = Duration::from_millis(20);

impl PolicyChanges {
    pub(crate) fn start(site: &Site) -> Self {
        let flags = [
            &site.artifacts.flag(),
            "--admin-listen=127.0.0.1:0",
            "--workers=1",
        ];
        let second = ServerProcess::start(&flags);
        let admins =
            [&site.server, &second].map(|server| server.admin.clone().expect("admin calls are on"));
        let versions = MODELS.map(|model| newest(site, model));
        let policy = site.artifacts.folder().join("policy.json");
        let counts = Arc::new(Counts::default());
        let changing = tokio::spawn(change(admins, versions, policy, Arc::clone(&counts)));
        Self {
            counts,
            changing,
            _second: second,
        }
    }

    pub(crate) fn changes(&self) -> Changes {
        let Counts {
            acknowledged,
            lost,
            refused,
        } = &*self.counts;
        let [acknowledged, lost, refused] =
            [acknowledged, lost, refused].map(|count| count.load(Ordering::Relaxed));
        Changes {
            acknowledged,
            lost,
            refused,
        }
    }
}

impl Drop for PolicyChanges {
    fn drop(&mut self) {
        self.changing.abort();
    }
}

fn newest(site: &Site, model: &str) -> u64 {
    let version = site.artifacts.versions(model).pop().expect("a version");
    version
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok())
        .expect("a number")
}

async fn change(admins: [String; 2], versions: [u64; 2], policy: PathBuf, counts: Arc<Counts>) {
    let connect =
        async |endpoint: &String| AdminClient::connect(endpoint, Connection::default()).await;
    let [Ok(first), Ok(second)] = [connect(&admins[0]).await, connect(&admins[1]).await] else {
        return;
    };
    for is_pinned in [true, false].into_iter().cycle() {
        let changes = [
            (&first, MODELS[0], versions[0]),
            (&second, MODELS[1], versions[1]),
        ];
        let changes = changes.map(|(admin, model, version)| pin(admin, model, version, is_pinned));
        let results = join_all(changes).await;
        counts.refused.fetch_add(
            results.iter().filter(|result| result.is_err()).count(),
            Ordering::Relaxed,
        );
        let acknowledged = results.iter().map(Result::is_ok);
        let pinned = pinned(&policy);
        for (is_acknowledged, model) in acknowledged.zip(MODELS) {
            counts
                .acknowledged
                .fetch_add(usize::from(is_acknowledged), Ordering::Relaxed);
            let is_lost = is_acknowledged && pinned.iter().any(|name| name == model) != is_pinned;
            counts
                .lost
                .fetch_add(usize::from(is_lost), Ordering::Relaxed);
        }
        sleep(PAUSE).await;
    }
}

async fn pin(
    admin: &AdminClient,
    model: &str,
    version: u64,
    is_pinned: bool,
) -> Result<(), ClientError> {
    if is_pinned {
        admin.pin(model, version).await.map(drop)
    } else {
        admin.unpin(model).await.map(drop)
    }
}

/// Returns the models that the file pins.
fn pinned(policy: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(policy).unwrap_or_default();
    let Ok(Value::Object(policies)) = serde_json::from_str(&text) else {
        return Vec::new();
    };
    let is_pinned = |policy: &Value| policy.get("pinned").is_some_and(Value::is_number);
    policies
        .into_iter()
        .filter(|(_, policy)| is_pinned(policy))
        .map(|(model, _)| model)
        .collect()
}
