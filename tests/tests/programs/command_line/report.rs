//! `hlorank report`: a ranking and what parts of configurations do to the score, as text, JSON and a page.

use hlorank_tests::prelude::*;

use crate::command_line::running::{CommandLine, MeasuredFile, rows};

fn reported(command_line: &CommandLine, graph: &str, options: &[&str]) -> Value {
    let arguments = [&["report", "--graph", graph][..], options].concat();
    command_line.json(&arguments)["graphs"][0].take()
}

fn explained(command_line: &CommandLine, graph: &str, options: &[&str]) -> Value {
    reported(command_line, graph, options)["explanation"].take()
}

/// Returns the scores of configurations.
fn scores(command_line: &CommandLine, graph: &str, configurations: &[Value]) -> Vec<f64> {
    command_line.write("configs.json", &json!(configurations).to_string());
    let rank = ["rank", "--graph", graph, "--module=0", "--top=all"];
    let report = command_line.json(&[&rank[..], &["--configs=configs.json"]].concat());
    let mut numbered = report["graphs"][0]["ranking"].as_array().unwrap().clone();
    numbered.sort_by_key(|row| row["number"].as_u64());
    let scores = numbered.iter().map(|row| row["score"].as_f64().unwrap());
    scores.collect()
}

fn effect(part: &Value, of: usize) -> f64 {
    part["effects"][of].as_f64().unwrap()
}

/// Returns a layout in which the nodes of a part are those of another one.
fn with_part(layout: &Value, part: &Value, from: &Value) -> Value {
    let choices = part["choices"].as_array().unwrap();
    let is_inside = |node: &Value| choices.iter().any(|choice| choice["node"] == node["node"]);
    let nodes = |layout: &Value| layout["nodes"].as_array().unwrap().clone();
    let own = nodes(layout).into_iter().filter(|node| !is_inside(node));
    let others = nodes(from).into_iter().filter(is_inside);
    json!({ "nodes": own.chain(others).collect::<Vec<_>>() })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_of_a_segment_is_the_difference_that_its_layouts_make() {
    let server = TestServer::start().await;
    let (command_line, file) = (CommandLine::new(&server), MeasuredFile::layout());
    let report = explained(&command_line, file.argument(), &["--module=0"]);
    let three = report["configurations"].as_array().unwrap();
    let roles: Vec<&Value> = three.iter().map(|explained| &explained["role"]).collect();
    assert_eq!(roles, ["best", "default", "worst"]);
    let score = |of: usize| three[of]["score"].as_f64().unwrap();
    assert!(score(0) <= score(1) && score(1) <= score(2), "{three:?}");
    let parts = report["parts"].as_array().unwrap();
    assert!(!parts.is_empty() && report["kind_of_part"] == "segment");
    let layout = |of: usize| &three[of]["configuration"];
    let exchanged = parts.iter().flat_map(|part| {
        [(0, 1), (1, 0), (2, 1)].map(|(of, from)| with_part(layout(of), part, layout(from)))
    });
    let exchanged: Vec<Value> = exchanged.collect();
    let scores = scores(&command_line, file.argument(), &exchanged);
    for (part, scores) in parts.iter().zip(scores.chunks_exact(3)) {
        let expected = [
            score(0) - scores[0],
            scores[1] - score(1),
            score(2) - scores[2],
        ];
        for (of, expected) in expected.into_iter().enumerate() {
            assert!(
                (effect(part, of) - expected).abs() < 1e-5,
                "{part}: {expected} of {of}"
            );
        }
    }
    let size = |part: &Value| effect(part, 0).abs().max(effect(part, 2).abs());
    assert!(
        parts.is_sorted_by(|one, other| size(one) >= size(other)),
        "the largest effect comes first"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_of_a_bound_is_the_difference_that_it_makes() {
    let server = TestServer::start().await;
    let (command_line, file) = (CommandLine::new(&server), MeasuredFile::tile());
    let report = explained(&command_line, file.argument(), &["--module=0"]);
    let three = report["configurations"].as_array().unwrap();
    let parts = report["parts"].as_array().unwrap();
    assert!(
        !parts.is_empty() && report["kind_of_part"] == "bound",
        "{report}"
    );
    for part in parts {
        let (list, rest) = part["name"].as_str().unwrap().split_once('[').unwrap();
        let place: usize = rest.trim_end_matches(']').parse().unwrap();
        let mut best = three[0]["configuration"].clone();
        best[format!("{list}_bounds")][place] =
            three[1]["configuration"][format!("{list}_bounds")][place].clone();
        let without = scores(&command_line, file.argument(), &[best])[0];
        let expected = three[0]["score"].as_f64().unwrap() - without;
        assert!(
            (effect(part, 0) - expected).abs() < 1e-6,
            "{part}: {expected}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kernels_of_three_fusions_add_up_to_their_scores() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let (command_line, program) = (CommandLine::new(&server), fixture("fused/rotary.pb"));
    let program = program.to_str().unwrap();
    let graph = reported(&command_line, program, &[]);
    let report = &graph["explanation"];
    let configurations = report["configurations"].as_array().unwrap();
    let kernels = report["kernels"].as_array().unwrap();
    assert_eq!(
        (kernels.len(), graph["unit"].as_str()),
        (3, Some("seconds"))
    );
    for (explained, kernels) in configurations.iter().zip(kernels) {
        let kernels = kernels.as_array().unwrap().iter();
        let seconds = kernels.map(|kernel| kernel["seconds"].as_f64().unwrap());
        let (sum, score) = (seconds.sum::<f64>(), explained["score"].as_f64().unwrap());
        assert!((sum - score).abs() <= 1e-5 * score, "{sum} {score}");
    }
    let text = command_line.text(&["report", "--graph", program]);
    says!(
        text,
        "Kernels of the best: ",
        "Kernels of the worst: ",
        "computes"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_layout_has_no_parts() {
    let server = TestServer::start().await;
    let command_line = CommandLine::new(&server);
    let module = fixture("hlo/mlp_train.before_opt.hlo.txt");
    command_line.write("only.json", "[{}]");
    let report = ["report", "--graph", module.to_str().unwrap()];
    let text = command_line.text(&[&report[..], &["--configs=only.json"]].concat());
    says!(text, "No single segment explains");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_and_page_have_the_parts_of_the_document_and_the_page_has_nothing_from_elsewhere() {
    let server = TestServer::start().await;
    let (command_line, file) = (CommandLine::new(&server), MeasuredFile::layout());
    let arguments = ["report", "--graph", file.argument(), "--module=0"];
    let report = explained(&command_line, file.argument(), &["--module=0"]);
    let text = command_line.text(&arguments);
    let mut table = rows(&text, "segment");
    // A last line counts the others.
    table.retain(|row| row.len() > 1);
    let parts = report["parts"].as_array().unwrap();
    assert_eq!(table.len(), parts.len().min(20), "{text}");
    for (row, part) in table.iter().zip(parts) {
        assert_eq!(row[0], part["name"].as_str().unwrap(), "{text}");
        let shown: f64 = row[1].parse().unwrap();
        assert!((shown - effect(part, 0)).abs() <= 0.5e-4, "{text}");
    }
    says!(text, "segments together.");

    let page = command_line.text(&[&arguments[..], &["--html"]].concat());
    for row in rows(&text, "rank").iter().chain(&rows(&text, "segment")) {
        for cell in row {
            let cell = cell
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            says!(page, format!(">{cell}</td>"));
        }
    }
    assert!(page.matches("<circle").count() > 10, "{page}");
    for tag in page.split('<').filter_map(|part| part.split_once('>')) {
        for reference in ["script", "src=", "href=", "style=\""] {
            assert!(!tag.0.contains(reference), "<{}>", tag.0);
        }
    }
    assert!(!page.contains("@import") && !page.contains("url("));
    command_line.failure(2, &[&arguments[..], &["--html", "--json"]].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_of_the_target_is_explained() {
    let server = TestServer::start_with(&[&all_models_flag(), "--default-models=none"]).await;
    let command_line = CommandLine::new(&server);
    let kernels = fixture("measured/tile_kernels.pb");
    for (target, model) in [
        ("TPU v3, XLA", TILE_MODEL),
        ("AMD EPYC, IREE", "tile-iree-cpu"),
    ] {
        let options = ["--module=0", "--target", target];
        let graph = reported(&command_line, kernels.to_str().unwrap(), &options);
        let name = graph["model"].as_str().unwrap().split('@').next();
        assert_eq!(name, Some(model), "{target}");
    }
}
