//! `tribunal inspect story`: a story's file, as Tribunal reads it.

use serde_json::Value;

use crate::common::Sandbox;

const STORY_TEXT: &str = "# Story 1.2: Log in\n\n**Status:** Ready for Dev\n\n## Acceptance Criteria\n\n\
    1. In with a password.\n2. Given none\n   Then out\n\n\
                     ## Tasks / Subtasks\n\n- [x] Ask (AC: 1)\n  - [ ] the form\n\n### Review Findings\n\n\
                     - [ ] [Review][Patch] Empty password [src/a.rs:4]\n\n### File List\n\n- src/a.rs\n";

#[test]
fn a_story_is_shown_with_its_line_numbers() {
    let sandbox = Sandbox::with_script("");
    sandbox.write_file("1-2-log-in.md", STORY_TEXT);
    let output = sandbox.run_tribunal(&["inspect", "story", "1-2-log-in.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", output.stdout, output.stderr, output.exit_code.unwrap_or(-1)), @r#"
    key         1-2-log-in
    title       Log in (line 1)
    status      ready-for-dev, from "Ready for Dev" in the body (line 3)
    tasks       1 of 2 done
      [x] 1     Ask (AC: 1) (line 13)
        [ ] 1.1   the form (line 14)
    criteria    2
      1   In with a password. (line 7)
      2   Given none (line 8) …
    files       1
      src/a.rs (line 22)
    follow-ups  1 of 1 open
      [ ] patch     Empty password (line 18), src/a.rs:4
    warning: 1-2-log-in.md:13: task 1 is ticked, but not all of its subtasks are
      Ticked tasks count as done.
    exit code 0
    "#);
}

#[test]
fn what_a_story_owes_and_leaves_is_shown() {
    let sandbox = Sandbox::with_script("");
    let story_text = format!(
        "---\noperator_actions: [Buy the domain]\ndeferred:\n  - summary: Slow start\n  - [a, b]\n---\n{STORY_TEXT}"
    );
    sandbox.write_file("1-2-log-in.md", &story_text);
    let output = sandbox.run_tribunal(&["inspect", "story", "1-2-log-in.md"]);
    assert!(
        output.stdout.contains("\noperator    Buy the domain\ndeferred    Slow start, a, b\n"),
        "{}",
        output.stdout
    );
    let story_document = sandbox.run_json(&["inspect", "story", "1-2-log-in.md"]);
    assert_eq!(story_document["operator_actions"][0], "Buy the domain");
    assert_eq!(story_document["deferred"][1], "a, b");
    assert_eq!(story_document["depends_on"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_is_odd_in_a_story_is_reported() {
    let sandbox = Sandbox::with_script("");
    sandbox.write_file("odd.md", "# Odd\u{1b}[31m\n\nStatus: sideways\n");
    let output = sandbox.run_tribunal(&["inspect", "story", "odd.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", output.stdout, output.stderr, output.exit_code.unwrap_or(-1)), @r#"
    key         -
    title       Odd\u{1b}[31m (line 1)
    status      unknown, from "sideways" in the body (line 3)
    tasks       0 of 0 done
    criteria    0
    files       0
    follow-ups  0 of 0 open
    warning: odd.md:3: unknown story status "sideways"
      help: use one of backlog, ready-for-dev, in-progress, review, done
    warning: odd.md: no acceptance criteria
      Nothing defines when the story is done.
      help: add them under `## Acceptance Criteria`
    exit code 0
    "#);
}

#[test]
fn the_json_document_has_what_is_shown() {
    let sandbox = Sandbox::with_script("");
    sandbox.write_file("1-2-log-in.md", STORY_TEXT);
    let output = sandbox.run_tribunal(&["inspect", "story", "1-2-log-in.md", "--json"]);
    let story_document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(story_document["schema"], "tribunal.inspect-story/1");
    assert_eq!(
        (&story_document["key"], &story_document["status"]["status"]),
        (&"1-2-log-in".into(), &"ready-for-dev".into())
    );
    assert_eq!((&story_document["tasks_done"], &story_document["tasks_all"]), (&1.into(), &2.into()));
    assert_eq!(story_document["follow_ups"][0]["place"], "src/a.rs:4");
    assert_eq!(output.exit_code, Some(0));
}

#[test]
fn a_story_without_a_board_and_the_epics_are_shown() {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "_bmad/bmm/config.yaml",
        "output_folder: out\nplanning_artifacts: out/plan\nimplementation_artifacts: out/impl\n",
    );
    sandbox.write_file(
        "out/impl/stories/epic-1/1-2-log-in.md",
        "# Story 1.2: Log in\n\nStatus: review\n\n## Acceptance Criteria\n\n1. in\n",
    );
    let output = sandbox.run_tribunal(&["story", "1.2"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("1-2-log-in"), "{}", output.stdout);
    sandbox.write_file(
        "out/plan/epics.md",
        "# Epics\n\n## Epic 1: Users\n\n### Story 1.1: Sign up\n\n**Acceptance Criteria:**\n\n1. a\n2. b\n\n\
         ### Story 1.2: Log in\n\n**Dependencies:** Story 1.1\n**Complexity:** M\n",
    );
    let output = sandbox.run_tribunal(&["inspect", "epics"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(
        output.stdout,
        "epic 1 Users · out/plan/epics.md:3\n  1-1-sign-up  2 criteria · line 5\n  \
         1-2-log-in  0 criteria · depends on 1.1 · complexity M · line 12\n"
    );
    let epics = sandbox.run_json(&["inspect", "epics"]);
    assert_eq!(epics["epics"][0]["stories"][1]["depends_on"][0], "1.1");
}
