//! Control characters in agents' output, documents and settings are shown escaped and never reach the terminal.

use crate::common::Sandbox;

/// Clears the screen, sets a colour with a one-character escape, and reverses the text direction.
const HOSTILE: &str = "\x1b[2J\u{9b}31m\u{202e}";

fn assert_harmless(what: &str, text: &str) {
    let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.is_empty() && !text.contains(steers), "{what}: {text:?}");
}

#[test]
fn what_an_agent_printed_can_be_read_without_harm() {
    let sandbox = Sandbox::with_agent(&format!(
        "cat >/dev/null\ncat <<'END'\nlook: {HOSTILE}\nfindings:\n- severity: high\n  category: test\n\
         \x20 description: \"fast {} is vague\"\n  quote: It shall be fast.\nEND\n",
        "\\e[2J\\u202e"
    ));
    sandbox.write("plan.md", &format!("# Plan\n\nIt shall be fast. {HOSTILE}\n"));
    let ran = sandbox.run(&["review", "plan.md", "--no-fix"]);
    assert_harmless("review", &ran.err);
    let run = sandbox.last_run();
    for args in [
        &["log", &run, "--prompts", "--key", "/"][..],
        &["inspect", "transcript", &run, "/"],
        &["log", &run],
        &["log", &run, "--verbose"],
        &["log", &run, "--json"],
        &["findings", &run],
        &["findings", &run, "--json"],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
        assert_harmless(&format!("{args:?}"), &ran.out);
    }
    let read = sandbox.run(&["inspect", "transcript", &run, "/"]).out;
    assert!(read.contains("look: \\u{1b}[2J\\u{9b}31m\\u{202e}"), "what is not shown is named: {read}");
    assert!(read.contains("\nprinted:\n"), "{read}");
}

#[test]
fn what_is_inspected_is_shown_without_harm() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "answer.yaml",
        "findings: [{severity: high, description: \"a\\u001b[2J\\nb\", quote: \"c\\u202e\"}]\n",
    );
    let ran = sandbox.run(&["inspect", "response", "answer.yaml"]);
    insta::assert_snapshot!(ran.out, @r"
    1 finding
      high      a\u{1b}[2J\nb
                quote “c\u{202e}”
    ");
    sandbox.write("fixes.yaml", "fixes: [{id: F1, status: fixed, note: \"a\\e[2J\"}]\nother: \"\\e[2J\"\n");
    assert_harmless("fixes", &sandbox.run(&["inspect", "response", "--fixes", "fixes.yaml"]).out);
    sandbox.write("none.txt", "no \x1b[2J answer\n");
    assert_harmless("unreadable", &sandbox.run(&["inspect", "response", "none.txt"]).out);
}

#[test]
fn settings_are_shown_without_harm() {
    let sandbox = Sandbox::scripted("");
    sandbox.write(
        "tribunal.yaml",
        "agents: {use: [\"s\\e[2J\"], \"s\\e[2J\": {driver: replay, script: \"x\\u202e.yaml\"}}\n\
         verify: [\"make \\e[2J\\r true\"]\n",
    );
    for args in [
        &["inspect", "settings"][..],
        &["inspect", "settings", "tribunal.yaml"],
        &["review", "plan.md", "--dry-run"],
    ] {
        let ran = sandbox.run(args);
        assert_harmless(&format!("{args:?}"), &format!("{}{}", ran.out, ran.err));
    }
    let agents = "agents: {use: [s], s: {driver: replay, script: script.yaml}}\n";
    sandbox.write("tribunal.yaml", &format!("{agents}verify: [\"make \\e[2J\\r true\"]\n"));
    let plan = sandbox.run(&["review", "plan.md", "--dry-run"]).out;
    assert!(plan.contains("verify:   make \\u{1b}[2J\\r true"), "{plan}");
    sandbox.write("tribunal.yaml", "\"ti\\e[2Jer\": 1\n\"x\\u202e\": 2\n");
    for args in [&["inspect", "settings", "tribunal.yaml"][..], &["review", "plan.md"]] {
        let ran = sandbox.run(args);
        assert_harmless(&format!("{args:?}"), &format!("{}{}", ran.out, ran.err));
    }
}
