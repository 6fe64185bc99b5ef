//! The page `docs/agent-protocol.md`: its settings are read, its examples fit the schemas, and its sample agent works.

use std::process::Command;

use serde_json::Value;

use super::common::Sandbox;

const PAGE: &str = include_str!("../../../../docs/agent-protocol.md");
const SAMPLE_AGENT: &str = include_str!("../../../../docs/sample-agent.py");

/// The texts of all fenced blocks in this language.
fn fenced_blocks(language: &str) -> Vec<&'static str> {
    let fence_start = format!("```{language}\n");
    PAGE.split(&fence_start).skip(1).map(|after_fence| after_fence.split("```").next().unwrap_or_default()).collect()
}

/// The interpreter, by its full path: a version manager's stub would not work with the sandbox's home directory.
fn find_python() -> Option<String> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// A project with a flawed document, the sample agent and the settings from the page.
fn sample_sandbox(python_path: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "plan.md",
        "# Plan\n\n## Goals\n\nThe service answers within the the agreed time.\n\nIt is tested.\n",
    );
    sandbox.write_file("tools/sample-agent.py", SAMPLE_AGENT);
    let agent_path = sandbox.path_of("tools/sample-agent.py").display().to_string();
    let page_settings = fenced_blocks("yaml").into_iter().find(|block| block.contains("sample-agent.py")).unwrap();
    let settings = page_settings
        .replace("/path/to/sample-agent.py", &agent_path)
        .replace("[python3,", &format!("[{python_path:?},"));
    assert!(settings.contains(&agent_path) && settings.contains(python_path), "{settings}");
    sandbox.write_file("tribunal.yaml", &settings);
    sandbox
}

#[test]
fn the_sample_agent_reviews_rules_and_fixes() {
    let Some(python_path) = find_python() else {
        println!("skipped: python3 is not installed");
        return;
    };
    let sandbox = sample_sandbox(&python_path);
    let review = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(review.exit_code, Some(0), "{}\n{}", review.stdout, review.stderr);
    assert!(
        sandbox.read_file("plan.md").contains("answers within the agreed time."),
        "{}",
        sandbox.read_file("plan.md")
    );
    let findings = sandbox.run_json(&["findings", &sandbox.last_run_id()]);
    let statuses: Vec<&Value> =
        findings["findings"].as_array().unwrap().iter().map(|finding| &finding["status"]).collect();
    assert_eq!(statuses, ["fixed"], "{findings}");
    let log = sandbox.run_tribunal(&["log", &sandbox.last_run_id(), "-v"]);
    assert!(log.stdout.contains("round-1/challenge/1/1"), "it was also asked for verdicts: {}", log.stdout);
}

#[test]
fn the_page_shows_the_sample_agent_as_it_is() {
    assert_eq!(fenced_blocks("python"), [SAMPLE_AGENT]);
    let code_lines = SAMPLE_AGENT.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(code_lines <= 24, "{code_lines} lines");
}

#[test]
fn the_settings_on_the_page_are_read_without_complaint() {
    let settings_blocks: Vec<&str> = fenced_blocks("yaml");
    assert_eq!(settings_blocks.len(), 2);
    for settings_block in settings_blocks {
        let sandbox = Sandbox::new();
        sandbox.write_file("tribunal.yaml", settings_block);
        let inspection = sandbox.run_tribunal(&["inspect", "settings"]);
        assert_eq!(inspection.exit_code, Some(0), "{settings_block}\n{}", inspection.stderr);
        assert_eq!(inspection.stderr, "", "{settings_block}");
        assert!(inspection.stdout.contains("tribunal.yaml"), "{}", inspection.stdout);
    }
}

#[test]
fn the_answers_on_the_page_fit_the_published_schemas_and_are_read_without_remarks() {
    let sandbox = Sandbox::new();
    let document = sandbox.run_json(&["schema", "answers"]);
    let whole_validator = jsonschema::validator_for(&document).unwrap();
    for (example, roles, option) in [
        ("{\"findings\"", vec!["adversarial", "party", "spec", "quality", "elicitation"], None),
        ("{\"verdicts\"", vec!["challenger"], Some("--verdicts")),
        ("{\"fixes\"", vec!["fixer"], Some("--fixes")),
    ] {
        let example_text = fenced_blocks("json").into_iter().find(|block| block.starts_with(example)).unwrap();
        let answer: Value = serde_json::from_str(example_text).unwrap();
        assert!(whole_validator.is_valid(&answer), "{answer}");
        for role in roles {
            let role_validator = jsonschema::validator_for(&document["$defs"][role]).unwrap();
            assert!(role_validator.is_valid(&answer), "{role}: {answer}");
            assert!(!role_validator.is_valid(&serde_json::json!({"other": []})), "{role}");
        }
        sandbox.write_file("answer.txt", example_text);
        let mut args = vec!["inspect", "response", "answer.txt", "--json"];
        args.extend(option);
        let report = sandbox.run_tribunal(&args);
        assert_eq!(report.exit_code, Some(0), "{}", report.stderr);
        assert!(!report.stdout.contains("ignored") && !report.stdout.contains("unreadable"), "{}", report.stdout);
    }
}

#[test]
fn the_reading_of_fixes_shows_every_status_and_saved_lessons() {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "answer.txt",
        "fixes:\n- {id: F1, status: Done, note: named, memory_saved: true}\n- {id: F2, status: partly fixed}\n\
         - {id: F3, status: skipped, note: who?}\n- {id: F4, status: meh}\n",
    );
    let report = sandbox.run_tribunal(&["inspect", "response", "--fixes", "answer.txt"]);
    let lines: Vec<&str> = report.stdout.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "3 claims",
            "  F1   fixed     named (lesson saved to memory)",
            "  F2   not fixed",
            "  F3   blocked   who?",
            "warning: unknown status `meh` for F4, ignored",
        ],
        "{}",
        report.stderr
    );
}

#[test]
fn an_unknown_verdict_is_asked_about_again_and_then_counts_as_no_answer() {
    let sandbox = Sandbox::with_shell_agent(
        "prompt=$(cat)\ncase $TRIBUNAL_TASK in\n\
         */challenge/1/1) echo '{\"verdicts\": [{\"id\": \"F1\", \"verdict\": \"meh\"}]}';;\n\
         */challenge/1/1/again) case $prompt in *'unknown verdict `meh` for F1; accepted words: VALID'*)\n\
         echo '{\"verdicts\": [{\"id\": \"F1\", \"verdict\": \"True Positive\"}]}';; esac;;\n\
         */challenge/*) echo '{\"verdicts\": [{\"id\": \"F1\", \"verdict\": \"still meh\"}]}';;\n\
         */fix/*) echo '{\"fixes\": [{\"id\": \"F1\", \"status\": \"skipped\", \"reason\": \"how fast?\"}]}';;\n\
         */review/*) echo '{\"findings\": [{\"severity\": \"high\", \"description\": \"vague\", \"quote\": \"It shall be fast.\"}]}';;\n\
         esac\n",
    );
    let settings = sandbox.read_file("tribunal.yaml").replace("tier: 0", "tier: 1\nlevel: minimal");
    sandbox.write_file("tribunal.yaml", &settings);
    let review = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(review.exit_code, Some(3), "the fixer asks the user: {}", review.stderr);
    let findings = sandbox.run_json(&["findings", &sandbox.last_run_id()]);
    assert_eq!(findings["findings"][0]["severity"], "high", "an unknown verdict lowers nothing: {findings}");
}
