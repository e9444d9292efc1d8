//! A headless Chromium, by the protocol of its developer tools over a pipe.

use std::{
    io::{BufRead as _, Write as _},
    process::ChildStdin,
    sync::mpsc::{Receiver, channel},
};

use hlorank_tests::prelude::*;

/// Names of the program.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Maximum wait for an answer or a state of the page, generous for a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Browser with one page. Dropping it ends the process.
pub(crate) struct Browser {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    sent: u64,
    session: Option<String>,
    /// Exceptions, errors and lines of the page's console.
    pub(crate) problems: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser. Prints what is missing and returns `None` if there is none on this machine.
    pub(crate) fn start() -> Option<Self> {
        let runs = |program: &&&str| {
            let version = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            version.is_ok_and(|status| status.success())
        };
        let Some(program) = PROGRAMS.iter().find(runs) else {
            skipped("a browser, such as Debian's chromium");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The protocol uses descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >&2"#, program])
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--hide-scrollbars",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (commands, answers) = (
            process.stdin.take().unwrap(),
            process.stdout.take().unwrap(),
        );
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                // An error means that the browser is dropped.
                let _ = sender.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let mut browser = Self {
            process,
            commands,
            messages,
            sent: 0,
            session: None,
            problems: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attached);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the protocol, and returns its result.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let mut command = json!({ "id": self.sent, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.commands
            .write_all(format!("{command}\0").as_bytes())
            .unwrap();
        loop {
            let mut message = self
                .messages
                .recv_timeout(PATIENCE)
                .expect("the browser answers");
            if message["id"] == self.sent {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            let told = [
                "Runtime.exceptionThrown",
                "Runtime.consoleAPICalled",
                "Log.entryAdded",
            ];
            if told.iter().any(|event| message["method"] == *event) {
                self.problems.push(message);
            }
        }
    }

    /// Opens a page.
    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
    }

    /// Returns the value of an expression in JavaScript.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", &parameters);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, expression: &str) {
        let started = Instant::now();
        while self.value(&format!("Boolean({expression})")) != true {
            let shown = self.value("document.body && document.body.innerText");
            assert!(
                started.elapsed() < PATIENCE,
                "never {expression}: {shown} {:?}",
                self.problems
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sets the width of the page in pixels, and the colour scheme: `light` or `dark`.
    pub(crate) fn look(&mut self, width: u32, scheme: &str) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &features);
        self.until(&format!(
            "innerWidth === {width} && matchMedia('(prefers-color-scheme: {scheme})').matches"
        ));
    }

    /// Returns a picture of the whole page as PNG in base64.
    pub(crate) fn picture(&mut self) -> String {
        let parameters = json!({ "format": "png", "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", &parameters)["data"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // An error means that the process has exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
