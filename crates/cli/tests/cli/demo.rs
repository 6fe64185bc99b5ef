//! The demo runs a complete review in real processes, without delays if its output is not a terminal.

use crate::common::{PRD, Ran, Sandbox};

fn demo() -> (Sandbox, Ran) {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["demo", "--dir", "."]);
    (sandbox, ran)
}

#[test]
fn it_ends_resolved_with_every_finding_fixed_and_says_what_it_is() {
    let (sandbox, ran) = demo();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.out, "", "progress goes to standard error");
    for said in [
        "The agents are scripted",
        "round 3 of at most 3",
        "raised by party and adversarial",
        "dismissed, ungrounded: the quote does not stand in the text",
        "✓ party         raised 4 findings · scripted-a",
        "✓ challenger 2  answered on F4 F5 F6 F7 F8 F9 F10 · scripted-a",
        "F8 dismissed, invalid: refuted by 2 of 2 challengers (scripted-a, scripted-b)",
        "“NFR5: Checks and alerts keep running during planned maintenance of Lantern.”",
        "upheld by challengers: F1 F2 F4 F5 F6 F7 F9 F10",
        "✗ not landed",
        "a dry pass: nothing new",
        "confidence 100: validation 35/35, reviewers 25/25, party 15/15; memory not consulted",
        "resolved · the goal is met",
        "12 raised: 10 fixed, 2 dismissed",
        "tracker: _bmad-output/reviews/prd-issues.md",
        "tribunal log prd-",
    ] {
        assert!(ran.err.contains(said), "`{said}` is missing in:\n{}", ran.err);
    }
    let prd = sandbox.read(PRD);
    assert!(!prd.contains("e-mailed to the owner in plain text") && !prd.contains("TBD"));
    assert!(prd.contains("- Deletion: on request"), "what was absent is there: {prd}");
    assert!(prd.contains("the page is offline then."), "what was refuted stays as it was: {prd}");
    assert!(!sandbox.path(".tribunal/work").join(sandbox.last_run()).exists(), "copies are gone");
    assert_eq!(sandbox.litter(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn its_tracker_reads_well() {
    let (sandbox, _) = demo();
    let tracker = sandbox.read("_bmad-output/reviews/prd-issues.md");
    let steady: Vec<&str> = tracker
        .lines()
        .filter(|line| !line.starts_with("Generated:") && !line.starts_with("<!-- tribunal: "))
        // Which fixer made a fix depends on which one was faster.
        .filter(|line| !line.contains("/fix/"))
        .collect();
    insta::assert_snapshot!(steady.join("\n"));
}

#[test]
fn its_findings_read_well() {
    let (sandbox, _) = demo();
    insta::assert_snapshot!(sandbox.run(&["findings"]).out);
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("mine.txt", "mine");
    let ran = sandbox.run(&["demo", "--dir", "."]);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.err, @r"
    [!] . is not empty
        The demo writes a project of its own and touches nothing that is yours.
        1. name a new folder: tribunal demo --dir DIR
    ");
    assert!(!sandbox.path("tribunal.yaml").exists());
}

#[test]
fn the_log_draws_the_run_again_as_it_was_drawn_live() {
    let (sandbox, live) = demo();
    let log = sandbox.run(&["log", &sandbox.last_run()]);
    let shown = |text: &str| -> Vec<String> {
        let start = text.find("review of").unwrap();
        let end = text.find("\nNow look around").unwrap_or(text.len());
        let lines = text[start..end].lines();
        // Only live screens show the progress messages of agents.
        lines.filter(|line| !line.starts_with("  · ")).map(String::from).collect()
    };
    assert_eq!(shown(&log.out), shown(&live.err));
}
