use super::*;
use hlorank_graph::Digest;

type Names = Versions<&'static str>;

const FILES: Digest = Digest([0; 32]);

fn on_disk(versions: &[u64]) -> FoundVersions {
    versions
        .iter()
        .map(|&version| (version, Some(FILES)))
        .collect()
}

fn rejection() -> Rejection {
    Rejection {
        reason: "GOLDEN_MISMATCH",
        message: "on purpose".to_owned(),
        transient: false,
    }
}

/// Loads the wanted versions, and rejects the bad ones.
fn load(names: &mut Names, bad: &[u64]) -> Vec<u64> {
    let mut order = Vec::new();
    while let Some(version) = names.next_to_load() {
        order.push(version);
        names.validating(version);
        if bad.contains(&version) {
            names.rejected(version, rejection());
        } else {
            names.warming(version);
            names.loaded(version, "model");
        }
    }
    order
}

/// Returns a model with these versions on disk, loaded.
fn names(versions: &[u64], bad: &[u64]) -> Names {
    let mut names = Names::new("m".to_owned(), 1);
    names.found(&on_disk(versions));
    load(&mut names, bad);
    names.take_unused(|_| true);
    names
}

fn states(names: &Names) -> Vec<(u64, &'static str)> {
    names
        .reports(|_| false)
        .map(|report| (report.version, report.state.name()))
        .collect()
}

/// The version that answers by default.
fn stable(names: &Names) -> u64 {
    names.served().unwrap().stable.0
}

#[test]
fn the_newest_valid_version_serves_and_the_one_before_is_retained() {
    assert_eq!(
        states(&names(&[1, 2, 3, 4], &[4])),
        [
            (1, "discovered"),
            (2, "retained"),
            (3, "serving"),
            (4, "rejected")
        ]
    );
    assert_eq!(states(&names(&[7], &[7])), [(7, "rejected")]);
}

#[test]
fn a_version_that_stays_discovered_says_why() {
    let waits_for = |names: &Names| {
        let mut reports = names.reports(|_| false);
        reports.find_map(|report| report.waits_for).unwrap()
    };
    let mut names = names(&[1, 2, 3], &[]);
    assert_eq!(
        waits_for(&names),
        "version 3 serves, and --retain-versions keeps 1 beside it; `hlorank models pin m@1` serves this one"
    );
    names.set_policy(Policy::of_pin(3));
    names.found(&on_disk(&[2, 3, 4]));
    assert!(waits_for(&names).starts_with("version 3 is pinned; `hlorank models unpin m`"));
    names.set_policy(Policy::default());
    assert_eq!(
        waits_for(&names),
        "the server loads it after other versions"
    );
}

#[test]
fn a_new_version_takes_over_once_it_is_loaded() {
    let mut names = names(&[1, 2], &[]);
    names.found(&on_disk(&[1, 2, 3]));
    assert_eq!(names.next_to_load(), Some(3));
    names.validating(3);
    assert_eq!(
        states(&names),
        [(1, "retained"), (2, "serving"), (3, "validating")]
    );
    names.warming(3);
    assert_eq!(names.served().unwrap().stable, (2, "model"));
    names.loaded(3, "new");
    assert_eq!(names.served().unwrap().stable, (3, "new"));
    let loaded = names.served().unwrap().loaded;
    assert!(loaded.into_keys().eq([2, 3]));
    assert!(names.draining().next().is_some());
    assert_eq!(names.take_unused(|_| false), [""; 0]);
    assert_eq!(
        states(&names)[0],
        (1, "retained"),
        "as long as a request uses it"
    );
    assert_eq!(names.take_unused(|_| true), ["model"]);
    assert_eq!(
        states(&names),
        [(1, "unloaded"), (2, "retained"), (3, "serving")]
    );
}

#[test]
fn a_version_that_is_taken_out_of_service_is_replaced_by_the_one_before() {
    let mut names = names(&[1, 2, 3], &[]);
    names.set_policy(Policy::of_pin(3));
    assert_eq!(names.abandoned(3, rejection()), Some("model"));
    assert_eq!(states(&names)[1..], [(2, "serving"), (3, "rejected")]);
    assert_eq!(stable(&names), 2, "although the other is pinned");
    assert_eq!(
        names.abandoned(3, rejection()),
        None,
        "it is out of service already"
    );
    assert_eq!(load(&mut names, &[]), [1]);
    names.abandoned(2, rejection());
    names.abandoned(1, rejection());
    assert!(names.served().is_none() && names.next_to_load().is_none());
    names.retry_rejected();
    assert_eq!(load(&mut names, &[])[0], 3);
    assert_eq!(stable(&names), 3);
}

#[test]
fn the_result_of_an_attempt_counts_only_if_the_version_is_the_same() {
    let mut names = names(&[1], &[]);
    names.found(&on_disk(&[1, 2]));
    let attempt = names.validating(2);
    assert!(names.is_current(2, attempt) && names.is_pending(2));
    names.found(&on_disk(&[1]));
    assert!(
        !names.is_current(2, attempt) && !names.is_pending(2),
        "its folder is gone"
    );
    names.found(&on_disk(&[1, 2]));
    let again = names.validating(2);
    assert!(!names.is_current(2, attempt) && names.is_current(2, again));
    names.loaded(2, "model");
    assert!(!names.is_current(2, again));
}

#[test]
fn a_bad_version_changes_nothing_until_its_files_change() {
    let mut names = names(&[1, 2], &[]);
    names.found(&on_disk(&[1, 2, 3]));
    assert_eq!(load(&mut names, &[3]), [3]);
    assert_eq!(stable(&names), 2);
    names.found(&on_disk(&[1, 2, 3]));
    assert_eq!(names.next_to_load(), None);
    let mut mended = on_disk(&[1, 2, 3]);
    mended.insert(3, Some(Digest([1; 32])));
    names.found(&mended);
    assert_eq!(load(&mut names, &[]), [3]);
    assert_eq!(stable(&names), 3);
}

#[test]
fn a_version_with_a_transient_rejection_is_retried_at_each_scan() {
    let mut names = names(&[1, 2], &[2]);
    assert!(load(&mut names, &[]).is_empty());
    names.found(&on_disk(&[1, 2, 3]));
    for _ in 0..2 {
        assert_eq!(names.next_to_load(), Some(3));
        let transient = Rejection {
            transient: true,
            ..rejection()
        };
        names.rejected(3, transient);
        assert_eq!(names.next_to_load(), None, "once per scan");
        names.found(&on_disk(&[1, 2, 3]));
    }
    assert_eq!(load(&mut names, &[]), [3]);
    assert_eq!(states(&names)[1..], [(2, "rejected"), (3, "serving")]);
}

#[test]
fn the_serving_version_outlives_its_folder() {
    let mut names = names(&[1, 2], &[]);
    names.found(&on_disk(&[1]));
    assert_eq!(states(&names), [(1, "retained"), (2, "serving")]);
    names.found(&on_disk(&[1, 3]));
    load(&mut names, &[]);
    assert_eq!(
        states(&names),
        [(1, "retained"), (2, "retained"), (3, "serving")]
    );
    names.take_unused(|_| true);
    assert_eq!(
        states(&names),
        [(1, "retained"), (3, "serving")],
        "it is neither loaded nor on disk"
    );
}

#[test]
fn a_lower_version_that_is_published_after_the_serving_folder_is_gone_takes_over() {
    let mut names = names(&[1, 5], &[]);
    names.found(&on_disk(&[1]));
    assert!(
        names
            .reports(|_| false)
            .any(|report| report.version == 5 && report.folder_gone)
    );
    names.found(&on_disk(&[1, 3]));
    assert_eq!(stable(&names), 5, "until the other is loaded");
    assert_eq!(load(&mut names, &[]), [3]);
    assert_eq!(stable(&names), 3);
    names.take_unused(|_| true);
    names.found(&on_disk(&[1, 2, 3]));
    assert!(load(&mut names, &[]).is_empty());
    assert_eq!(
        stable(&names),
        3,
        "whose folder is there, so the newest serves again"
    );
}

#[test]
fn a_retained_version_whose_folder_is_gone_leaves() {
    let mut names = names(&[1, 2], &[]);
    names.found(&on_disk(&[2]));
    names.take_unused(|_| true);
    assert_eq!(states(&names), [(2, "serving")]);
}

#[test]
fn a_pinned_version_serves_whatever_is_newer() {
    let mut names = names(&[1, 2, 3], &[]);
    names.set_policy(Policy::of_pin(2));
    assert_eq!(stable(&names), 2, "at once, since it was retained");
    names.found(&on_disk(&[1, 2, 3, 4]));
    assert_eq!(load(&mut names, &[]), [0; 0]);
    assert_eq!(
        states(&names),
        [
            (1, "discovered"),
            (2, "serving"),
            (3, "retained"),
            (4, "discovered")
        ]
    );
    names.set_policy(Policy::default());
    assert_eq!(stable(&names), 2, "not 3 in between");
    load(&mut names, &[]);
    assert_eq!(stable(&names), 4);
}

#[test]
fn a_pinned_version_is_the_first_to_be_loaded() {
    let mut names = Names::new("m".to_owned(), 1);
    names.set_policy(Policy::of_pin(2));
    names.found(&on_disk(&[1, 2, 3]));
    assert_eq!(load(&mut names, &[]), [2, 1]);
    assert_eq!(stable(&names), 2);
}

#[test]
fn a_pin_that_cannot_serve_leaves_what_serves_and_is_reported() {
    let mut names = names(&[1, 2, 3], &[]);
    assert_eq!(names.unmet(), None);
    names.set_policy(Policy::of_pin(1));
    assert_eq!(load(&mut names, &[1]), [1]);
    assert_eq!(stable(&names), 3);
    names.set_policy(Policy::of_pin(9));
    assert_eq!(stable(&names), 3);
    assert!(names.unmet().unwrap().contains("version 9 of m"));
    let mut at_start = Names::new("m".to_owned(), 1);
    at_start.set_policy(Policy::of_pin(9));
    at_start.found(&on_disk(&[1, 2]));
    load(&mut at_start, &[]);
    assert_eq!(stable(&at_start), 2);
}

#[test]
fn a_rollback_goes_back_and_not_forth() {
    let mut names = names(&[1, 2, 3], &[]);
    assert_eq!(names.rollback_target(), Some(2));
    names.set_policy(Policy::of_pin(2));
    assert_eq!(
        names.rollback_target(),
        Some(1),
        "not 3, from which it came"
    );
    names.found(&on_disk(&[2]));
    assert_eq!(names.rollback_target(), None);

    let mut names = self::names(&[1, 5, 6], &[]);
    names.set_policy(Policy::of_pin(1));
    load(&mut names, &[]);
    names.set_policy(Policy::of_pin(6));
    load(&mut names, &[]);
    assert_eq!(
        names.rollback_target(),
        Some(1),
        "what served before, rather than 5"
    );
}

#[test]
fn a_canary_serves_beside_the_stable_version() {
    let mut names = names(&[1, 2], &[]);
    names.set_policy(Policy::of_pin(2).with_canary(3));
    names.found(&on_disk(&[1, 2, 3]));
    assert_eq!(load(&mut names, &[]), [3]);
    let served = names.served().unwrap();
    assert_eq!(
        (served.stable.0, served.canary),
        (2, Some((3, "model", 10)))
    );
    assert_eq!(
        states(&names),
        [(1, "retained"), (2, "serving"), (3, "serving")]
    );

    names.set_policy(Policy::default().with_canary(3));
    assert_eq!(stable(&names), 2, "the newest is the canary's");
}

#[test]
fn the_version_that_a_change_needs_is_loaded_first_and_stays_until_the_change_ends() {
    let mut names = names(&[1, 2, 3], &[]);
    names.found(&on_disk(&[1, 2, 3, 4]));
    let change = names.begin_change(Some(1));
    assert_eq!(
        load(&mut names, &[4]),
        [1],
        "and nothing takes over meanwhile"
    );
    assert!(names.is_loaded(1) && names.is_loaded(2));
    names.end_change(change);
    assert!(!names.is_loaded(1) && names.draining().next().is_some());
    assert_eq!(names.next_to_load(), Some(4));
    names.begin_change(Some(1));
    assert!(names.is_loaded(1), "it was still draining");
}

#[test]
fn a_canary_or_pin_that_is_taken_out_of_service_stays_out_although_the_policy_names_it() {
    for policy in [Policy::of_pin(2).with_canary(3), Policy::of_pin(3)] {
        let mut names = names(&[1, 2], &[]);
        names.found(&on_disk(&[1, 2, 3]));
        // As an admin call does it: the version is loaded already when the second call needs it.
        for _ in 0..2 {
            let change = names.begin_change(Some(3));
            load(&mut names, &[]);
            names.set_policy(policy);
            names.end_change(change);
        }
        names.abandoned(3, rejection());
        for _ in 0..2 {
            assert!(!load(&mut names, &[]).contains(&3));
            let served = names.served().unwrap();
            assert_eq!(
                (served.stable.0, served.canary),
                (2, None),
                "its share goes to the stable version"
            );
            assert!(names.unmet().unwrap().contains("version 3 of m"));
            names.set_policy(policy);
            names.found(&on_disk(&[1, 2, 3]));
        }
        names.begin_change(Some(3));
        assert_eq!(load(&mut names, &[])[0], 3, "an operator asked for it");
    }
}

#[test]
fn a_later_change_supersedes_one_that_waits() {
    let mut names = names(&[1, 2, 3], &[]);
    let slow = names.begin_change(Some(1));
    let quick = names.begin_change(Some(2));
    assert!(!names.is_last_change(slow) && names.is_last_change(quick));
    names.end_change(slow);
    assert!(names.is_last_change(quick), "a change ends only itself");
    assert_eq!(names.next_to_load(), None, "1 is no longer needed");
}

#[test]
fn a_change_retries_only_its_own_version() {
    let mut names = names(&[1, 2, 3, 4], &[4, 3]);
    names.begin_change(Some(3));
    assert_eq!(load(&mut names, &[3]), [3]);
    assert_eq!(states(&names)[2..], [(3, "rejected"), (4, "rejected")]);
}

#[test]
fn an_unwanted_version_stays_rejected_on_a_retry() {
    let mut names = names(&[1, 2], &[2]);
    names.set_policy(Policy::of_pin(1));
    names.retry_rejected();
    assert_eq!(load(&mut names, &[]), [0; 0]);
    assert_eq!(states(&names)[1], (2, "rejected"));
}

#[test]
fn a_changed_state_has_the_time_of_the_change() {
    let mut names = names(&[1, 2], &[]);
    let since = |names: &Names, version: u64| names.known[&version].since;
    let before = [1, 2].map(|version| since(&names, version));
    names.set_policy(Policy::of_pin(1));
    for (version, before) in (1..).zip(before) {
        assert!(since(&names, version) > before, "both changed places");
    }
}

#[test]
fn the_begin_and_end_of_a_canary_are_reported() {
    let mut names = names(&[1, 2], &[]);
    let reported = |names: &Names| names.known[&1].reported.name();
    names.set_policy(Policy::of_pin(2).with_canary(1));
    assert_eq!(reported(&names), "serving");
    names.set_policy(Policy::of_pin(2));
    assert_eq!(reported(&names), "retained");
}

#[test]
fn what_is_retained_stays_while_others_are_tried_again() {
    let mut names = names(&[1, 2, 3, 4], &[3, 4]);
    assert_eq!(states(&names)[..2], [(1, "retained"), (2, "serving")]);
    names.retry_rejected();
    assert!(names.is_loaded(1) && names.draining().next().is_none());
}

#[test]
fn an_unreadable_version_keeps_its_state() {
    let mut names = names(&[1, 2], &[]);
    names.found(&FoundVersions::from([(1, None), (2, None), (3, None)]));
    assert_eq!(states(&names), [(1, "retained"), (2, "serving")]);
}
