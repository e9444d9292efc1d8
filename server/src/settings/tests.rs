use hlorank_arguments::VARIABLES;

use super::*;

#[test]
fn every_setting_has_a_flag_a_variable_and_a_default() {
    for setting in Settings::command()
        .get_arguments()
        .filter(|setting| setting.get_id() != "version")
    {
        let name = setting.get_id().as_str();
        let variable = format!("HLORANK_{}", name.to_uppercase());
        assert!(setting.get_long().is_some(), "{name} has no flag");
        assert_eq!(
            setting.get_env().and_then(|variable| variable.to_str()),
            Some(variable.as_str())
        );
        assert!(
            !setting.get_default_values().is_empty(),
            "{name} has no default"
        );
        assert!(
            VARIABLES.contains(&variable.as_str()),
            "{variable} is missing in the list of variables"
        );
    }
}

#[test]
fn the_summary_has_one_line_per_option_below_headings() {
    let summary = Settings::command_with_help(true).render_help().to_string();
    let (_, options) = summary.split_once("Options:\n").unwrap();
    for line in options
        .lines()
        .filter(|line| !line.is_empty() && !line.ends_with(':'))
    {
        let option = line.trim_start();
        assert!(
            option.starts_with('-') && option.contains("  "),
            "no line of one option: {line}"
        );
    }
    let without_heading = options.split("\n\n").next().unwrap();
    assert_eq!(
        without_heading.lines().count(),
        2,
        "only help and version: {without_heading}"
    );
    for heading in [LISTENING, MODELS, RESOURCES, LIMITS, "Security", LOGS] {
        assert_eq!(
            summary.matches(&format!("\n{heading}:\n")).count(),
            1,
            "{heading} in {summary}"
        );
    }
}

#[test]
fn the_long_help_has_the_variable_and_the_default_of_every_option() {
    let help = Settings::command_with_help(false)
        .render_long_help()
        .to_string();
    for setting in Settings::command()
        .get_arguments()
        .filter(|setting| setting.get_id() != "version")
    {
        let variable = setting.get_env().unwrap().to_str().unwrap();
        let default = setting.get_default_values()[0].to_str().unwrap();
        let entry = help
            .split(&format!("\n      --{} <", setting.get_long().unwrap()))
            .nth(1)
            .unwrap();
        let entry = entry.split("\n      --").next().unwrap();
        // A value that may hold a password is not printed.
        let is_named = ["=", "]"]
            .iter()
            .any(|end| entry.contains(&format!("[env: {variable}{end}")));
        assert!(is_named, "{entry}");
        assert!(entry.contains(&format!("[default: {default}]")), "{entry}");
    }
}

#[test]
fn admin_calls_are_off_unless_enabled() {
    let settings =
        |arguments: &[&str]| Settings::try_parse_from([&["hlorank-server"], arguments].concat());
    assert_eq!(settings(&[]).unwrap().admin_listen, OrOff(None));
    let enabled = settings(&["--admin-listen", "127.0.0.1:7072"])
        .unwrap()
        .admin_listen;
    assert_eq!(enabled, OrOff(Some(Address(([127, 0, 0, 1], 7072).into()))));
    assert!(
        settings(&["--admin-listen", "7072"])
            .unwrap_err()
            .to_string()
            .contains("`off`")
    );
}

#[test]
fn the_default_models_rank_what_compilers_take() {
    let settings = Settings::try_parse_from(["hlorank-server"]).unwrap();
    let expected = [
        (Task::Layout, "layout-xla-cpu"),
        (Task::Tile, "tile-iree-cpu"),
        (Task::Fusion, "fusion-xla-cpu"),
    ];
    assert_eq!(
        settings.default_models().tasks,
        expected.map(|(task, name)| (task, name.to_owned()))
    );
    assert!(settings.default_models().feature_sets.is_empty());
    assert!(settings.default_models().required.is_empty());
}

#[test]
fn a_model_that_the_settings_name_is_required() {
    let list = "tile=tile-mine,loops=loops-mine";
    let settings = Settings::try_parse_from(["hlorank-server", "--default-models", list]).unwrap();
    let defaults = settings.default_models();
    assert_eq!(defaults.required, [Task::Tile]);
    assert_eq!(defaults.chosen, [Task::Tile]);
    assert_eq!(defaults.name(Task::Tile), "tile-mine");
    assert_eq!(defaults.name(Task::Layout), "layout-xla-cpu");
    assert_eq!(defaults.of_feature_set("loops"), Some("loops-mine"));
}

#[test]
fn the_server_listens_on_loopback_by_default() {
    let settings = Settings::try_parse_from(["hlorank-server"]).unwrap();
    assert!(settings.listen.0.ip().is_loopback());
    assert!(settings.metrics_listen.0.unwrap().0.ip().is_loopback());
    assert_eq!(settings.limits.limits(), Limits::default());
}

#[test]
fn the_page_of_logs_lists_their_settings() {
    let page = include_str!("../../../docs/logs-and-traces.md");
    for name in ["log", "log_format"] {
        let settings = Settings::command();
        let flag = name.replace('_', "-");
        let setting = settings
            .get_arguments()
            .find(|setting| setting.get_id() == name)
            .unwrap();
        let default = setting.get_default_values()[0].display();
        let row = format!(
            "| `--{flag}`, `HLORANK_{}` | `{default}` |",
            name.to_uppercase()
        );
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn the_page_of_limits_lists_every_limit() {
    let page = include_str!("../../../docs/limits.md");
    let limits = page
        .split("## Limits")
        .nth(1)
        .and_then(|rest| rest.split("## ").next())
        .unwrap();
    let settings = Settings::command();
    let is_limit = |name: &str| name.starts_with("max_") && name != "max_slowdown";
    for setting in settings
        .get_arguments()
        .filter(|setting| is_limit(setting.get_id().as_str()))
    {
        let name = setting.get_long().unwrap();
        let default = setting.get_default_values()[0].display();
        let row = format!("| `--{name}` | {default} |");
        assert!(limits.replace(',', "").contains(&row), "{row}");
    }
}

#[test]
fn a_ratio_lies_between_0_and_1() {
    let share = |ratio| Settings::try_parse_from(["hlorank-server", "--replay-share", ratio]);
    for good in ["0", "1", "0.25"] {
        assert_eq!(share(good).unwrap().replay_share.to_string(), good);
    }
    for wrong in ["-0.1", "1.1", "NaN", "half"] {
        assert!(share(wrong).is_err(), "{wrong}");
    }
}
