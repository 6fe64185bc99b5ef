//! Control characters in agents' output, documents and settings are shown escaped and never reach the terminal.

use crate::common::Sandbox;

/// Clears the screen, sets a colour with a one-character escape, and reverses the text direction.
const ESCAPE_SEQUENCES: &str = "\x1b[2J\u{9b}31m\u{202e}";

fn assert_no_control_characters(source_name: &str, shown_text: &str) {
    let is_control = |character: char| (character.is_control() && character != '\n') || character == '\u{202e}';
    assert!(!shown_text.is_empty() && !shown_text.contains(is_control), "{source_name}: {shown_text:?}");
}

#[test]
fn output_of_an_agent_is_shown_without_control_characters() {
    let sandbox = Sandbox::with_shell_agent(&format!(
        "cat >/dev/null\ncat <<'END'\nlook: {ESCAPE_SEQUENCES}\nfindings:\n- severity: high\n  category: test\n\
         \x20 description: \"fast {} is vague\"\n  quote: It shall be fast.\nEND\n",
        "\\e[2J\\u202e"
    ));
    sandbox.write_file("plan.md", &format!("# Plan\n\nIt shall be fast. {ESCAPE_SEQUENCES}\n"));
    let output = sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    assert_no_control_characters("review", &output.stderr);
    let run_id = sandbox.last_run_id();
    for args in [
        &["log", &run_id, "--prompts", "--key", "/"][..],
        &["inspect", "transcript", &run_id, "/"],
        &["log", &run_id],
        &["log", &run_id, "--verbose"],
        &["log", &run_id, "--json"],
        &["findings", &run_id],
        &["findings", &run_id, "--json"],
    ] {
        let output = sandbox.run_tribunal(args);
        assert_eq!(output.exit_code, Some(0), "{args:?}: {}", output.stderr);
        assert_no_control_characters(&format!("{args:?}"), &output.stdout);
    }
    let transcript_text = sandbox.run_tribunal(&["inspect", "transcript", &run_id, "/"]).stdout;
    assert!(
        transcript_text.contains("look: \\u{1b}[2J\\u{9b}31m\\u{202e}"),
        "what is not shown is named: {transcript_text}"
    );
    assert!(transcript_text.contains("\nprinted:\n"), "{transcript_text}");
}

#[test]
fn inspected_answers_are_shown_without_control_characters() {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "answer.yaml",
        "findings: [{severity: high, description: \"a\\u001b[2J\\nb\", quote: \"c\\u202e\"}]\n",
    );
    let output = sandbox.run_tribunal(&["inspect", "response", "answer.yaml"]);
    insta::assert_snapshot!(output.stdout, @r"
    1 finding
      high      a\u{1b}[2J\nb
                quote “c\u{202e}”
    ");
    sandbox.write_file("fixes.yaml", "fixes: [{id: F1, status: fixed, note: \"a\\e[2J\"}]\nother: \"\\e[2J\"\n");
    assert_no_control_characters(
        "fixes",
        &sandbox.run_tribunal(&["inspect", "response", "--fixes", "fixes.yaml"]).stdout,
    );
    sandbox.write_file("none.txt", "no \x1b[2J answer\n");
    assert_no_control_characters("unreadable", &sandbox.run_tribunal(&["inspect", "response", "none.txt"]).stdout);
}

#[test]
fn settings_are_shown_without_control_characters() {
    let sandbox = Sandbox::with_script("");
    sandbox.write_file(
        "tribunal.yaml",
        "agents: {use: [\"s\\e[2J\"], \"s\\e[2J\": {driver: replay, script: \"x\\u202e.yaml\"}}\n\
         verify: [\"make \\e[2J\\r true\"]\n",
    );
    for args in
        [&["inspect", "settings"][..], &["inspect", "settings", "tribunal.yaml"], &["review", "plan.md", "--dry-run"]]
    {
        let output = sandbox.run_tribunal(args);
        assert_no_control_characters(&format!("{args:?}"), &format!("{}{}", output.stdout, output.stderr));
    }
    let agents_setting = "agents: {use: [s], s: {driver: replay, script: script.yaml}}\n";
    sandbox.write_file("tribunal.yaml", &format!("{agents_setting}verify: [\"make \\e[2J\\r true\"]\n"));
    let plan_text = sandbox.run_tribunal(&["review", "plan.md", "--dry-run"]).stdout;
    assert!(plan_text.contains("check:    make \\u{1b}[2J\\r true"), "{plan_text}");
    sandbox.write_file("tribunal.yaml", "\"ti\\e[2Jer\": 1\n\"x\\u202e\": 2\n");
    for args in [&["inspect", "settings", "tribunal.yaml"][..], &["review", "plan.md"]] {
        let output = sandbox.run_tribunal(args);
        assert_no_control_characters(&format!("{args:?}"), &format!("{}{}", output.stdout, output.stderr));
    }
}
