//! An address that another process uses is reported before anything is loaded.

use std::net::TcpListener;

use hlorank_tests::prelude::*;

use super::calls::PATIENCE;

#[test]
fn an_address_that_is_taken_is_reported_with_its_flag_before_models_are_loaded() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--metrics-listen", "--admin-listen"] {
        let listeners = ["--listen", "--metrics-listen", "--admin-listen"].map(|other| {
            format!(
                "{other}={}",
                if other == flag {
                    &address
                } else {
                    "127.0.0.1:0"
                }
            )
        });
        let started = Instant::now();
        // The missing models are not reported, because the address is checked first.
        let output = server_program()
            .args(listeners)
            .args(["--models", "no/such/folder"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let refusal = String::from_utf8(output.stderr).unwrap();
        says!(
            refusal,
            format!("cannot listen on {address}: Address already in use")
        );
        says!(refusal, format!("choose another with {flag}"));
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    }
}
