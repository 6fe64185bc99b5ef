//! A story as each era writes it, and as people and agents bend it.

use proptest::prelude::*;

use super::*;

/// What is seen, a line each.
fn drawn(story: &Story) -> String {
    let mut out = Vec::new();
    let said = |said: &Option<Said>| {
        said.as_ref().map_or("-".into(), |said| format!("{} ({})", said.text, said.line))
    };
    out.push(format!("key {:?}", story.key.as_ref().map(ToString::to_string)));
    out.push(format!("title {}", said(&story.title)));
    out.push(story.status.as_ref().map_or("status -".into(), |status| {
        format!(
            "status {:?} {:?} {:?} {:?} ({})",
            status.said, status.status, status.spec, status.place, status.line
        )
    }));
    tasks::walk(&story.tasks, &mut |task| {
        out.push(format!(
            "task {} {} {} {:?} ({})",
            task.id,
            if task.done { "x" } else { "-" },
            task.text,
            task.criteria,
            task.line
        ));
    });
    story
        .criteria
        .iter()
        .for_each(|one| out.push(format!("criterion {} {:?} ({})", one.number, one.text, one.line)));
    story.files.iter().for_each(|file| out.push(format!("file {} ({})", file.text, file.line)));
    for one in &story.follow_ups {
        out.push(format!(
            "left {:?} {} {:?} {:?} {:?} ({})",
            one.dialect, one.done, one.kind, one.text, one.place, one.line
        ));
    }
    out.push(format!("outcome {}", said(&story.outcome)));
    for (name, list) in [("depends", &story.depends_on), ("closes", &story.closes_deferred)] {
        if !list.is_empty() {
            out.push(format!("{name} {list:?}"));
        }
    }
    out.extend(story.baseline.iter().map(|baseline| format!("baseline {baseline}")));
    story
        .problems
        .iter()
        .for_each(|problem| out.push(format!("{:?} {} {problem}", problem.weight, problem.rule)));
    out.join("\n")
}

const STORY: &str = "---
baseline_commit: abc123
depends_on: [1-1-sign-up]
closes_deferred:
  - DW-3
---
# Story 1.2: Log in

Status: review

<!-- a note of the template
- [ ] none
-->

## Story

As a user,
I want in.

## Acceptance Criteria

1. A password lets me in.
2. A wrong one does not.

## Tasks / Subtasks

- [x] Ask for the password (AC: 1)
  - [x] the form
  - [X] the check (AC: #2)
- [ ] Lock after five (AC: 2, 7)
\t- [ ] count
\t\t- [ ] across restarts

### Review Follow-ups (AI)

- [ ] [AI-Review][High] the hash is fast [src/auth.rs:12]
- [x] [AI-Review][Med] a name

### Review Findings

- [ ] [Review][Decision] Lock out — how long?
- [ ] [Review][Patch] Empty password [`src/auth.rs:40`]
- [x] [Review][Defer] Old cookie [src/c.rs:1] — deferred: was there before

## Dev Notes

- [ ] no task
Status: no status

## Dev Agent Record

### File List

- src/auth.rs
- `src/a b.rs` (new)
- **Modified:** tests/auth.rs - more cases
- None yet

## Senior Developer Review (AI)

**Outcome:** Approve / Changes Requested / Blocked
**Outcome:** Changes Requested

### Action Items

- [ ] [High] the hash is fast [file: src/auth.rs:12]
";

#[test]
fn a_story_as_the_template_and_reviews_leave_it() {
    insta::assert_snapshot!(drawn(&read("out/1-2-log-in.md", STORY)), @r#"
    key Some("1-2-log-in")
    title Log in (7)
    status "review" Some(Review) None Body (9)
    task 1 x Ask for the password (AC: 1) [1] (27)
    task 1.1 x the form [] (28)
    task 1.2 x the check (AC: #2) [2] (29)
    task 2 - Lock after five (AC: 2, 7) [2, 7] (30)
    task 2.1 - count [] (31)
    task 2.1.1 - across restarts [] (32)
    criterion 1 "A password lets me in." (22)
    criterion 2 "A wrong one does not." (23)
    file src/auth.rs (54)
    file src/a b.rs (55)
    file tests/auth.rs (56)
    left AiReview false Some(Severity(High)) "the hash is fast" Some("src/auth.rs:12") (36)
    left AiReview true Some(Severity(Medium)) "a name" None (37)
    left Findings false Some(Decision) "Lock out — how long?" None (41)
    left Findings false Some(Patch) "Empty password" Some("src/auth.rs:40") (42)
    left Findings true Some(Defer) "Old cookie — deferred: was there before" Some("src/c.rs:1") (43)
    outcome Changes Requested (62)
    depends ["1-1-sign-up"]
    closes ["DW-3"]
    baseline abc123
    Warning task-unknown-criterion out/1-2-log-in.md:30: task 2 names acceptance criterion 7; there is none
    Warning story-open-task out/1-2-log-in.md:30: the story is at review, and this task is not ticked
    "#);
}

#[test]
fn a_spec_of_a_late_era_is_read_as_a_story() {
    let text = "---\ntitle: 'Digest'\ntype: 'feature'\nstatus: 'in-review' # a remark\nbaseline_revision: 12ab\n---\n\n## Intent\n\n\
                Status: no\n\n## Tasks & Acceptance\n\n**Execution:**\n- [x] `src/d.rs` -- send -- why\n\n\
                **Acceptance Criteria:**\n- Given a, when b, then c\n- [ ] no task\n\n## Auto Run Result\n\nStatus: done\n";
    insta::assert_snapshot!(drawn(&read("spec-3-2-digest.md", text)), @r#"
    key Some("3-2-digest")
    title Digest (2)
    status "in-review" Some(Review) Some(InReview) Front (4)
    task 1 x `src/d.rs` -- send -- why [] (15)
    criterion 1 "Given a, when b, then c" (18)
    criterion 2 "[ ] no task" (19)
    outcome -
    baseline 12ab
    "#);
}

#[test]
fn a_status_is_found_where_it_is_one() {
    let status = |text: &str| {
        let story = read("x.md", text);
        let rules: Vec<&str> = story
            .problems
            .iter()
            .map(|problem| problem.rule)
            .filter(|rule| rule.contains("status"))
            .collect();
        let line = story.status.map(|status| {
            format!("{:?} {:?} {:?} {}", status.said, status.status, status.place, status.line)
        });
        format!("{} {}", line.unwrap_or_default(), rules.join(" ")).trim().to_string()
    };
    let all: Vec<String> = [
        "# A\n\nStatus: done\n",
        "# A\n**Status:** In Progress\n",
        "# A\n- **Status**: `review` (again)\n",
        "# A\n> status: *done* ✅\n",
        "# A\n## Status\n\nReady for dev\n\nStatus: done\n",
        "# A\n## Story\nx\nStatus: drafted\n",
        "# A\n## Notes\nStatus: done\n",
        "# A\nStatus: ready-for-review\n",
        "# A\nStatus:\n",
        "# A\nStatus: done\nStatus: review\n",
        "---\nstatus: review\n---\n# A\nStatus: done\n",
        "---\nstatus: review\n---\n# A\nStatus: Review\n",
        "---\nstatus: blocked\n---\n# A\n",
        "---\nstatus: [\n---\n# A\nStatus: done\n",
        "```\nStatus: done\n```\n<!-- Status: done -->\n",
        "\u{feff}# A\r\n\r\nStatus: done\r\n",
        "Status: done <!-- x -->",
        "# A\nStatuses: done\n",
    ]
    .iter()
    .map(|text| format!("{text:?}\n  {}", status(text)))
    .collect();
    insta::assert_snapshot!(all.join("\n"), @r##"
    "# A\n\nStatus: done\n"
      "done" Some(Done) Body 3
    "# A\n**Status:** In Progress\n"
      "In Progress" Some(InProgress) Body 2
    "# A\n- **Status**: `review` (again)\n"
      "review" Some(Review) Body 2
    "# A\n> status: *done* ✅\n"
      "done" Some(Done) Body 2
    "# A\n## Status\n\nReady for dev\n\nStatus: done\n"
      "Ready for dev" Some(ReadyForDev) Body 4
    "# A\n## Story\nx\nStatus: drafted\n"
      "drafted" Some(ReadyForDev) Body 4
    "# A\n## Notes\nStatus: done\n"
      story-no-status
    "# A\nStatus: ready-for-review\n"
      "ready-for-review" None Body 2 story-status-unknown
    "# A\nStatus:\n"
      "" None Body 2 story-status-unknown
    "# A\nStatus: done\nStatus: review\n"
      "done" Some(Done) Body 2 story-status-twice
    "---\nstatus: review\n---\n# A\nStatus: done\n"
      "done" Some(Done) Body 5 story-status-differs
    "---\nstatus: review\n---\n# A\nStatus: Review\n"
      "Review" Some(Review) Body 5
    "---\nstatus: blocked\n---\n# A\n"
      "blocked" None Front 2
    "---\nstatus: [\n---\n# A\nStatus: done\n"
      "done" Some(Done) Body 5
    "```\nStatus: done\n```\n<!-- Status: done -->\n"
      story-no-status
    "\u{feff}# A\r\n\r\nStatus: done\r\n"
      "done" Some(Done) Body 3
    "Status: done <!-- x -->"
      "done" Some(Done) Body 1
    "# A\nStatuses: done\n"
      story-no-status
    "##);
}

#[test]
fn tasks_have_a_box_whatever_marks_the_item() {
    let ids = |text: &str| {
        let mut out = Vec::new();
        let tasks = read("x.md", text).tasks;
        tasks::walk(&tasks, &mut |task| {
            out.push(format!("{}{}{}", task.id, if task.done { "x" } else { "-" }, task.text))
        });
        out.join(" | ")
    };
    for (text, found) in [
        ("## Tasks\n- [ ] a\n* [x] b\n+ [X] c\n1. [ ] d\n2) [] e\n", "1-a | 2xb | 3xc | 4-d | 5-e"),
        (
            "## Tasks\n- [ ] a\n\t- [x] b\n\t\t- [ ] c\n\t- [ ] d\n- [ ] e\n",
            "1-a | 1.1xb | 1.1.1-c | 1.2-d | 2-e",
        ),
        ("## Tasks\n- group\n  - [ ] a\n  - [ ] b\n- [ ] c\n", "1-a | 2-b | 3-c"),
        ("## Tasks\n### One\n- [ ] a\n  - [ ] b\n### Two\n  - [ ] c\n", "1-a | 1.1-b | 2-c"),
        ("## Tasks\n```\n- [ ] no\n```\n<!-- - [ ] no -->\n- [ ] a\n- [x](no)\n- [C] no\n-[ ] no\n", "1-a"),
        (
            "# S\n- [ ] a\n## Dev Notes\n- [ ] no\n## Acceptance Criteria\n- [ ] no\n## Work\n- [x] b\n",
            "1-a | 2xb",
        ),
        ("- [ ] a\n\n## Tasks\n\n- [ ] b\n\n## More\n\n- [ ] no\n", "1-b"),
        ("## Tasks / Subtasks\r\n\r\n- [ ] a\r\n  - [x] b  \r\n", "1-a | 1.1xb"),
        ("## Tasks\n\n- [ ] \n- [x]\n", "1- | 2x"),
    ] {
        assert_eq!(ids(text), found, "{text}");
    }
}

#[test]
fn criteria_a_task_is_for() {
    let named = |text: &str| read("x.md", &format!("## Tasks\n- [ ] {text}\n")).tasks[0].criteria.clone();
    for (text, numbers) in [
        ("a (AC: 1, 2)", vec![1, 2]),
        ("a (AC: #1, #3)", vec![1, 3]),
        ("a (ACs 1-3, 5)", vec![1, 2, 3, 5]),
        ("a (AC1, AC2)", vec![1, 2]),
        ("a (AC-4)", vec![4]),
        ("a (see b) (ac: 2)", vec![2]),
        ("a (AC: #)", vec![]),
        ("a (Account 7)", vec![]),
        ("a (AC: 99999999999)", vec![]),
        ("a AC: 1", vec![]),
    ] {
        assert_eq!(named(text), numbers, "{text}");
    }
}

#[test]
fn files_are_paths_and_nothing_else() {
    let files = |text: &str| {
        let files = read("x.md", &format!("### File List\n{text}\n## Next\n- no.rs\n")).files;
        files.into_iter().map(|said| said.text).collect::<Vec<_>>().join(" ")
    };
    for (text, found) in [
        ("- src/a.rs\n- src/a.rs\n* b.ts\n", "src/a.rs b.ts"),
        ("**New:**\n- `Makefile`\n- `a b.md` - x\n", "Makefile a b.md"),
        ("- [NEW] src/a.rs\n- Modified: src/b.rs (c)\n- deleted src/c.rs\n", "src/a.rs src/b.rs src/c.rs"),
        ("1. src/a.rs: what it does\n2. docs/\n", "src/a.rs docs/"),
        ("_None_\nNo files yet.\n- see https://a.b/c\n```\nx.rs\n```\n", ""),
        ("| File | What |\n", ""),
    ] {
        assert_eq!(files(text), found, "{text}");
    }
}

#[test]
fn keys_come_from_the_name_or_the_title() {
    for (path, title, key) in [
        ("a/1-2-log-in.md", "Story 1.2: Log in", "1-2-log-in"),
        ("spec-2-6a-x.md", "x", "2-6a-x"),
        ("story-1-2-x.md", "x", "1-2-x"),
        ("x.md", "Story 2.6a - Log in!", "2-6a-log-in"),
        ("x.md", "STORY 1.2 Log", "1-2-log"),
        ("x.md", "Story 1: Log", ""),
        ("x.md", "Storytelling 1.2", ""),
        ("x.md", "Stör", ""),
    ] {
        let found = read(path, &format!("# {title}\n")).key.map(|key| key.to_string());
        assert_eq!(found.unwrap_or_default(), key, "{path} {title}");
    }
}

#[test]
fn ten_megabytes_are_read_in_one_go() {
    let tasks = "- [ ] a (AC: 1) [src/a.rs:1]\n  - [x] [AI-Review][High] b [src/b.rs:2]\n".repeat(60_000);
    let deep: String = (0..2_000).map(|indent| format!("{}- [ ] x\n", " ".repeat(indent))).collect();
    let long = "(AC: 1-99,".repeat(100_000);
    let text = format!(
        "# Story 1.1: X\n## Tasks\n{tasks}{deep}- [ ] {long}\n### File List\n{}",
        "- src/x.rs\n".repeat(60_000)
    );
    let story = read("1-1-x.md", &text);
    assert_eq!(story.files.len(), 1);
    assert_eq!(story.follow_ups.len(), 1);
    assert!(story.progress().1 > 60_000);
}

proptest! {
    #[test]
    fn any_text_is_read_without_falling_over(text in "(?s).{0,200}") {
        let _ = read(&text, &text);
    }

    #[test]
    fn any_story_like_text_is_read_and_every_line_is_in_it(
        text in "(?s)(\u{feff})?(---\n)?([-# `*x:\\[\\](),\r\n\t1é]|status: |Status: |## Tasks\n|- \\[ \\] |\\[AI-Review\\]|\\[Review\\]\\[Patch\\]|### File List\n|## Senior Developer Review\n|Outcome: |Story 1.2|```\n|<!--|-->|AC: ){0,60}"
    ) {
        let story = read("1-2-x.md", &text);
        let lines = text.lines().count().max(1);
        tasks::walk(&story.tasks, &mut |task| assert!(task.line >= 1 && task.line <= lines));
        let others = story.follow_ups.iter().map(|one| one.line).chain(story.files.iter().map(|one| one.line));
        prop_assert!(others.chain(story.status.iter().map(|one| one.line)).all(|line| line >= 1 && line <= lines));
    }
}
