//! Calls by curl.

use std::io::Write as _;

use hlorank_tests::prelude::*;

/// Methods that most tests call.
pub(crate) const LIST: &str = "ModelService/ListModels";
pub(crate) const PUT: &str = "CostModelService/PutGraph";
pub(crate) const RANK: &str = "CostModelService/RankConfigs";

/// What the server answered.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answered {
    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Asserts that the call was refused for this reason, and returns the error.
    pub(crate) fn assert_refused(&self, status: u16, reason: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        says!(self.headers, "content-type: application/json");
        let error = self.json();
        assert_eq!(error["reason"], reason, "{error}");
        error
    }
}

/// Sends JSON to a method of a service, such as `CostModelService/PutGraph`.
pub(crate) async fn call(endpoint: &str, method: &str, json: &str) -> Answered {
    call_with(endpoint, method, json, &[]).await
}

/// Sends JSON to a method of a service, with these options of curl.
pub(crate) async fn call_with(
    endpoint: &str,
    method: &str,
    json: &str,
    options: &[&str],
) -> Answered {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--include", "--max-time", "60"]);
    if !options.contains(&"--data-binary") {
        command.args(["--data-binary", "@-"]);
    }
    let is_type = |option: &&str| option.starts_with("content-type");
    if !options.iter().any(is_type) {
        command.args(["--header", "content-type: application/json"]);
    }
    command.args(options);
    command.arg(format!("{endpoint}/hlorank.v1.{method}"));
    let json = json.to_owned();
    tokio::task::spawn_blocking(move || answered(command, &json))
        .await
        .unwrap()
}

fn answered(mut command: Command, json: &str) -> Answered {
    let mut curl = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The server may answer before it has read everything.
    let _ = curl.stdin.take().unwrap().write_all(json.as_bytes());
    let output = curl.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // A head of its own may say that curl is to continue.
    let begins_head = |at: usize| at == 0 || text[..at].ends_with("\r\n\r\n");
    let last = text
        .match_indices("HTTP/")
        .map(|(at, _)| at)
        .filter(|&at| begins_head(at))
        .last();
    let last = last.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let (headers, body) = text[last..].split_once("\r\n\r\n").unwrap();
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    Answered {
        status,
        headers: headers.to_lowercase(),
        body: body.to_owned(),
    }
}
