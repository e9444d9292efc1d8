//! Runs `hlorank`, and the measured files and tables of its tests.

use hlorank_graph::{FileKind, Measurements};
use hlorank_tests::prelude::*;

/// Address without a server.
pub(crate) const NO_SERVER: &str = "http://127.0.0.1:1";

/// A time limit for a call that the client would retry until the default one, half a minute.
pub(crate) const SHORT: &str = "--timeout=5s";

/// Environment variables of credentials.
const CREDENTIALS: [&str; 4] = [
    "HLORANK_CA",
    "HLORANK_CERTIFICATE",
    "HLORANK_TOKEN",
    "HLORANK_TOKEN_FILE",
];

/// A folder to run commands in, and the server that they call.
pub(crate) struct CommandLine {
    folder: TempDir,
    endpoint: String,
    admin_endpoint: String,
}

impl CommandLine {
    /// Runs commands that call this server.
    pub(crate) fn new(server: &TestServer) -> Self {
        let admin = server
            .admin_endpoint()
            .unwrap_or_else(|| NO_SERVER.to_owned());
        Self::calling(server.endpoint(), &admin)
    }

    /// Runs commands that need no server.
    pub(crate) fn without_server() -> Self {
        Self::calling(NO_SERVER, NO_SERVER)
    }

    /// Runs commands that call these addresses.
    pub(crate) fn calling(endpoint: &str, admin_endpoint: &str) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            endpoint: endpoint.to_owned(),
            admin_endpoint: admin_endpoint.to_owned(),
        }
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Reads the only graph of a file in the folder.
    pub(crate) fn read(&self, name: &str, task: Task) -> MeasuredGraph {
        let file = GraphFile::read(&self.path(name), task, &Limits::default()).unwrap();
        let [graph] = <[MeasuredGraph; 1]>::try_from(file.graphs).ok().unwrap();
        graph
    }

    /// Returns the text that a command prints.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the JSON document that a command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Returns what a command that fails with this exit code writes to standard error. It prints nothing else.
    pub(crate) fn failure(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        message
    }

    /// Returns a command to run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program("hlorank");
        command.current_dir(self.folder.path()).args(arguments);
        command
            .env("HLORANK_ENDPOINT", &self.endpoint)
            .env("HLORANK_ADMIN_ENDPOINT", &self.admin_endpoint);
        command.env_remove("CLICOLOR_FORCE").env_remove("NO_COLOR");
        for variable in CREDENTIALS {
            command.env_remove(variable);
        }
        command
    }
}

/// A file and its content.
pub(crate) struct MeasuredFile {
    pub(crate) path: PathBuf,
    pub(crate) kind: FileKind,
    pub(crate) graphs: Vec<MeasuredGraph>,
}

impl MeasuredFile {
    /// Reads a file of layouts.
    pub(crate) fn layout() -> Self {
        Self::read("layout_random_window_nchw_train.pb")
    }

    /// Reads a file of tiles.
    pub(crate) fn tile() -> Self {
        Self::read("tile_dispatches.pb")
    }

    /// Reads one file of each task.
    pub(crate) fn both() -> [Self; 2] {
        [Self::layout(), Self::tile()]
    }

    fn read(name: &str) -> Self {
        let path = fixture("measured").join(name);
        let file = GraphFile::read(&path, Task::Layout, &Limits::default()).unwrap();
        Self {
            path,
            kind: file.kind,
            graphs: file.graphs,
        }
    }

    /// Returns the path as an argument.
    pub(crate) fn argument(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

/// Returns the measurements of a graph.
pub(crate) fn measurements(graph: &MeasuredGraph) -> &Measurements {
    graph.measurements.as_ref().unwrap()
}

/// Returns the measured run times of a graph with the numbers of their configurations.
pub(crate) fn run_times(graph: &MeasuredGraph) -> Vec<(usize, i64)> {
    let times = measurements(graph).run_times.iter().copied().enumerate();
    times.filter(|(_, time)| *time > 0).collect()
}

/// Returns the cells of each row under the header that starts with `first_column`, without empty cells.
pub(crate) fn rows(text: &str, first_column: &str) -> Vec<Vec<String>> {
    let lines = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with(first_column));
    let rows = lines.skip(1).take_while(|line| !line.is_empty());
    rows.map(|line| {
        // Columns are separated by two spaces, words in a cell by one.
        let cells = line.split("  ").map(str::trim);
        let cells = cells.filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect()
    })
    .collect()
}
