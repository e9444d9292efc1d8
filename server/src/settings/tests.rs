use super::*;

fn settings(arguments: &[&str]) -> Settings {
    Settings::try_parse_from([&["hlorank-server"], arguments].concat()).unwrap()
}

/// All settings; `--version` is none.
fn all() -> Vec<Arg> {
    let command = Settings::command();
    let arguments = command.get_arguments();
    let settings = arguments.filter(|argument| argument.get_id() != "version");
    settings.cloned().collect()
}

fn default_of(setting: &Arg) -> &str {
    setting.get_default_values()[0].to_str().unwrap()
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
fn every_setting_has_a_flag_a_variable_and_a_default_which_the_long_help_shows() {
    let help = Settings::command_with_help(false)
        .render_long_help()
        .to_string();
    for setting in all() {
        let variable = format!("HLORANK_{}", setting.get_id().as_str().to_uppercase());
        let read = setting.get_env().and_then(|variable| variable.to_str());
        assert_eq!(read, Some(&*variable), "the list of variables may lack it");
        let flag = setting.get_long().unwrap();
        let entry = help.split(&format!("\n      --{flag} <")).nth(1).unwrap();
        let entry = entry.split("\n      --").next().unwrap();
        // A value that may hold a password is not printed.
        let is_named = ["=", "]"]
            .iter()
            .any(|end| entry.contains(&format!("[env: {variable}{end}")));
        assert!(is_named, "{entry}");
        let default = default_of(&setting);
        assert!(entry.contains(&format!("[default: {default}]")), "{entry}");
    }
}

#[test]
fn the_default_models_rank_what_compilers_take() {
    let defaults = settings(&[]).default_models();
    let expected = [
        (Task::Layout, "layout-xla-cpu"),
        (Task::Tile, "tile-iree-cpu"),
        (Task::Fusion, "fusion-xla-cpu"),
    ];
    let expected = expected.map(|(task, name)| (task, name.to_owned()));
    assert_eq!(defaults.tasks, expected);
    assert!(defaults.feature_sets.is_empty() && defaults.required.is_empty());
}

#[test]
fn a_model_that_the_settings_name_is_required() {
    let list = "--default-models=tile=tile-mine,loops=loops-mine";
    let defaults = settings(&[list]).default_models();
    assert_eq!(defaults.required, [Task::Tile]);
    assert_eq!(defaults.chosen, [Task::Tile]);
    assert_eq!(defaults.name(Task::Tile), "tile-mine");
    assert_eq!(defaults.name(Task::Layout), "layout-xla-cpu");
    assert_eq!(defaults.of_feature_set("loops"), Some("loops-mine"));
}

#[test]
fn the_server_listens_on_loopback_by_default_and_admin_calls_are_off() {
    let settings = settings(&[]);
    assert!(settings.listen.0.ip().is_loopback());
    assert!(settings.metrics_listen.0.unwrap().0.ip().is_loopback());
    assert_eq!(settings.admin_listen, OrOff(None));
    assert_eq!(settings.limits.limits(), Limits::default());
}

#[test]
fn the_page_of_logs_lists_their_settings() {
    let page = include_str!("../../../docs/logs-and-traces.md");
    for setting in all() {
        let name = setting.get_id().as_str();
        if name.starts_with("log") {
            let (flag, variable) = (setting.get_long().unwrap(), name.to_uppercase());
            let default = default_of(&setting);
            let row = format!("| `--{flag}`, `HLORANK_{variable}` | `{default}` |");
            assert!(page.contains(&row), "{row}");
        }
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
    for setting in all() {
        let flag = setting.get_long().unwrap();
        if flag.starts_with("max-") && flag != "max-slowdown" {
            let row = format!("| `--{flag}` | {} |", default_of(&setting));
            assert!(limits.replace(',', "").contains(&row), "{row}");
        }
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
