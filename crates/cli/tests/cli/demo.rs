//! The demo runs a complete review in real processes, without delays if its output is not a terminal.

use crate::common::{CommandOutput, PRD, Sandbox};

fn run_demo() -> (Sandbox, CommandOutput) {
    let sandbox = Sandbox::new();
    let output = sandbox.run_tribunal(&["demo", "--dir", "."]);
    (sandbox, output)
}

#[test]
fn the_demo_ends_resolved_with_every_finding_fixed() {
    let (sandbox, output) = run_demo();
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(output.stdout, "", "progress goes to standard error");
    for expected_text in [
        "The agents are scripted",
        "round 3 of at most 3",
        "raised by party and adversarial",
        "dismissed: quote not found in",
        "✓ party         4 findings · scripted-a",
        "✓ challenger 2  answered on F4 F5 F6 F7 F8 F9 F10 · scripted-a",
        "F8 dismissed: refuted by 2 of 2 challengers (scripted-a, scripted-b)",
        "“NFR5: Checks and alerts keep running during planned maintenance of Lantern.”",
        "upheld by challengers: F1 F2 F4 F5 F6 F7 F9 F10",
        "✗ rejected: ",
        "no new findings",
        "confidence 100 of 100",
        "resolved: all findings fixed, and the last review found nothing new",
        "12 findings: 10 fixed, 2 dismissed",
        "tracker: _bmad-output/reviews/prd-issues.md",
        "tribunal log prd-",
    ] {
        assert!(output.stderr.contains(expected_text), "`{expected_text}` is missing in:\n{}", output.stderr);
    }
    let prd_text = sandbox.read_file(PRD);
    assert!(!prd_text.contains("e-mailed to the owner in plain text") && !prd_text.contains("TBD"));
    assert!(prd_text.contains("- Deletion: on request"), "what was absent is there: {prd_text}");
    assert!(prd_text.contains("the page is offline then."), "what was refuted stays as it was: {prd_text}");
    assert!(!sandbox.path_of(".tribunal/work").join(sandbox.last_run_id()).exists(), "copies are gone");
    assert_eq!(sandbox.temporary_leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_demo_tracker_reads_well() {
    let (sandbox, _) = run_demo();
    let tracker = sandbox.read_file("_bmad-output/reviews/prd-issues.md");
    let steady_lines: Vec<&str> = tracker
        .lines()
        .filter(|line| !line.starts_with("Generated:") && !line.starts_with("<!-- tribunal: "))
        // Which fixer made a fix depends on which one was faster.
        .filter(|line| !line.contains("/fix/"))
        .collect();
    insta::assert_snapshot!(steady_lines.join("\n"));
}

#[test]
fn the_demo_findings_read_well() {
    let (sandbox, _) = run_demo();
    insta::assert_snapshot!(sandbox.run_tribunal(&["findings"]).stdout);
}

#[test]
fn a_directory_that_is_not_empty_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.write_file("mine.txt", "mine");
    let output = sandbox.run_tribunal(&["demo", "--dir", "."]);
    assert_eq!(output.exit_code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
    error: . is not empty
      The demo creates its own project and never overwrites your files.
      help: choose a new directory: `tribunal demo --dir DIR`
    ");
    assert!(!sandbox.path_of("tribunal.yaml").exists());
}

#[test]
fn the_log_shows_the_run_as_it_was_shown_live() {
    let (sandbox, live_output) = run_demo();
    let log_output = sandbox.run_tribunal(&["log", &sandbox.last_run_id()]);
    let run_lines = |text: &str| -> Vec<String> {
        let start = text.find("review of").unwrap();
        let end = text.find("\nTry these next").unwrap_or(text.len());
        let lines = text[start..end].lines();
        // Only live screens show the progress messages of agents.
        lines.filter(|line| !line.starts_with("  · ")).map(String::from).collect()
    };
    assert_eq!(run_lines(&log_output.stdout), run_lines(&live_output.stderr));
}
