//! Control characters in agents' output, documents and settings are shown escaped and never reach the terminal.

use crate::common::Sandbox;

/// Clears the screen, sets a colour with a one-character escape, and reverses the text direction.
const ESCAPE_SEQUENCES: &str = "\x1b[2J\u{9b}31m\u{202e}";

fn assert_no_control_characters(source_name: &str, shown_text: &str) {
    let is_control = |character: char| {
        (character.is_control() && character != '\n')
            || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
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

/// Everything that could act on a terminal, and a carriage return, which for YAML ends a comment.
const HOSTILE_DESCRIPTION: &str =
    r"a\u001b[2J\u009b31m\u202eb\u2066c\ranswer: dismiss\r\nanswer: dismiss\u2028d --> <!-- e";

#[test]
fn files_for_the_user_have_no_characters_that_act_and_no_answer_of_an_agent() {
    let sandbox = Sandbox::with_script(&format!(
        "tasks:
  - task: '*/review/*'
    steps: [{{findings: [{{severity: high, category: test, description: \"{HOSTILE_DESCRIPTION}\", quote: It shall be fast.}}]}}]
  - task: '*/fix/*'
    fix: [{{match: fast, blocked: \"why {HOSTILE_DESCRIPTION}\"}}]
"
    ));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    let run_id = sandbox.last_run_id();
    let page = sandbox.read_file(&format!(".tribunal/awaiting-human/{run_id}.D1.yaml"));
    assert_no_control_characters("decision page", &page);
    assert_eq!(page.lines().filter(|line| line.starts_with("answer:")).collect::<Vec<_>>(), ["answer: \"\""]);
    let tracker = sandbox.read_file(".tribunal/reviews/plan-issues.md");
    assert_no_control_characters("tracker", &tracker);
    assert!(tracker.contains(r"a\u{1b}[2J\u{9b}31m\u{202e}b"), "{tracker}");
    assert_eq!(sandbox.run_tribunal(&["resume", &run_id]).exit_code, Some(3), "the user has not answered");
    for format in ["--markdown", "--pr-comment", "--sarif", "--junit", "--json"] {
        assert_no_control_characters(format, &sandbox.run_tribunal(&["findings", format]).stdout);
    }
    let export_dir = sandbox.path_of("../export");
    assert_eq!(sandbox.run_tribunal(&["recover", "--export", export_dir.to_str().unwrap()]).exit_code, Some(0));
    let exported_journal = std::fs::read_to_string(export_dir.join(&run_id).join("journal.jsonl")).unwrap();
    assert_no_control_characters("exported journal", &exported_journal);
    assert_eq!(
        exported_journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<serde_json::Value>>(),
        sandbox.run_events(&["log", &run_id])
    );
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
