//! Stories in the form of each era, and in the forms that users and agents make of them.

use proptest::prelude::*;

use super::*;

/// Renders everything that was read, one line each.
fn render_story(story: &Story) -> String {
    let mut rendered = Vec::new();
    let render_located = |located_text: &Option<LocatedText>| {
        located_text
            .as_ref()
            .map_or("-".into(), |located_text| format!("{} ({})", located_text.text, located_text.line))
    };
    rendered.push(format!("key {:?}", story.key.as_ref().map(ToString::to_string)));
    rendered.push(format!("title {}", render_located(&story.title)));
    rendered.push(story.status.as_ref().map_or("status -".into(), |status| {
        format!("status {:?} {:?} {:?} {:?} ({})", status.said, status.status, status.spec, status.place, status.line)
    }));
    tasks::visit_tasks(&story.tasks, &mut |task| {
        rendered.push(format!(
            "task {} {} {} {:?} ({})",
            task.id,
            if task.done { "x" } else { "-" },
            task.text,
            task.criteria,
            task.line
        ));
    });
    story.criteria.iter().for_each(|criterion| {
        rendered.push(format!("criterion {} {:?} ({})", criterion.number, criterion.text, criterion.line))
    });
    story.files.iter().for_each(|file| rendered.push(format!("file {} ({})", file.text, file.line)));
    for follow_up in &story.follow_ups {
        rendered.push(format!(
            "left {:?} {} {:?} {:?} {:?} ({})",
            follow_up.dialect, follow_up.done, follow_up.kind, follow_up.text, follow_up.place, follow_up.line
        ));
    }
    rendered.push(format!("outcome {}", render_located(&story.outcome)));
    for (name, key_list) in [("depends", &story.links.depends_on), ("closes", &story.links.closes_deferred)] {
        if !key_list.is_empty() {
            rendered.push(format!("{name} {key_list:?}"));
        }
    }
    rendered.extend(story.baseline.iter().map(|baseline| format!("baseline {baseline}")));
    story.problems.iter().for_each(|problem| rendered.push(format!("{:?} {} {problem}", problem.weight, problem.rule)));
    rendered.join("\n")
}

#[test]
fn front_matter_that_cannot_be_read_is_a_problem() {
    let first_problem = |story_text: &str| {
        let problems = read_story("1-2-x.md", story_text).problems;
        problems.iter().find(|problem| problem.rule == "front-matter-broken").map(ToString::to_string)
    };
    let unclosed = Some("1-2-x.md:1: the front matter has no second `---`".to_string());
    assert_eq!(first_problem("---\ndepends_on: [1.1]\n\n# A\n"), unclosed);
    assert_eq!(first_problem("---\n\ndepends_on:\n  - 1.1\n# A\n"), unclosed);
    assert!(first_problem("---\ndepends_on: [1.1\n---\n# A\n").is_some_and(|text| text.starts_with("1-2-x.md:")));
    // A rule above a text is no front matter.
    for story_text in
        ["---\n# A\n", "---\nSee also: this\n", "---\nhttps://x.y\n", "---\na: 1\n---\n# A\n", "---\n", ""]
    {
        assert_eq!(first_problem(story_text), None, "{story_text:?}");
    }
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
fn a_story_with_template_sections_and_review_items_is_read() {
    insta::assert_snapshot!(render_story(&read_story("out/1-2-log-in.md", STORY)), @r#"
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
    Warning task-unknown-criterion out/1-2-log-in.md:30: task 2 refers to acceptance criterion 7, which does not exist
    Warning story-open-task out/1-2-log-in.md:30: the story is in state review, but this task is not ticked
    "#);
}

#[test]
fn a_spec_of_a_late_era_is_read_as_a_story() {
    let story_text = "---\ntitle: 'Digest'\ntype: 'feature'\nstatus: 'in-review' # a remark\nbaseline_revision: 12ab\n---\n\n## Intent\n\n\
                Status: no\n\n## Tasks & Acceptance\n\n**Execution:**\n- [x] `src/d.rs` -- send -- why\n\n\
                **Acceptance Criteria:**\n- Given a, when b, then c\n- [ ] no task\n\n## Auto Run Result\n\nStatus: done\n";
    insta::assert_snapshot!(render_story(&read_story("spec-3-2-digest.md", story_text)), @r#"
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
fn a_status_is_found_only_where_it_belongs() {
    let render_status = |story_text: &str| {
        let story = read_story("x.md", story_text);
        let rules: Vec<&str> =
            story.problems.iter().map(|problem| problem.rule).filter(|rule| rule.contains("status")).collect();
        let line = story.status.map(|status_line| {
            format!("{:?} {:?} {:?} {}", status_line.said, status_line.status, status_line.place, status_line.line)
        });
        format!("{} {}", line.unwrap_or_default(), rules.join(" ")).trim().to_string()
    };
    let rendered: Vec<String> = [
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
    .map(|story_text| format!("{story_text:?}\n  {}", render_status(story_text)))
    .collect();
    insta::assert_snapshot!(rendered.join("\n"), @r##"
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
      story-no-status
    "# A\n## Notes\nStatus: done\n"
      story-no-status
    "# A\nStatus: ready-for-review\n"
      "ready-for-review" Some(Review) Body 2
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
fn tasks_have_a_box_with_any_list_mark() {
    let render_tasks = |story_text: &str| {
        let mut rendered = Vec::new();
        let tasks = read_story("x.md", story_text).tasks;
        tasks::visit_tasks(&tasks, &mut |task| {
            rendered.push(format!("{}{}{}", task.id, if task.done { "x" } else { "-" }, task.text))
        });
        rendered.join(" | ")
    };
    for (story_text, expected) in [
        ("## Tasks\n- [ ] a\n* [x] b\n+ [X] c\n1. [ ] d\n2) [] e\n", "1-a | 2xb | 3xc | 4-d | 5-e"),
        ("## Tasks\n- [ ] a\n\t- [x] b\n\t\t- [ ] c\n\t- [ ] d\n- [ ] e\n", "1-a | 1.1xb | 1.1.1-c | 1.2-d | 2-e"),
        ("## Tasks\n- group\n  - [ ] a\n  - [ ] b\n- [ ] c\n", "1-a | 2-b | 3-c"),
        ("## Tasks\n### One\n- [ ] a\n  - [ ] b\n### Two\n  - [ ] c\n", "1-a | 1.1-b | 2-c"),
        ("## Tasks\n```\n- [ ] no\n```\n<!-- - [ ] no -->\n- [ ] a\n- [x](no)\n- [CI] no\n-[ ] no\n", "1-a"),
        ("## Tasks\n- [x] a\n- [~] b\n\t- [-] c\n- [/] d\n- [✓] e\n- [ ] f\n", "1xa | 2-b | 2.1-c | 3-d | 4xe | 5-f"),
        ("# S\n- [ ] a\n## Dev Notes\n- [ ] no\n## Acceptance Criteria\n- [ ] no\n## Work\n- [x] b\n", "1-a | 2xb"),
        ("- [ ] a\n\n## Tasks\n\n- [ ] b\n\n## More\n\n- [ ] no\n", "1-b"),
        ("## Tasks / Subtasks\r\n\r\n- [ ] a\r\n  - [x] b  \r\n", "1-a | 1.1xb"),
        ("## Tasks\n\n- [ ] \n- [x]\n", "1- | 2x"),
    ] {
        assert_eq!(render_tasks(story_text), expected, "{story_text}");
    }
}

#[test]
fn a_task_names_its_criteria() {
    let criteria_of =
        |task_text: &str| read_story("x.md", &format!("## Tasks\n- [ ] {task_text}\n")).tasks[0].criteria.clone();
    for (task_text, numbers) in [
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
        assert_eq!(criteria_of(task_text), numbers, "{task_text}");
    }
}

#[test]
fn files_are_paths_and_nothing_else() {
    let render_files = |story_text: &str| {
        let listed_files = read_story("x.md", &format!("### File List\n{story_text}\n## Next\n- no.rs\n")).files;
        listed_files.into_iter().map(|listed_file| listed_file.text).collect::<Vec<_>>().join(" ")
    };
    for (story_text, expected) in [
        ("- src/a.rs\n- src/a.rs\n* b.ts\n", "src/a.rs b.ts"),
        ("**New:**\n- `Makefile`\n- `a b.md` - x\n", "Makefile a b.md"),
        ("- [NEW] src/a.rs\n- Modified: src/b.rs (c)\n- deleted src/c.rs\n", "src/a.rs src/b.rs src/c.rs"),
        ("1. src/a.rs: what it does\n2. docs/\n", "src/a.rs docs/"),
        ("- Dockerfile\n- **New:** Makefile (x)\n- Nothing\n", "Dockerfile Makefile"),
        ("_None_\nNo files yet.\n- see https://a.b/c\n", ""),
        ("| File | What |\n", ""),
    ] {
        assert_eq!(render_files(story_text), expected, "{story_text}");
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
        let found = read_story(path, &format!("# {title}\n")).key.map(|key| key.to_string());
        assert_eq!(found.unwrap_or_default(), key, "{path} {title}");
    }
}

#[test]
fn ten_megabytes_are_read_in_one_pass() {
    let tasks = "- [ ] a (AC: 1) [src/a.rs:1]\n  - [x] [AI-Review][High] b [src/b.rs:2]\n".repeat(60_000);
    let deep_tasks: String = (0..2_000).map(|indent| format!("{}- [ ] x\n", " ".repeat(indent))).collect();
    let long_task = "(AC: 1-99,".repeat(100_000);
    let story_text = format!(
        "# Story 1.1: X\n## Tasks\n{tasks}{deep_tasks}- [ ] {long_task}\n### File List\n{}",
        "- src/x.rs\n".repeat(60_000)
    );
    let story = read_story("1-1-x.md", &story_text);
    assert_eq!(story.files.len(), 1);
    assert_eq!(story.follow_ups.len(), 1);
    assert!(story.task_progress().1 > 60_000);
}

proptest! {
    #[test]
    fn any_text_is_read_without_falling_over(text in "(?s).{0,200}") {
        let _ = read_story(&text, &text);
    }

    #[test]
    fn any_story_like_text_is_read_and_every_line_is_in_it(
        text in "(?s)(\u{feff})?(---\n)?([-# `*x:\\[\\](),\r\n\t1é]|status: |Status: |## Tasks\n\
            |- \\[ \\] |\\[AI-Review\\]|\\[Review\\]\\[Patch\\]|### File List\n|## Senior Developer Review\n\
            |Outcome: |Story 1.2|```\n|<!--|-->|AC: ){0,60}"
    ) {
        let story = read_story("1-2-x.md", &text);
        let lines = text.lines().count().max(1);
        tasks::visit_tasks(&story.tasks, &mut |task| assert!(task.line >= 1 && task.line <= lines));
        let others = story.follow_ups.iter().map(|one| one.line).chain(story.files.iter().map(|one| one.line));
        prop_assert!(others.chain(story.status.iter().map(|one| one.line)).all(|line| line >= 1 && line <= lines));
    }
}

/// The lines that only one of the texts has, with `-` and `+`.
fn render_difference(old_text: &str, new_text: &str) -> String {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old_text.split_inclusive('\n').collect(), new_text.split_inclusive('\n').collect());
    let common_start = old_lines.iter().zip(&new_lines).take_while(|(old_line, new_line)| old_line == new_line).count();
    let common_end = old_lines[common_start..]
        .iter()
        .rev()
        .zip(new_lines[common_start..].iter().rev())
        .take_while(|(old_line, new_line)| old_line == new_line)
        .count();
    let removed = old_lines[common_start..old_lines.len() - common_end].iter().map(|line| format!("-{line}"));
    let added = new_lines[common_start..new_lines.len() - common_end].iter().map(|line| format!("+{line}"));
    removed.chain(added).collect::<Vec<_>>().join(" ").replace('\r', "␍").replace('\n', "⏎")
}

/// Sets a status twice and checks what changed.
fn check_set_status(story_text: &str, new_status: StoryStatus, expected: &str) {
    let edited_text = edit::set_status(story_text, new_status).unwrap();
    assert_eq!(render_difference(story_text, &edited_text), expected, "{story_text:?}");
    assert_eq!(edit::set_status(&edited_text, new_status).unwrap(), edited_text, "{story_text:?}");
    let status_line = read_story("x.md", &edited_text).status.unwrap();
    assert_eq!(status_line.status, Some(new_status), "{story_text:?}");
}

#[test]
fn a_status_is_replaced_where_it_stands() {
    for (story_text, new_status, expected) in [
        ("# A\n\nStatus: review\n\n## Story\n", StoryStatus::Done, "-Status: review⏎ +Status: done⏎"),
        (
            "# A\r\n**Status:** `in-progress` (x)  \r\n",
            StoryStatus::Review,
            "-**Status:** `in-progress` (x)  ␍⏎ +**Status:** `review` (x)  ␍⏎",
        ),
        (
            "# A\nStatus: in-progress - waiting for Bob, see https://x.y/z  \n",
            StoryStatus::Review,
            "-Status: in-progress - waiting for Bob, see https://x.y/z  ⏎ +Status: review - waiting for Bob, see https://x.y/z  ⏎",
        ),
        (
            "# A\nStatus: Ready for Dev -> assigned to Amelia\n",
            StoryStatus::InProgress,
            "-Status: Ready for Dev -> assigned to Amelia⏎ +Status: in-progress -> assigned to Amelia⏎",
        ),
        (
            "# A\n\n## Status\n\n**In_Progress** <!-- x --> since May\n",
            StoryStatus::Done,
            "-**In_Progress** <!-- x --> since May⏎ +**done** <!-- x --> since May⏎",
        ),
        (
            "---\nstatus: \"in-progress, see Bob\" # x\n---\n",
            StoryStatus::Done,
            "-status: \"in-progress, see Bob\" # x⏎ +status: \"done, see Bob\" # x⏎",
        ),
        ("# A\n**Status:**\n", StoryStatus::Done, "-**Status:**⏎ +**Status:** done⏎"),
        ("# A\nStatus: <!-- x -->\n", StoryStatus::Done, "-Status: <!-- x -->⏎ +Status: done <!-- x -->⏎"),
        ("# A\nStatus:\n", StoryStatus::Done, "-Status:⏎ +Status: done⏎"),
        ("# A\nStatus:", StoryStatus::Done, "-Status: +Status: done"),
        ("# A\n## Status\n\nDraft\n", StoryStatus::Done, "-Draft⏎ +done⏎"),
        ("# A\nStatus: Done\n", StoryStatus::Done, ""),
        (
            "---\nstatus: \"review\" # x\n---\n# A\nStatus: review\n",
            StoryStatus::Done,
            "-status: \"review\" # x⏎ ----⏎ -# A⏎ -Status: review⏎ +status: \"done\" # x⏎ +---⏎ +# A⏎ +Status: done⏎",
        ),
        ("---\nstatus: review\n---\n# A\nStatus: done\n", StoryStatus::Done, "-status: review⏎ +status: done⏎"),
        (
            "---\ntype: 'feature'\nstatus: 'in-progress'\n---\n",
            StoryStatus::Review,
            "-status: 'in-progress'⏎ +status: 'in-review'⏎",
        ),
        ("# A\n\n## Story\n", StoryStatus::Done, "+Status: done⏎ +⏎"),
        ("# A", StoryStatus::Done, "-# A +# A⏎ +⏎ +Status: done"),
        ("", StoryStatus::Done, "+Status: done⏎"),
        ("\u{feff}x\r\n", StoryStatus::Done, "-\u{feff}x␍⏎ +\u{feff}Status: done␍⏎ +␍⏎ +x␍⏎"),
        ("---\na: 1\n---\n", StoryStatus::Done, "+Status: done⏎"),
    ] {
        check_set_status(story_text, new_status, expected);
    }
}

#[test]
fn a_line_that_is_no_status_of_the_story_stays_as_it_is() {
    for (story_text, new_status, expected) in [
        // Text about something else stays, and the story gets a status of its own.
        ("# A\n\n## Story\n- Status: one of open, held\n", StoryStatus::Done, "+Status: done⏎ +⏎"),
        ("# A\n\n## Story\nStatus: review\n", StoryStatus::Done, "+Status: done⏎ +⏎"),
        ("# A\n\n- Status: one of open, held\n", StoryStatus::Done, "+Status: done⏎ +⏎"),
        (
            "# A\n\n## B\n# API notes\nStatus: done is returned for every login\n",
            StoryStatus::Review,
            "+Status: review⏎ +⏎",
        ),
        ("## B\n# Notes\nStatus: 200 OK\n", StoryStatus::Done, "+Status: done⏎ +⏎"),
        ("# A\n\n## API\n### Status\nDone or not\n", StoryStatus::Review, "+Status: review⏎ +⏎"),
        // A story with a type is not a spec, and a spec's name for a state is only used in the front matter.
        (
            "---\ntype: story\n---\n# A\nStatus: in-progress\n",
            StoryStatus::Review,
            "-Status: in-progress⏎ +Status: review⏎",
        ),
        (
            "---\ntype: story\nstatus: in-progress\n---\n# A\n",
            StoryStatus::Review,
            "-status: in-progress⏎ +status: review⏎",
        ),
        (
            "---\nroute: one-shot\n---\n# A\nStatus: in-progress\n",
            StoryStatus::Review,
            "-Status: in-progress⏎ +Status: review⏎",
        ),
        (
            "---\nbaseline_revision: ab\nstatus: in-progress\n---\nStatus: in-progress\n",
            StoryStatus::Review,
            "-status: in-progress⏎ ----⏎ -Status: in-progress⏎ +status: in-review⏎ +---⏎ +Status: review⏎",
        ),
    ] {
        check_set_status(story_text, new_status, expected);
    }
}

#[test]
fn an_unsafe_change_is_refused_with_a_reason() {
    let refusals = [
        edit::set_status("---\nstatus: [\n---\n# A\n", StoryStatus::Done),
        edit::set_status("---\nstatus:\n---\n# A\n", StoryStatus::Done),
        edit::set_status("---\nstatus: |\n  review\n---\n# A\n", StoryStatus::Done),
        edit::set_status("# A\nStatus: done\nStatus: review\n", StoryStatus::Done),
        edit::set_status("# A\nStatus: waiting on 1-4\n", StoryStatus::Done),
        edit::set_status("# A\n## Status\n\nWaiting for legal\n", StoryStatus::Done),
        edit::set_status("# A\nStatus: Nearly There\n", StoryStatus::Review),
        edit::set_status("# A\nStatus: done-ish\n", StoryStatus::Review),
        edit::set_status("---\nstatus: waiting for Bob\n---\n# A\n", StoryStatus::Done),
        edit::tick_task("## Tasks\n- [ ] a\n", "2", true),
        edit::tick_follow_up("## Tasks\n- [ ] a\n", 2, true),
        edit::add_files("# A\n```\nnever closed\n", &["a.rs"]),
        edit::add_files("# A\n", &["a\nb"]),
        edit::add_follow_ups("# A\n", ReviewDialect::AiReview, &[new_follow_up("Odd]", "x", None)]),
        edit::add_follow_ups("# A\n", ReviewDialect::AiReview, &[new_follow_up("High", "  ", None)]),
        edit::add_follow_ups(
            "# A\n<!-- open\n- [ ] a\n",
            ReviewDialect::AiReview,
            &[new_follow_up("High", "x `-->`", None)],
        ),
    ];
    let reasons: Vec<String> =
        refusals.iter().map(|refusal| refusal.as_ref().expect_err("refused").to_string()).collect();
    insta::assert_snapshot!(reasons.join("\n"), @r#"
    invalid YAML: unclosed bracket '[' (in the front matter); fix the YAML and try again
    `status:` in the front matter is empty; add a status
    the status in the front matter is not a plain word; write it as `status: done`
    lines 2 and 3 have different statuses; remove one of them
    unknown status `waiting on 1-4`; use one of backlog, ready-for-dev, in-progress, review, done
    unknown status `Waiting for legal`; use one of backlog, ready-for-dev, in-progress, review, done
    unknown status `Nearly There`; use one of backlog, ready-for-dev, in-progress, review, done
    unknown status `done-ish`; use one of backlog, ready-for-dev, in-progress, review, done
    unknown status `waiting for Bob`; use one of backlog, ready-for-dev, in-progress, review, done
    unknown task 2; the story has 1; list the tasks: `tribunal story KEY`
    no review item on line 2; list the open items: `tribunal story KEY`
    the edited file would not read back as intended; edit the file by hand; its format is too unusual
    "a\nb" is not a path that can be listed; use the path of a file in the project
    "- [ ] [AI-Review][Odd]] x" would not read back as intended; use plain text, and give the location as file:line
    "- [ ] [AI-Review][High] " would not read back as intended; use plain text, and give the location as file:line
    the edited file would not read back as intended; edit the file by hand; its format is too unusual
    "#);
}

fn new_follow_up(kind: &str, story_text: &str, code_location: Option<&str>) -> edit::NewFollowUp {
    let kind = FollowUpKind::parse(kind);
    edit::NewFollowUp {
        done: kind == FollowUpKind::Defer,
        kind,
        text: story_text.into(),
        place: code_location.map(Into::into),
    }
}

#[test]
fn boxes_are_ticked_and_nothing_else() {
    for (story_text, task_id, is_done, expected) in [
        ("## Tasks\n- [ ] a\n\t* [ ] b\r\n", "1.1", true, "-\t* [ ] b␍⏎ +\t* [x] b␍⏎"),
        ("## Tasks\n1. [X] a", "1", false, "-1. [X] a +1. [ ] a"),
        ("## Tasks\n- [] a\n", "1", true, "-- [] a⏎ +- [x] a⏎"),
        ("## Tasks\n- [X] a\n", "1", true, ""),
        ("## Tasks\n- [x] a\n- [~] b\n- [ ] c\n", "2", true, "-- [~] b⏎ +- [x] b⏎"),
        ("## Tasks\n- [x] a\n- [~] b\n- [ ] c\n", "3", true, "-- [ ] c⏎ +- [x] c⏎"),
        ("## Tasks\n- [~] a\n", "1", false, ""),
        ("- [ ] a\n```\n- [ ] no\n```\n- [ ] b\n", "2", true, "-- [ ] b⏎ +- [x] b⏎"),
    ] {
        assert_eq!(
            render_difference(story_text, &edit::tick_task(story_text, task_id, is_done).unwrap()),
            expected,
            "{story_text}"
        );
    }
    let edited_text = edit::tick_follow_up(STORY, 36, true).unwrap();
    assert_eq!(edited_text.matches("[x]").count(), STORY.matches("[x]").count() + 2, "the review's own list, too");
}

#[test]
fn new_files_follow_the_last_one_in_its_style() {
    for (story_text, files, expected) in [
        ("### File List\n\n- a.rs\n\n## Next\n", vec!["b.rs", "a.rs", "b.rs"], "+- b.rs⏎"),
        ("### File List\r\n  * `a.rs` (new)\r\n", vec!["b c.rs"], "+  * `b c.rs`␍⏎"),
        ("### File List\n\n- a.rs\n", vec!["b c.rs", "Makefile"], "+- `b c.rs`⏎ +- Makefile⏎"),
        ("### File List\n\n- Makefile\n- justthis\n", vec!["Makefile", "justthis"], ""),
        ("### File List\n", vec!["b.rs"], "+⏎ +- b.rs⏎"),
        ("### File List\n\n_none_\n\n## Next\n", vec!["b.rs"], "+- b.rs⏎ +⏎"),
        ("### File List\n- a.rs", vec!["b.rs"], "-- a.rs +- a.rs⏎ +- b.rs"),
        ("## Dev Agent Record\n\nx\n\n## Change Log\n", vec!["b.rs"], "+### File List⏎ +⏎ +- b.rs⏎ +⏎"),
        (
            "# A\n\n## Senior Developer Review (AI)\n",
            vec!["b.rs"],
            "+## Dev Agent Record⏎ +⏎ +### File List⏎ +⏎ +- b.rs⏎ +⏎",
        ),
        ("# A\n", vec![], ""),
    ] {
        let edited_text = edit::add_files(story_text, &files).unwrap();
        assert_eq!(render_difference(story_text, &edited_text), expected, "{story_text}");
        assert_eq!(edit::add_files(&edited_text, &files).unwrap(), edited_text, "{story_text}");
    }
}

#[test]
fn follow_ups_are_added_once_in_their_dialect() {
    let severity_items =
        [new_follow_up("High", "the hash\nis fast", Some("src/a.rs:1")), new_follow_up("Low", "a name", None)];
    let finding_items =
        [new_follow_up("Decision", "Lock — how long?", None), new_follow_up("Defer", "old", Some("b.rs"))];
    for (story_text, dialect, items, expected) in [
        (
            "## Tasks / Subtasks\n\n- [ ] a\n\n## Dev Notes\n",
            ReviewDialect::AiReview,
            &severity_items,
            "+### Review Follow-ups (AI)⏎ +⏎ +- [ ] [AI-Review][High] the hash is fast [src/a.rs:1]⏎ +- [ ] [AI-Review][Low] a name⏎ +⏎",
        ),
        (
            "## Tasks\r\n- [ ] a\r\n### Review Follow-ups (AI)\r\n- [x] [AI-Review][Low] a name\r\n\r\n## Dev Notes\r\n",
            ReviewDialect::AiReview,
            &severity_items,
            "+- [ ] [AI-Review][High] the hash is fast [src/a.rs:1]␍⏎",
        ),
        (
            "# A\n",
            ReviewDialect::Findings,
            &finding_items,
            "+⏎ +## Tasks / Subtasks⏎ +⏎ +### Review Findings⏎ +⏎ +- [ ] [Review][Decision] Lock — how long?⏎ \
             +- [x] [Review][Defer] old [b.rs]⏎",
        ),
        (
            "# A\n- [ ] task\n## Dev Notes\n",
            ReviewDialect::Findings,
            &finding_items,
            "+⏎ +## Review Findings⏎ +⏎ +- [ ] [Review][Decision] Lock — how long?⏎ +- [x] [Review][Defer] old [b.rs]⏎",
        ),
    ] {
        let edited_text = edit::add_follow_ups(story_text, dialect, items).unwrap();
        assert_eq!(render_difference(story_text, &edited_text), expected, "{story_text}");
        assert_eq!(edit::add_follow_ups(&edited_text, dialect, items).unwrap(), edited_text, "{story_text}");
    }
}

#[test]
fn any_follow_up_is_written_and_everything_else_is_read_as_before() {
    let story_text = "# A\n\n## Tasks\n\n- [ ] a\n\n## Dev Notes\n\n- x\n\n### File List\n\n- a.rs\n\n<!-- b -->\n";
    for (item, expected_text, expected_place) in [
        (new_follow_up("High", "tab missing", Some("Makefile:2")), "tab missing", Some("Makefile:2")),
        (new_follow_up("High", "range", Some("Makefile:2-4")), "range", Some("Makefile:2-4")),
        (new_follow_up("High", "space", Some("docs/my file.md:3")), "space", Some("docs/my file.md:3")),
        (new_follow_up("High", "no path", Some("my file:3")), "no path (my file:3)", None),
        (new_follow_up("High", "bracket", Some("app/[id]/page.tsx:3")), "bracket (app/(id)/page.tsx:3)", None),
        (new_follow_up("High", "drops `<!--` at the end", None), "drops `<!--` at the end", None),
        (new_follow_up("High", "drops <!-- at ` the end", None), "drops &lt;!-- at ` the end", None),
        (new_follow_up("High", "see [a.rs:1]", Some("b.rs:2")), "see [a.rs:1]", Some("b.rs:2")),
        (new_follow_up("High", "[a.rs:1]", None), "(a.rs:1)", None),
    ] {
        let items = [new_follow_up("Low", "first", None), item, new_follow_up("Low", "last", Some("b.rs:1"))];
        let edited_text = edit::add_follow_ups(story_text, ReviewDialect::AiReview, &items).unwrap();
        let story = read_story("1-1-a.md", &edited_text);
        let found: Vec<(&str, Option<&str>)> =
            story.follow_ups.iter().map(|follow_up| (follow_up.text.as_str(), follow_up.place.as_deref())).collect();
        assert_eq!(found, [("first", None), (expected_text, expected_place), ("last", Some("b.rs:1"))]);
        assert_eq!(edit::add_follow_ups(&edited_text, ReviewDialect::AiReview, &items).unwrap(), edited_text);
        assert_eq!((story.files.len(), story.tasks.len()), (1, 1));
        edit::add_files(&edited_text, &["b.rs"]).unwrap();
    }
}

#[test]
fn a_criterion_about_comments_hides_nothing() {
    let story = read_story(
        "1-1-a.md",
        "# A\n\nStatus: review\n\n## Acceptance Criteria\n\n1. The sanitizer drops `<!--` at the end of input\n2. b\n\n\
         ## Tasks\n\n- [ ] a\n\n### File List\n\n- a.rs\n",
    );
    assert_eq!((story.criteria.len(), story.tasks.len(), story.files.len()), (2, 1, 1));
}

/// A story made of whole lines, so that edits often find what they look for.
fn story_texts() -> impl Strategy<Value = String> {
    let story_line = prop_oneof![
        Just("# Story 1.2: X"),
        Just("Status: review"),
        Just("**Status:** in-progress "),
        Just("Status: in-progress - waiting for Bob"),
        Just("Status: waiting on 1-4"),
        Just("Status:"),
        Just("- Status: one of open, held"),
        Just("* **Status**: `Ready for Dev` (x)"),
        Just("Draft, done soon"),
        Just("# Notes"),
        Just("## Story"),
        Just("## Status"),
        Just("## Acceptance Criteria"),
        Just("1. a"),
        Just("- Given b"),
        Just("## Tasks / Subtasks"),
        Just("- [ ] a (AC: 1)"),
        Just("\t- [x] b"),
        Just("  * [] c"),
        Just("- [~] d"),
        Just("### Review Follow-ups (AI)"),
        Just("- [ ] [AI-Review][High] d [e.rs:1]"),
        Just("### Review Findings"),
        Just("- [x] [Review][Patch] f"),
        Just("## Dev Notes"),
        Just("text  "),
        Just(""),
        Just("## Dev Agent Record"),
        Just("### File List"),
        Just("- g.rs"),
        Just("  * `h i.rs` (new)"),
        Just("```"),
        Just("<!-- x -->"),
        Just("<!--"),
        Just("-->"),
        Just("---"),
        Just("status: 'review'"),
        Just("type: feature"),
        Just("## Change Log"),
        Just("## Senior Developer Review (AI)"),
        Just("**Outcome:** Approve"),
    ];
    let line_ending = prop_oneof![Just("\n"), Just("\r\n")];
    let story_lines =
        prop::collection::vec((story_line, prop_oneof![9 => line_ending.clone(), 1 => Just("\n")]), 0..24);
    (any::<bool>(), any::<bool>(), story_lines, any::<bool>()).prop_map(
        |(has_byte_order_mark, has_front_matter, story_lines, cuts_last_ending)| {
            let body: String =
                story_lines.iter().map(|(story_line, line_ending)| format!("{story_line}{line_ending}")).collect();
            let front_matter = if has_front_matter { "---\nstatus: review\n---\n" } else { "" };
            let story_text = format!("{}{front_matter}{body}", if has_byte_order_mark { "\u{feff}" } else { "" });
            if cuts_last_ending { story_text.trim_end_matches(['\r', '\n']).to_string() } else { story_text }
        },
    )
}

/// Whether one text is the other with a status word replaced by this one, or with a new line for the status.
fn is_only_status_changed(old_text: &str, new_text: &str, status_word: &str) -> bool {
    let status_words =
        ["backlog", "ready-for-dev", "drafted", "in-progress", "in-review", "review", "done", "draft", "blocked"];
    let is_replaced = |(old_line, new_line): (&str, &str)| {
        let split_lines = new_line
            .match_indices(status_word)
            .map(|(match_offset, _)| (&new_line[..match_offset], &new_line[match_offset + status_word.len()..]));
        let mut replaced_words = split_lines
            .filter_map(|(before_match, after_match)| old_line.strip_prefix(before_match)?.strip_suffix(after_match));
        let is_word =
            |old_word: &str| status_words.contains(&old_word.to_lowercase().replace([' ', '_'], "-").as_str());
        let is_filled_in =
            || old_line.trim_end().ends_with(':') && new_line == old_line.replacen(':', &format!(": {status_word}"), 1);
        old_line == new_line || replaced_words.any(is_word) || is_filled_in()
    };
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old_text.split_inclusive('\n').collect(), new_text.split_inclusive('\n').collect());
    if old_lines.len() == new_lines.len() && old_lines.into_iter().zip(new_lines).all(is_replaced) {
        return true;
    }
    let status_line = format!("Status: {status_word}");
    let mut split_texts = new_text
        .match_indices(&status_line)
        .map(|(match_offset, _)| (&new_text[..match_offset], &new_text[match_offset + status_line.len()..]));
    split_texts.any(|(before_match, after_match)| {
        let trim_lengths = |text: &str| -> Vec<usize> { (0..=text.len().min(4)).collect() };
        trim_lengths(before_match).into_iter().any(|trimmed_count| {
            let (Some(kept_text), trimmed) = (
                before_match.get(..before_match.len() - trimmed_count),
                before_match.get(before_match.len() - trimmed_count..),
            ) else {
                return false;
            };
            trimmed.is_some_and(|trimmed| trimmed.trim().is_empty())
                && old_text.strip_prefix(kept_text).is_some_and(|remainder| {
                    after_match.strip_suffix(remainder).is_some_and(|inserted| inserted.trim().is_empty())
                })
        })
    })
}

#[test]
fn only_the_status_word_may_change() {
    for (old, new, expected) in [
        ("Status: review (x)\n", "Status: done (x)\n", true),
        ("Status: review (x)\n", "Status: done\n", false),
        ("Status: review\n# A \n", "Status: done\n# A\n", false),
        ("# A\nb\n", "# A\n\nStatus: done\nb\n", true),
        ("# A\nb\n", "# A\n\nStatus: done\n", false),
    ] {
        assert_eq!(is_only_status_changed(old, new, "done"), expected, "{old:?} {new:?}");
    }
}

/// The number of lines of the old text that are not in the new one, in the same order.
fn count_lost_lines(old_text: &str, new_text: &str) -> usize {
    let new_lines: Vec<&str> = new_text.split('\n').collect();
    let mut common_lengths = vec![0; new_lines.len() + 1];
    for line in old_text.split('\n') {
        let previous_row = common_lengths.clone();
        for (column, new_line) in new_lines.iter().enumerate() {
            common_lengths[column + 1] = if line == *new_line {
                previous_row[column] + 1
            } else {
                common_lengths[column].max(previous_row[column + 1])
            };
        }
    }
    old_text.split('\n').count() - common_lengths.last().copied().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn an_edit_keeps_every_other_line_and_says_what_was_meant(text in story_texts(), pick in 0usize..8) {
        let before = read_story("1-2-x.md", &text);
        if let Ok(new) = edit::set_status(&text, StoryStatus::Done) {
            prop_assert_eq!(read_story("1-2-x.md", &new).status.and_then(|line| line.status), Some(StoryStatus::Done));
            prop_assert!(is_only_status_changed(&text, &new, "done"), "{:?}", new);
            prop_assert_eq!(edit::set_status(&new, StoryStatus::Done).unwrap(), new);
        }
        let mut ids = Vec::new();
        tasks::visit_tasks(&before.tasks, &mut |task| ids.push((task.id.clone(), task.done)));
        if let Some((id, done)) = ids.get(pick) {
            // A box among the criteria belongs to a criterion as well; then nothing is changed.
            if let Ok(new) = edit::tick_task(&text, id, !done) {
                prop_assert!(count_lost_lines(&text, &new) <= 1);
                let back = edit::tick_task(&new, id, *done).unwrap();
                let folded = |text: &str| text.replace("[]", "[ ]").replace("[~]", "[ ]");
                prop_assert_eq!(folded(&back), folded(&text));
            }
        }
        if let Ok(new) = edit::add_files(&text, &["g.rs", "new one.rs", "b.rs"]) {
            let after = read_story("1-2-x.md", &new);
            prop_assert!(count_lost_lines(&text, &new) <= 1, "{:?}", new);
            prop_assert!(["g.rs", "new one.rs", "b.rs"].iter().all(|file| after.files.iter().any(|said| said.text == *file)));
            prop_assert_eq!((after.tasks.len(), after.criteria.len()), (before.tasks.len(), before.criteria.len()));
        }
        let items = [
            new_follow_up("High", "d", Some("e.rs:1")),
            new_follow_up("Low", "new", None),
            new_follow_up("Low", "<!-- `<!--`", Some("Makefile:1")),
        ];
        if let Ok(new) = edit::add_follow_ups(&text, ReviewDialect::AiReview, &items) {
            let after = read_story("1-2-x.md", &new);
            prop_assert!(count_lost_lines(&text, &new) <= 1, "{:?}", new);
            prop_assert_eq!(after.follow_ups.iter().filter(|one| one.text == "new").count(), 1);
            prop_assert_eq!(after.task_progress(), before.task_progress());
        }
    }

    #[test]
    fn any_text_can_be_edited_or_is_refused(text in "(?s)(\u{feff})?(---\nstatus: x\n---\n)?.{0,120}") {
        for status in StoryStatus::ALL {
            let _ = edit::set_status(&text, status);
        }
        let _ = edit::tick_task(&text, "1", true);
        let _ = edit::tick_follow_up(&text, 1, true);
        let _ = edit::add_files(&text, &["a.rs", &text]);
        let _ = edit::add_follow_ups(&text, ReviewDialect::Findings, &[new_follow_up("Patch", &text, Some(&text))]);
    }
}
