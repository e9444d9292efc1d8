use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{self, Receiver},
    time::sleep,
};
use tokio_postgres::Client;

use super::{
    link::Database,
    link_error::{LinkError, within},
};
use crate::store::{Subject, changes::Changes};

/// Name of what servers notify each other by.
pub(super) const CHANNEL: &str = "hlorank_measurements";

/// Number of notes that are not read yet.
const MAX_WAITING: usize = 1_024;

/// Time until a connection that was lost is opened again.
const RETRY: Duration = Duration::from_secs(5);

/// Passes on which measurements servers changed, this one or others. Nobody knows what changed while there was no connection,
/// so everything may have.
pub(super) async fn listen(database: Arc<Database>, changes: Arc<Changes>) {
    loop {
        if let Ok((_client, mut notes)) = connect(&database).await {
            // Only once the connection listens, so that no change falls between the two.
            changes.add_all();
            while let Some(note) = notes.recv().await {
                match subject_of(&note) {
                    Some(subject) => changes.add(subject),
                    None => changes.add_all(),
                }
            }
        }
        sleep(RETRY).await;
    }
}

async fn connect(database: &Database) -> Result<(Client, Receiver<String>), LinkError> {
    let (sender, notes) = mpsc::channel(MAX_WAITING);
    let client = database.connect(Some(sender)).await?;
    within(client.batch_execute(&format!("LISTEN {CHANNEL}"))).await?;
    Ok((client, notes))
}

/// What a note says about changed measurements of one graph on a target.
pub(super) fn note_of(subject: &Subject) -> String {
    // Targets may contain bytes that no text of the database has.
    subject
        .prefix()
        .iter()
        .fold(String::new(), |note, byte| format!("{note}{byte:02x}"))
}

/// The subject of a note; `None` if it is about more.
fn subject_of(note: &str) -> Option<Subject> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let prefix: Option<Vec<u8>> = note.as_bytes().chunks(2).map(byte).collect();
    Subject::of_prefix(&prefix?)
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Digest;

    use super::*;

    #[test]
    fn a_note_gives_the_subject_back() {
        let subject = Subject {
            target: "a board".to_owned(),
            graph: Digest([200; 32]),
        };
        assert_eq!(subject_of(&note_of(&subject)), Some(subject));
        assert_eq!(subject_of(""), None);
    }
}
