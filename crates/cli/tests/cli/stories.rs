//! `tribunal inspect story`: a story's file, as Tribunal reads it.

use serde_json::Value;

use crate::common::Sandbox;

const STORY: &str = "# Story 1.2: Log in\n\n**Status:** Ready for Dev\n\n## Acceptance Criteria\n\n1. In with a password.\n2. Given none\n   Then out\n\n\
                     ## Tasks / Subtasks\n\n- [x] Ask (AC: 1)\n  - [ ] the form\n\n### Review Findings\n\n\
                     - [ ] [Review][Patch] Empty password [src/a.rs:4]\n\n### File List\n\n- src/a.rs\n";

#[test]
fn what_is_seen_in_a_story_is_told_with_its_lines() {
    let sandbox = Sandbox::scripted("");
    sandbox.write("1-2-log-in.md", STORY);
    let ran = sandbox.run(&["inspect", "story", "1-2-log-in.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", ran.out, ran.err, ran.code.unwrap_or(-1)), @"");
}

#[test]
fn a_story_that_cannot_be_used_is_told_and_is_exit_code_3() {
    let sandbox = Sandbox::scripted("");
    sandbox.write("odd.md", "# Odd\u{1b}[31m\n\nStatus: ready-for-review\n");
    let ran = sandbox.run(&["inspect", "story", "odd.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", ran.out, ran.err, ran.code.unwrap_or(-1)), @"");
}

#[test]
fn the_document_has_what_people_see() {
    let sandbox = Sandbox::scripted("");
    sandbox.write("1-2-log-in.md", STORY);
    let ran = sandbox.run(&["inspect", "story", "1-2-log-in.md", "--json"]);
    let seen: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(seen["schema"], "tribunal.inspect-story/1");
    assert_eq!((&seen["key"], &seen["status"]["status"]), (&"1-2-log-in".into(), &"ready-for-dev".into()));
    assert_eq!((&seen["tasks_done"], &seen["tasks_all"]), (&1.into(), &2.into()));
    assert_eq!(seen["follow_ups"][0]["place"], "src/a.rs:4");
    assert_eq!(ran.code, Some(0));
}
