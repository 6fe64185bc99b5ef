//! The sprint board: shown as a tree, moved, and written by several processes at once; and reviews of a story with its
//! change.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command, thread, time::Duration};

use crate::common::Sandbox;

const BOARD: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
const STORIES: &str = "_bmad-output/implementation-artifacts";

const TEXT: &str = "\
# generated: 05-06-2-2025 21:30
project: Mill

development_status:
  epic-1: in-progress
  1-1-grind: done   # the first
  1-2-sift:   'review'
  1-3-pack: ready-for-dev
  epic-1-retrospective: optional

  epic-2: backlog
  2-6a-knead: backlog
action_items:
  - {epic: 1, action: grease the stone, owner: Dev, status: open}
";

const SIFT: &str = "\
# Story 1.2: Sift

Status: review

## Story

As a miller I want fine flour.

## Acceptance Criteria

1. No grain is left.

## Tasks / Subtasks

- [x] Make a sieve (AC: 1)
  - [ ] Test it

### Review Follow-ups (AI)

- [ ] [AI-Review][High] holes are too big [src/sieve.py:1]
";

fn mill() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("_bmad/bmm/config.yaml", "project_name: Mill\noutput_folder: _bmad-output\n");
    sandbox.write("_bmad/_config/manifest.yaml", "installation:\n  version: 6.3.0\nmodules: []\n");
    for skill in ["create-story", "dev-story", "code-review", "retrospective"] {
        let text = format!("---\nname: bmad-{skill}\n---\nRead ./workflow.md\n");
        sandbox.write(&format!(".claude/skills/bmad-{skill}/SKILL.md"), &text);
        sandbox.write(&format!(".claude/skills/bmad-{skill}/workflow.md"), "# x\n");
    }
    sandbox.write(BOARD, TEXT);
    sandbox.write(&format!("{STORIES}/1-2-sift.md"), SIFT);
    sandbox
}

#[test]
fn status_shows_the_sprint_as_a_tree_and_what_would_run_next() {
    let sandbox = mill();
    let ran = sandbox.run(&["status"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    insta::assert_snapshot!(sandbox.normal(&ran.out));
    let status = sandbox.json(&["status"]);
    let sprint = &status["sprint"];
    assert_eq!(sprint["next"]["key"], "1-2-sift");
    assert_eq!(sprint["next"]["command"], format!("/bmad-code-review {STORIES}/1-2-sift.md"));
    assert_eq!(sprint["epics"][0]["stories"][1]["tasks_done"], 1);
    sandbox.write(
        &format!("{STORIES}/epic-1-retro-2026-01-02.md"),
        "---\nepic: 1\nverdict: rejected\n---\n# Epic 1\n",
    );
    assert!(sandbox.run(&["status"]).out.contains("retrospective · optional · rejected"));
    for (from, to, next) in [
        ("'review'", "'done'", "next: develop 1-3-pack: it is the first that is ready"),
        (
            "ready-for-dev",
            "done",
            "next: create 2-6a-knead: it is the first in the backlog, and has to be written first",
        ),
        (
            "6a-knead: backlog",
            "6a-knead: done",
            "next: retrospective epic-1-retrospective: all stories are done",
        ),
        ("optional", "done", "next: nothing; everything on the board is done"),
    ] {
        sandbox.write(BOARD, &sandbox.read(BOARD).replace(from, to));
        let out = sandbox.run(&["status"]).out;
        assert!(out.contains(next), "{out}");
    }
}

#[test]
fn a_board_that_cannot_be_read_is_named_with_its_place_and_not_touched() {
    for (text, place) in [
        (TEXT.replace("  1-2-sift", "\t1-2-sift").into_bytes(), ":7:2: this is no YAML: tabs"),
        (
            TEXT.replace("1-3-pack", "1-2-sift").into_bytes(),
            ":8:3: `1-2-sift` stands here for the second time",
        ),
        (
            TEXT.replace("grease", "gr\u{e9}ase").chars().map(|c| c as u8).collect(),
            ":14:25: this is not UTF-8 text",
        ),
        (b"- a\n".to_vec(), ":1: there is no `development_status`"),
    ] {
        let sandbox = mill();
        fs::write(sandbox.path(BOARD), &text).unwrap();
        let moved = sandbox.run(&["board", "move", "1.2", "done"]);
        assert_eq!(moved.code, Some(3), "{}", moved.err);
        assert!(moved.err.contains(&format!("{BOARD}{place}")), "{place}: {}", moved.err);
        let status = sandbox.run(&["status"]);
        assert_eq!(status.code, Some(0));
        assert!(status.out.contains(place), "{}", status.out);
        assert_eq!(fs::read(sandbox.path(BOARD)).unwrap(), text);
    }
}

#[test]
fn a_move_changes_one_word_and_nothing_beside_it() {
    let sandbox = mill();
    let text = format!("\u{feff}{}", TEXT.replace('\n', "\r\n"));
    sandbox.write(BOARD, &text);
    let ran = sandbox.run(&["board", "move", "1.2", "done"]);
    let story = format!("{STORIES}/1-2-sift.md");
    let said = format!("✓ Status: done · {story}\n✓ 1-2-sift: review → done · {BOARD}:7\n");
    assert_eq!((ran.code, ran.out), (Some(0), said));
    assert_eq!(sandbox.read(&story), SIFT.replace("Status: review", "Status: done"));
    assert_eq!(sandbox.read(BOARD), text.replace("'review'", "'done'"));
    let names: Vec<_> =
        fs::read_dir(sandbox.path(STORIES)).unwrap().flatten().map(|item| item.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let again = sandbox.run(&["board", "move", "1-2-sift", "done"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), "1-2-sift is done already\n"));
    // Starting a story also starts its epic.
    let ran = sandbox.run(&["board", "move", "2.6a", "ready-for-dev", "--dry-run"]);
    insta::assert_snapshot!(ran.out, @r"
    would move epic-2: backlog → in-progress · _bmad-output/implementation-artifacts/sprint-status.yaml:11
    would move 2-6a-knead: backlog → ready-for-dev · _bmad-output/implementation-artifacts/sprint-status.yaml:12
    ");
    assert_eq!(sandbox.read(BOARD), text.replace("'review'", "'done'"));
    // A dry run takes no lock.
    sandbox.write(&format!("{BOARD}.lock"), "somebody's\n");
    assert_eq!(sandbox.run(&["board", "move", "2.6a", "ready-for-dev", "--dry-run"]).code, Some(0));
}

#[test]
fn what_may_not_move_is_refused_with_the_reason_and_what_to_type() {
    let sandbox = mill();
    let said = |args: &[&str]| {
        let ran = sandbox.run(&[&["board", "move"], args].concat());
        format!("{} {}", ran.code.unwrap_or(-1), ran.err)
    };
    let all: Vec<String> = [
        ["1.1", "review"],
        ["1.3", "done"],
        ["epic-1", "done"],
        ["1.3", "redy-for-dev"],
        ["epic-1", "review"],
        ["1-3-pakc", "review"],
        ["7.7", "review"],
        ["2.6a", "in-progress"],
    ]
    .iter()
    .map(|args| said(args))
    .collect();
    insta::assert_snapshot!(all.join("\n"));
    assert_eq!(sandbox.read(BOARD), TEXT);
    assert_eq!(sandbox.read(&format!("{STORIES}/1-2-sift.md")), SIFT);
    let forced = sandbox.run(&["board", "move", "1.1", "backlog", "--anyway"]);
    assert_eq!(forced.code, Some(0));
    assert_eq!(sandbox.read(BOARD), TEXT.replace("grind: done", "grind: backlog"));
}

#[test]
fn a_board_out_of_the_project_is_not_written_and_a_foreign_lock_is_respected() {
    let sandbox = mill();
    let elsewhere = sandbox.path("../board.yaml");
    fs::rename(sandbox.path(BOARD), &elsewhere).unwrap();
    symlink(&elsewhere, sandbox.path(BOARD)).unwrap();
    let ran = sandbox.run(&["board", "move", "1.2", "done"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("this is a link out of the project"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), TEXT);
    fs::remove_file(sandbox.path(BOARD)).unwrap();
    sandbox.write(BOARD, TEXT);
    sandbox.write(&format!("{BOARD}.lock"), "somebody's\n");
    let ran = sandbox.run(&["board", "move", "1.2", "done"]);
    assert_eq!(ran.code, Some(5));
    assert!(ran.err.contains("is locked: another program made it"), "{}", ran.err);
    assert_eq!(sandbox.read(BOARD), TEXT);
}

#[test]
fn a_story_is_changed_in_place_and_says_what_a_review_left() {
    let sandbox = mill();
    let story = format!("{STORIES}/1-2-sift.md");
    let ran = sandbox.run(&["story", "1.2", "--tick", "1.1", "--add-file", "src/sieve.py", "--dry-run"]);
    assert_eq!(ran.out, "would be task 1.1 ticked\nwould be src/sieve.py added to the list of files\n");
    assert_eq!(sandbox.read(&story), SIFT);
    assert_eq!(sandbox.run(&["story", "1.2", "--tick", "1.1"]).code, Some(0));
    assert_eq!(sandbox.read(&story), SIFT.replace("- [ ] Test it", "- [x] Test it"));
    let again = sandbox.run(&["story", &story, "--tick", "1.1"]);
    assert_eq!(again.out, format!("{story} says so already\n"));
    let wrong = sandbox.run(&["story", "1.2", "--tick", "7"]);
    assert_eq!(wrong.code, Some(3));
    assert!(wrong.err.contains("there is no task 7"), "{}", wrong.err);
    let missing = sandbox.run(&["story", "1.3"]);
    assert_eq!(missing.code, Some(2));
    let left = sandbox.run(&["story", "1.2", "--tick-follow-up", "20"]);
    assert_eq!(left.out, "✓ follow-up of line 20 ticked\n", "{}", left.err);
    assert!(sandbox.read(&story).ends_with("- [x] [AI-Review][High] holes are too big [src/sieve.py:1]\n"));
    sandbox.write(&story, &SIFT.replace("- [ ] Test it", "- [x] Test it"));
    // Open findings of a review are added to the story once, in the format its file uses.
    sandbox.write(
        "../agent.sh",
        "cat >/dev/null\ncat <<'E'\nfindings:\n\
            - {severity: high, category: x, description: flour is not defined, quote: \"As a miller I want fine flour.\"}\nE\n",
    );
    let agent = sandbox.path("../agent.sh");
    sandbox.write(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent:?}]}}}}\n\
             tasks: {{retry_after: 0, required_issues: 0}}\n"
        ),
    );
    let reviewed = sandbox.run(&["review", &story, "--no-fix"]);
    assert_eq!(reviewed.code, Some(3), "{}{}", reviewed.out, reviewed.err);
    assert!(sandbox.run(&["status"]).out.contains("1 follow-up · 1 finding open"));
    let before = sandbox.read(&story);
    let ran = sandbox.run(&["story", "1.2", "--follow-ups", &sandbox.last_run()]);
    assert_eq!(ran.out, "✓ F1 left to do: flour is not defined\n", "{}", ran.err);
    let line = format!("- [ ] [AI-Review][High] flour is not defined [{story}:7]\n");
    assert_eq!(sandbox.read(&story), format!("{before}{line}"));
    sandbox.run(&["story", "1.2", "--follow-ups", &sandbox.last_run()]);
    assert_eq!(sandbox.read(&story), format!("{before}{line}"));
}

#[test]
fn a_story_follows_the_board_only_where_both_said_the_same() {
    let sandbox = mill();
    let story = format!("{STORIES}/1-2-sift.md");
    for (said, to, then) in [
        ("Status: review", "done", "Status: done"),
        ("Status: done", "done", "Status: done"),
        ("Status: in-progress", "done", "Status: in-progress"),
        ("Status: blocked", "in-progress", "Status: blocked"),
        (
            "Status: review - Bob looks at it, see #12",
            "in-progress",
            "Status: in-progress - Bob looks at it, see #12",
        ),
    ] {
        sandbox.write(BOARD, TEXT);
        sandbox.write(&story, &SIFT.replace("Status: review", said));
        let ran = sandbox.run(&["board", "move", "1.2", to]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(sandbox.read(&story), SIFT.replace("Status: review", then), "{said}");
        let left = ran.err.contains("it stays as it is");
        assert_eq!(left, !then.contains(to), "{said}: {}", ran.err);
        // Moving again changes nothing, because the board has this status already.
        sandbox.write(&story, SIFT);
        assert_eq!(sandbox.run(&["board", "move", "1.2", to]).code, Some(0));
        assert_eq!(sandbox.read(&story), SIFT);
    }
    sandbox.write(BOARD, TEXT);
    sandbox.write(&story, &SIFT.replace("Status: review", "Status: blocked"));
    assert!(sandbox.run(&["status"]).out.contains("its file says blocked"));
    let validated = sandbox.run(&["validate"]).out;
    assert!(validated.contains("the story says blocked, the board review"), "{validated}");
}

#[test]
fn a_story_s_file_is_its_own_wherever_the_board_says_it_is() {
    let sandbox = mill();
    sandbox.write(
        BOARD,
        &TEXT.replace(
            "  1-3-pack: ready-for-dev\n",
            "  1-3-pack: ready-for-dev\n  1-2-sieve: ready-for-dev\n",
        ),
    );
    // The file of another story is not used, even if it has the same number.
    let other = sandbox.run(&["story", "1-2-sieve", "--tick", "1.1"]);
    assert_eq!(other.code, Some(2), "{}", other.out);
    assert_eq!(sandbox.read(&format!("{STORIES}/1-2-sift.md")), SIFT);
    sandbox.write(BOARD, &TEXT.replace("project: Mill", "story_location: \"{project-root}/docs/stories\""));
    fs::rename(sandbox.path(&format!("{STORIES}/1-2-sift.md")), sandbox.path(&format!("{STORIES}/x.md")))
        .unwrap();
    sandbox.write("docs/stories/1-2-sift.md", SIFT);
    let ran = sandbox.run(&["board", "move", "1.2", "done"]);
    assert!(ran.out.contains("✓ Status: done · docs/stories/1-2-sift.md"), "{}{}", ran.out, ran.err);
    assert_eq!(sandbox.run(&["story", "1.2"]).code, Some(0));
}

#[test]
fn folders_out_of_the_project_are_not_worked_on() {
    let sandbox = mill();
    let config = |folder: &str| {
        let text = format!("project_name: Mill\nimplementation_artifacts: \"{folder}\"\n");
        sandbox.write("_bmad/bmm/config.yaml", &text);
    };
    for folder in ["/srv/elsewhere", "{project-root}/../elsewhere"] {
        config(folder);
        let ran = sandbox.run(&["board", "move", "1.2", "done"]);
        assert_eq!(ran.code, Some(3), "{}", ran.out);
        assert!(ran.err.contains("_bmad/bmm/config.yaml:2: `implementation_artifacts` is"), "{}", ran.err);
        assert_eq!(sandbox.read(BOARD), TEXT);
        assert!(sandbox.run(&["status"]).out.contains("`implementation_artifacts` is"));
    }
    config(&sandbox.root().canonicalize().unwrap().join(STORIES).display().to_string());
    let ran = sandbox.run(&["board", "move", "1.2", "done"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = sandbox.run(&["validate", "--for", "trace"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.out.contains("trace cannot be run here"), "{}", ran.out);
}

/// Two processes move the stories of their own epic step by step on one board.
#[test]
fn two_who_hammer_one_board_lose_no_move() {
    const STORIES_EACH: u32 = 6;
    let sandbox = mill();
    let mut text = "development_status:\n".to_string();
    for epic in [1, 2] {
        text += &format!("  epic-{epic}: in-progress   # {epic}\n");
        text.extend((1..=STORIES_EACH).map(|story| format!("  {epic}-{story}-x: backlog\n")));
    }
    sandbox.write(BOARD, &text);
    thread::scope(|scope| {
        for epic in [1, 2] {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for story in 1..=STORIES_EACH {
                    for state in ["ready-for-dev", "in-progress", "review", "done"] {
                        let key = format!("{epic}-{story}-x");
                        // Exit code 5 means that the lock was held for too long; the move is tried again.
                        let mut code = Some(5);
                        while code == Some(5) {
                            code = sandbox.run(&["board", "move", &key, state]).code;
                        }
                        assert_eq!(code, Some(0), "{key} {state}");
                    }
                }
            });
        }
    });
    assert_eq!(sandbox.read(BOARD), text.replace("backlog", "done"));
}

/// The process is killed right before the new board replaces the old one, and right after.
#[test]
fn a_killed_writer_leaves_a_whole_board_and_a_lock_that_goes_in_time() {
    for (when, there) in [("before", TEXT.to_string()), ("after", TEXT.replace("'review'", "'done'"))] {
        let sandbox = mill();
        let fault = format!("{when}:write:sprint-status.yaml");
        let killed =
            sandbox.command(&["board", "move", "1.2", "done"]).env("TRIBUNAL_FAULT", fault).output().unwrap();
        assert_eq!(killed.status.code(), None, "it was to be killed");
        assert_eq!(sandbox.read(BOARD), there);
        let soon = sandbox.run(&["board", "move", "1.3", "in-progress"]);
        assert_eq!(soon.code, Some(5));
        assert!(
            soon.err.contains("which is dead, left it") && soon.err.contains("half a minute"),
            "{}",
            soon.err
        );
        let lock = sandbox.path(&format!("{BOARD}.lock"));
        let older = fs::metadata(&lock).unwrap().modified().unwrap() - Duration::from_secs(31);
        fs::File::options().write(true).open(&lock).unwrap().set_modified(older).unwrap();
        let later = sandbox.run(&["board", "move", "1.3", "in-progress"]);
        assert_eq!(later.code, Some(0), "{}", later.err);
        assert_eq!(sandbox.read(BOARD), there.replace("pack: ready-for-dev", "pack: in-progress"));
        assert!(!lock.exists());
        assert_eq!(sandbox.litter(), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_story_is_reviewed_with_what_changed_since_its_work_began() {
    let sandbox = mill();
    let (agent, seen) = (sandbox.path("../agent.sh"), sandbox.path("../seen"));
    fs::create_dir(&seen).unwrap();
    let script = format!("cat > \"$(mktemp '{}'/XXXXXX)\"\necho 'findings: []'\n", seen.display());
    sandbox.write("../agent.sh", &script);
    sandbox.write(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent:?}]}}}}\n\
             tasks: {{retry_after: 0, required_issues: 0}}\n"
        ),
    );
    sandbox.write("src/sieve.py", "holes = 9\n");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e@e"]).args(args).current_dir(sandbox.root());
        sandbox.at_home(&mut git);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    let began = git(&["rev-parse", "HEAD"]);
    sandbox.write("src/sieve.py", "holes = 3\n");
    git(&["commit", "-q", "-am", "two"]);
    sandbox.write("src/new.py", "grain = 0\n");
    sandbox.write(&format!("{STORIES}/1-2-sift.md"), &format!("---\nbaseline_commit: {began}\n---\n{SIFT}"));
    let ran = sandbox.run(&["review", "--story", "1.2", "--no-fix"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let subjects: Vec<String> = sandbox.json(&["runs"])["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            let subject = &run["subject"];
            let files = subject["files"].as_array().into_iter().flatten();
            let files: Vec<&str> = files.filter_map(|file| file["path"].as_str()).collect();
            format!("{} {} {}", subject["subject"], subject["path"], files.join(" "))
        })
        .collect();
    let mut subjects = subjects;
    subjects.sort();
    assert_eq!(
        subjects,
        ["\"change\" null src/new.py src/sieve.py", &format!("\"document\" \"{STORIES}/1-2-sift.md\" ")]
    );
    let prompts = fs::read_dir(&seen).unwrap().flatten();
    let prompts: Vec<String> = prompts.map(|item| fs::read_to_string(item.path()).unwrap()).collect();
    assert!(
        prompts.iter().any(|prompt| prompt.contains("No grain is left.") && prompt.contains("grain = 0"))
    );
    // The story file does not exist yet.
    let ran = sandbox.run(&["review", "--story", "1-3"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err.contains("1-3-pack has no file yet") && ran.err.contains("/bmad-create-story 1-3-pack"),
        "{}",
        ran.err
    );
}
