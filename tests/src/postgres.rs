//! A real PostgreSQL, if it is installed.

use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{security::Pair, skipped};

/// A PostgreSQL server with a folder and a port of its own. It stops when it is dropped.
pub struct Postgres {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    /// Who it runs as, if the tests run as root: PostgreSQL refuses to.
    user: Option<u32>,
    is_secured: bool,
}

/// Where Debian puts the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

impl Postgres {
    /// Starts a server. If PostgreSQL is not installed, prints what is skipped to standard error and returns `None`.
    pub fn start() -> Option<Self> {
        let server = Self::prepare()?;
        server.resume();
        Some(server)
    }

    /// Starts a server that takes connections over TLS only, with a certificate.
    pub fn start_secured(pair: &Pair) -> Option<Self> {
        let mut server = Self::prepare()?;
        server.is_secured = true;
        let data = server.folder.path().join("data");
        let write = |name: &str, text: &str| {
            let path = data.join(name);
            fs::write(&path, text).expect("a file can be written");
            // PostgreSQL refuses a key that others can read.
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("the file is ours");
            chown(&path, server.user, None).expect("the file can be given away");
        };
        write("server.crt", &pair.certificate);
        write("server.key", &pair.key);
        write("pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n");
        server.resume();
        Some(server)
    }

    /// Creates a server with an empty database. If PostgreSQL is not installed, prints what is skipped and returns `None`.
    fn prepare() -> Option<Self> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let user = is_root.then(|| number_of("postgres"));
        let (Some(programs), None | Some(Some(_))) = (programs(), user) else {
            skipped("PostgreSQL; the package `postgresql` has it");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("there is a free port").port();
        let server = Self {
            programs,
            folder,
            port,
            user: user.flatten(),
            is_secured: false,
        };
        if let Some(user) = server.user {
            chown(server.folder.path(), Some(user), None).expect("the folder can be given away");
        }
        server.run(
            "initdb",
            &["--username=hlorank", "--auth=trust", "--no-sync"],
        );
        Some(server)
    }

    /// The address of its database, as the server takes it.
    pub fn url(&self) -> String {
        let mode = if self.is_secured {
            "require"
        } else {
            "disable"
        };
        format!(
            "postgres://hlorank@127.0.0.1:{}/postgres?sslmode={mode}",
            self.port
        )
    }

    /// Returns the server flag that keeps measurements in its database.
    pub fn store_flag(&self) -> String {
        format!("--measurements={}", self.url())
    }

    /// Starts it again.
    pub fn resume(&self) {
        let ssl = if self.is_secured { "on" } else { "off" };
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c ssl={ssl}",
            self.port
        );
        let log = format!("--log={}", self.folder.path().join("log").display());
        self.run(
            "pg_ctl",
            &["start", "--wait", &log, &format!("--options={options}")],
        );
    }

    /// Stops it as a power cut does.
    pub fn stop(&self) {
        self.run("pg_ctl", &["stop", "--mode=immediate"]);
    }

    /// Runs a statement in its database.
    pub fn execute(&self, statement: &str) {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--quiet", "--command", statement, &self.url()]);
        assert!(psql.status().expect("psql runs").success(), "{statement}");
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command
            .args(arguments)
            .arg("--pgdata")
            .arg(self.folder.path().join("data"));
        command.current_dir(self.folder.path());
        if let Some(user) = self.user {
            command.uid(user);
        }
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        // Into a file, since the server that is left running would keep a pipe open.
        let path = self.folder.path().join("output");
        let output = fs::File::create(&path).expect("a file can be made");
        let errors = output.try_clone().expect("a file can be shared");
        let status = self
            .command(program, arguments)
            .stdout(output)
            .stderr(errors)
            .status();
        let said = || fs::read_to_string(&path).unwrap_or_default();
        assert!(
            status.is_ok_and(|status| status.success()),
            "{program} {arguments:?}: {}",
            said()
        );
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // An error means that it has stopped already.
        let _ = self
            .command("pg_ctl", &["stop", "--mode=immediate", "--silent"])
            .output();
    }
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(Path::new(VERSIONS)).ok()?;
    let programs = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    programs
        .filter(|programs| programs.join("initdb").exists())
        .max()
}

/// The number of a user of this machine.
fn number_of(user: &str) -> Option<u32> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    fields
        .filter(|fields| fields.first() == Some(&user))
        .find_map(|fields| fields.get(2)?.parse().ok())
}
