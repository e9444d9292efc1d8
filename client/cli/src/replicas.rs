//! Commands that change or list what each replica has: they call one after the other, and print a report for each.

use std::fmt::{self, Display, Formatter};

use hlorank_client::ClientError;
use serde::Serialize;

use crate::{
    error::CommandError,
    failure::Failure,
    output::{Format, HEADING, printable, styled},
};

/// The addresses of servers, and the connections to them.
pub(crate) type Connections<C> = Vec<(String, Result<C, ClientError>)>;

/// What came of a command at each of several replicas.
#[derive(Debug, Serialize)]
struct ReplicaReports<R> {
    replicas: Vec<ReplicaReport<R>>,
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct ReplicaReport<R> {
    endpoint: String,
    #[serde(flatten)]
    report: R,
}

/// Calls every server, and prints their reports; that of a single one by itself. A server that fails keeps no other from being
/// called.
pub(crate) async fn print_each<C, R: Serialize + Display>(
    format: Format,
    connections: Connections<C>,
    call: impl AsyncFn(&C) -> Result<R, CommandError>,
) -> Result<(), CommandError> {
    let is_one = connections.len() == 1;
    let mut reports = ReplicaReports {
        replicas: Vec::new(),
        failures: Vec::new(),
    };
    for (endpoint, connection) in connections {
        let answer = match connection {
            Ok(connection) => call(&connection).await,
            Err(error) => Err(error.into()),
        };
        match answer {
            Ok(report) if is_one => return Ok(format.print(&report)?),
            Err(error) if is_one => return Err(error),
            Ok(report) => reports.replicas.push(ReplicaReport { endpoint, report }),
            Err(error) => reports.failures.push(Failure::new(endpoint, error)),
        }
    }
    format.print(&reports)?;
    Failure::check(reports.failures, reports.replicas.len())
}

impl<R: Display> Display for ReplicaReports<R> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for ReplicaReport { endpoint, report } in &self.replicas {
            let endpoint = styled(HEADING, printable(endpoint));
            let report = report.to_string();
            match report.trim_end() {
                line if !line.contains('\n') => writeln!(formatter, "{endpoint}: {line}")?,
                lines => writeln!(formatter, "{endpoint}\n{lines}\n")?,
            }
        }
        Failure::write_all(&self.failures, formatter)
    }
}
