//! `tribunal inspect story`: a story's file, as Tribunal reads it.

use serde_json::Value;

use crate::common::Sandbox;

const STORY: &str = "# Story 1.2: Log in\n\n**Status:** Ready for Dev\n\n## Acceptance Criteria\n\n\
    1. In with a password.\n2. Given none\n   Then out\n\n\
                     ## Tasks / Subtasks\n\n- [x] Ask (AC: 1)\n  - [ ] the form\n\n### Review Findings\n\n\
                     - [ ] [Review][Patch] Empty password [src/a.rs:4]\n\n### File List\n\n- src/a.rs\n";

#[test]
fn what_is_seen_in_a_story_is_told_with_its_lines() {
    let sandbox = Sandbox::scripted("");
    sandbox.write("1-2-log-in.md", STORY);
    let ran = sandbox.run(&["inspect", "story", "1-2-log-in.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", ran.out, ran.err, ran.code.unwrap_or(-1)), @r#"
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
    [W] 1-2-log-in.md:13: task 1 is ticked, and not all of its subtasks are
        what is ticked counts as done
    exit code 0
    "#);
}

#[test]
fn a_story_that_cannot_be_used_is_told_and_is_exit_code_3() {
    let sandbox = Sandbox::scripted("");
    sandbox.write("odd.md", "# Odd\u{1b}[31m\n\nStatus: ready-for-review\n");
    let ran = sandbox.run(&["inspect", "story", "odd.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", ran.out, ran.err, ran.code.unwrap_or(-1)), @r#"
    key         -
    title       Odd\u{1b}[31m (line 1)
    status      unknown, from "ready-for-review" in the body (line 3)
    tasks       0 of 0 done
    criteria    0
    files       0
    follow-ups  0 of 0 open
    [!] odd.md:3: "ready-for-review" is no status of a story
        use one of backlog, ready-for-dev, in-progress, review, done
    [W] odd.md: there are no acceptance criteria
        nothing says when the story is done
        write them under `## Acceptance Criteria`
    exit code 3
    "#);
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
