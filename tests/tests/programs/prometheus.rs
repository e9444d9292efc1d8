//! The rules, alerts and dashboard of `deploy` are valid according to promtool, and to a real Prometheus that scrapes a
//! server under load.

use hlorank_tests::prelude::*;

/// Maximum time until every expression has data.
const PATIENCE: Duration = Duration::from_mins(1);

/// Operators that join or compare expressions.
const OPERATORS: [&str; 9] = ["and", "or", "unless", "==", "!=", ">", "<", ">=", "<="];

#[test]
fn the_rules_are_sound_and_alerts_fire_where_they_should() {
    let Some(promtool) = prometheus("promtool") else {
        return;
    };
    let checks = [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "rules.yml"],
        ["test", "rules", "rules_test.yml"],
    ];
    for check in checks {
        let output = Command::new(&promtool)
            .args(check)
            .current_dir(repository("deploy/prometheus"))
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr]
            .map(|text| String::from_utf8(text).unwrap())
            .concat();
        assert!(output.status.success(), "{check:?}\n{said}");
    }
}

#[test]
fn every_alert_is_tested() {
    let read = |file: &str| fs::read_to_string(repository("deploy/prometheus").join(file)).unwrap();
    let (rules, tests) = (read("rules.yml"), read("rules_test.yml"));
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        says!(tests, format!("- alertname: {alert}\n"));
    }
}

#[test]
fn the_dashboard_is_what_its_script_prints() {
    let folder = repository("deploy/grafana");
    let printed = Command::new("python3")
        .arg("dashboard.py")
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(printed.status.success(), "{printed:?}");
    let kept = fs::read_to_string(folder.join("hlorank.json")).unwrap();
    assert!(
        kept == String::from_utf8(printed.stdout).unwrap(),
        "python3 dashboard.py >hlorank.json"
    );
}

/// Returns the expressions of the dashboard, for all servers and models.
fn dashboard() -> Vec<String> {
    let text = fs::read_to_string(repository("deploy/grafana/hlorank.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let chosen = |target: &Value| {
        let expression = target["expr"].as_str().unwrap();
        expression
            .replace("$__rate_interval", "1m")
            .replace("$instance", ".*")
            .replace("$model", ".*")
    };
    targets.map(chosen).collect()
}

/// Returns the expressions that rules record and the operands that alerts compare, because an alert has no data unless
/// it fires.
async fn rules(prometheus: &Prometheus) -> Vec<String> {
    let rules = prometheus.ask("rules").await;
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let expressions = rules.flat_map(|rule| {
        let expression = rule["query"].as_str().unwrap();
        match rule["type"].as_str() {
            Some("recording") => vec![
                expression.to_owned(),
                rule["name"].as_str().unwrap().to_owned(),
            ],
            _ => operands(expression),
        }
    });
    expressions.collect()
}

/// Returns the operands of the top-level operators of an expression, without numbers.
fn operands(expression: &str) -> Vec<String> {
    let mut depth = 0;
    let words: Vec<&str> = expression.split_whitespace().collect();
    let operands = words.split(|word| {
        depth += word.matches(['(', '{', '[']).count();
        depth -= word.matches([')', '}', ']']).count();
        depth == 0 && OPERATORS.contains(word)
    });
    let operands = operands.map(|words| words.join(" "));
    operands
        .filter(|operand| operand.parse::<f64>().is_err())
        .collect()
}

/// Sends some calls of every kind: both tasks, every method, known and new graphs, reports, and rejected calls.
async fn drive(client: &Client, round: u8) {
    for measured in measured_graphs() {
        rank_measured(client, &measured, None).await;
        let graph = GraphHandle::from_measured(&measured);
        let all: Vec<usize> = (0..configurations(&measured).len()).collect();
        let report = adapt("a board", &measured, &all);
        client.report_measurements(&graph, &report).await.unwrap();
    }
    let graph = GraphHandle::features(&kernel_of(2 + round % 30));
    client.put_graph(&graph).await.unwrap();
    let tiles = grid_configurations(100);
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    stream.send(&tiles).await.unwrap();
    stream.finish().await.unwrap();
    client.list_models().await.unwrap();
    client.get_model(TILE_MODEL, None).await.unwrap();
    let unknown = RankRequest::new(&graph, &tiles).model(Some("no-such-model".parse().unwrap()));
    assert!(client.rank(&unknown).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_expression_of_the_dashboard_and_the_rules_has_data() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_flag(folder.path());
    let flags = [&*store, "--replay-share=1"];
    let server = TestServer::start_with(&flags).await;
    let Some(prometheus) = Prometheus::scraping(server.metrics_address()).await else {
        return;
    };
    let client = server.client().await;
    let mut without_data = dashboard();
    without_data.extend(rules(&prometheus).await);
    assert!(without_data.len() > 60, "{without_data:?}");
    let deadline = Instant::now() + PATIENCE;
    for round in 0.. {
        Box::pin(drive(&client, round)).await;
        let mut still = Vec::new();
        for expression in without_data {
            if prometheus.numbers(&expression).await.is_empty() {
                still.push(expression);
            }
        }
        without_data = still;
        if without_data.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "no data:\n{}",
            without_data.join("\n")
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
