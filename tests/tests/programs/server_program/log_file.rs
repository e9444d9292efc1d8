//! A server whose log is a file: in text, or on a disk that is full.

use hlorank_tests::prelude::*;

/// Starts a server that logs to a new file, waits until it serves, and returns it with the line that says so.
pub(crate) fn start_logging_to(path: &Path, program: &mut Command) -> (Child, String) {
    let mut options = File::options();
    let file = options.create_new(true).append(true).open(path).unwrap();
    let mut server = program.stderr(file).spawn().unwrap();
    loop {
        let log = fs::read_to_string(path).unwrap();
        let is_serving = |line: &&str| {
            line.contains("serving address=") || line.contains(r#""message":"serving""#)
        };
        if let Some(line) = log.lines().find(is_serving) {
            return (server, line.to_owned());
        }
        assert_eq!(server.try_wait().unwrap(), None, "{log}");
        thread::sleep(Duration::from_millis(10));
    }
}
