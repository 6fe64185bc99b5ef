//! The sprint board: shown as a tree, moved, and written by several processes at once; and reviews of a story with its
//! change.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command, thread, time::Duration};

use crate::common::Sandbox;

const BOARD_FILE: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
const STORIES_DIR: &str = "_bmad-output/implementation-artifacts";

const BOARD_TEXT: &str = "\
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

const SIFT_STORY: &str = "\
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

fn sandbox_with_sprint() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_file("_bmad/bmm/config.yaml", "project_name: Mill\noutput_folder: _bmad-output\n");
    sandbox.write_file("_bmad/_config/manifest.yaml", "installation:\n  version: 6.3.0\nmodules: []\n");
    for skill in ["create-story", "dev-story", "code-review", "retrospective"] {
        let skill_text = format!("---\nname: bmad-{skill}\n---\nRead ./workflow.md\n");
        sandbox.write_file(&format!(".claude/skills/bmad-{skill}/SKILL.md"), &skill_text);
        sandbox.write_file(&format!(".claude/skills/bmad-{skill}/workflow.md"), "# x\n");
    }
    sandbox.write_file(BOARD_FILE, BOARD_TEXT);
    sandbox.write_file(&format!("{STORIES_DIR}/1-2-sift.md"), SIFT_STORY);
    sandbox
}

#[test]
fn status_shows_the_sprint_as_a_tree_with_the_next_step() {
    let sandbox = sandbox_with_sprint();
    let output = sandbox.run_tribunal(&["status"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    insta::assert_snapshot!(sandbox.normalize_output(&output.stdout));
    let status = sandbox.run_json(&["status"]);
    let sprint = &status["sprint"];
    assert_eq!(sprint["next"]["key"], "1-2-sift");
    assert_eq!(sprint["next"]["command"], format!("/bmad-code-review {STORIES_DIR}/1-2-sift.md"));
    assert_eq!(sprint["epics"][0]["stories"][1]["tasks_done"], 1);
    sandbox.write_file(
        &format!("{STORIES_DIR}/epic-1-retro-2026-01-02.md"),
        "---\nepic: 1\nverdict: rejected\n---\n# Epic 1\n",
    );
    assert!(sandbox.run_tribunal(&["status"]).stdout.contains("retrospective · optional · rejected"));
    for (old_status, new_status, expected_next) in [
        ("'review'", "'done'", "next: create 1-3-pack (first story that is ready, but it has no story file)"),
        (
            "ready-for-dev",
            "done",
            "next: create 2-6a-knead (first in the backlog; its story file has to be written first)",
        ),
        ("6a-knead: backlog", "6a-knead: done", "next: retrospective epic-1-retrospective (all stories are done"),
        ("optional", "done", "next: nothing; everything on the board is done"),
    ] {
        sandbox.write_file(BOARD_FILE, &sandbox.read_file(BOARD_FILE).replace(old_status, new_status));
        let status_text = sandbox.run_tribunal(&["status"]).stdout;
        assert!(status_text.contains(expected_next), "{status_text}");
    }
}

#[test]
fn a_board_that_cannot_be_read_is_reported_with_its_line_and_not_touched() {
    for (board_bytes, expected_problem) in [
        (BOARD_TEXT.replace("  1-2-sift", "\t1-2-sift").into_bytes(), ":7:2: invalid YAML: tabs"),
        (BOARD_TEXT.replace("1-3-pack", "1-2-sift").into_bytes(), ":8:3: duplicate key `1-2-sift`"),
        (
            BOARD_TEXT.replace("grease", "gr\u{e9}ase").chars().map(|character| character as u8).collect(),
            ":14:25: not valid UTF-8",
        ),
        (b"- a\n".to_vec(), ":1: missing key `development_status`"),
    ] {
        let sandbox = sandbox_with_sprint();
        fs::write(sandbox.path_of(BOARD_FILE), &board_bytes).unwrap();
        let move_output = sandbox.run_tribunal(&["board", "move", "1.2", "done"]);
        assert_eq!(move_output.exit_code, Some(3), "{}", move_output.stderr);
        assert!(
            move_output.stderr.contains(&format!("{BOARD_FILE}{expected_problem}")),
            "{expected_problem}: {}",
            move_output.stderr
        );
        let status = sandbox.run_tribunal(&["status"]);
        assert_eq!(status.exit_code, Some(0));
        assert!(status.stdout.contains(expected_problem), "{}", status.stdout);
        assert_eq!(fs::read(sandbox.path_of(BOARD_FILE)).unwrap(), board_bytes);
    }
}

#[test]
fn a_move_changes_one_word_and_nothing_else() {
    let sandbox = sandbox_with_sprint();
    let board_text = format!("\u{feff}{}", BOARD_TEXT.replace('\n', "\r\n"));
    sandbox.write_file(BOARD_FILE, &board_text);
    let output = sandbox.run_tribunal(&["board", "move", "1.2", "done"]);
    let story_path = format!("{STORIES_DIR}/1-2-sift.md");
    let expected_output = format!("✓ Status: done · {story_path}\n✓ 1-2-sift: review → done · {BOARD_FILE}:7\n");
    assert_eq!((output.exit_code, output.stdout), (Some(0), expected_output));
    assert_eq!(sandbox.read_file(&story_path), SIFT_STORY.replace("Status: review", "Status: done"));
    assert_eq!(sandbox.read_file(BOARD_FILE), board_text.replace("'review'", "'done'"));
    let file_names: Vec<_> =
        fs::read_dir(sandbox.path_of(STORIES_DIR)).unwrap().flatten().map(|dir_entry| dir_entry.file_name()).collect();
    assert_eq!(file_names.len(), 2, "{file_names:?}");
    let second_move = sandbox.run_tribunal(&["board", "move", "1-2-sift", "done"]);
    assert_eq!((second_move.exit_code, second_move.stdout.as_str()), (Some(0), "1-2-sift is already done\n"));
    // Starting a story also starts its epic.
    let output = sandbox.run_tribunal(&["board", "move", "2.6a", "ready-for-dev", "--dry-run"]);
    insta::assert_snapshot!(output.stdout, @r"
    would move epic-2: backlog → in-progress · _bmad-output/implementation-artifacts/sprint-status.yaml:11
    would move 2-6a-knead: backlog → ready-for-dev · _bmad-output/implementation-artifacts/sprint-status.yaml:12
    ");
    assert_eq!(sandbox.read_file(BOARD_FILE), board_text.replace("'review'", "'done'"));
    // A dry run takes no lock.
    sandbox.write_file(&format!("{BOARD_FILE}.lock"), "foreign\n");
    assert_eq!(sandbox.run_tribunal(&["board", "move", "2.6a", "ready-for-dev", "--dry-run"]).exit_code, Some(0));
}

#[test]
fn an_invalid_move_is_refused_with_the_reason_and_the_command_to_type() {
    let sandbox = sandbox_with_sprint();
    let refusal_of = |args: &[&str]| {
        let output = sandbox.run_tribunal(&[&["board", "move"], args].concat());
        format!("{} {}", output.exit_code.unwrap_or(-1), output.stderr)
    };
    let refusals: Vec<String> = [
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
    .map(|args| refusal_of(args))
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
    assert_eq!(sandbox.read_file(BOARD_FILE), BOARD_TEXT);
    assert_eq!(sandbox.read_file(&format!("{STORIES_DIR}/1-2-sift.md")), SIFT_STORY);
    let forced_move = sandbox.run_tribunal(&["board", "move", "1.1", "backlog", "--anyway"]);
    assert_eq!(forced_move.exit_code, Some(0));
    assert_eq!(sandbox.read_file(BOARD_FILE), BOARD_TEXT.replace("grind: done", "grind: backlog"));
}

#[test]
fn a_board_outside_the_project_is_not_written_and_a_foreign_lock_is_respected() {
    let sandbox = sandbox_with_sprint();
    let outside_board = sandbox.path_of("../board.yaml");
    fs::rename(sandbox.path_of(BOARD_FILE), &outside_board).unwrap();
    symlink(&outside_board, sandbox.path_of(BOARD_FILE)).unwrap();
    let output = sandbox.run_tribunal(&["board", "move", "1.2", "done"]);
    assert_eq!(output.exit_code, Some(3));
    assert!(output.stderr.contains("leads out of the project through a link"), "{}", output.stderr);
    assert_eq!(fs::read_to_string(&outside_board).unwrap(), BOARD_TEXT);
    fs::remove_file(sandbox.path_of(BOARD_FILE)).unwrap();
    sandbox.write_file(BOARD_FILE, BOARD_TEXT);
    sandbox.write_file(&format!("{BOARD_FILE}.lock"), "foreign\n");
    let output = sandbox.run_tribunal(&["board", "move", "1.2", "done"]);
    assert_eq!(output.exit_code, Some(5));
    assert!(output.stderr.contains("is locked: another program created the lock"), "{}", output.stderr);
    assert_eq!(sandbox.read_file(BOARD_FILE), BOARD_TEXT);
}

#[test]
fn a_story_is_edited_in_place_and_gets_the_open_findings_of_its_review() {
    let sandbox = sandbox_with_sprint();
    let story_path = format!("{STORIES_DIR}/1-2-sift.md");
    let output = sandbox.run_tribunal(&["story", "1.2", "--tick", "1.1", "--add-file", "src/sieve.py", "--dry-run"]);
    assert_eq!(output.stdout, "dry run: task 1.1 ticked\ndry run: src/sieve.py added to the file list\n");
    assert_eq!(sandbox.read_file(&story_path), SIFT_STORY);
    assert_eq!(sandbox.run_tribunal(&["story", "1.2", "--tick", "1.1"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file(&story_path), SIFT_STORY.replace("- [ ] Test it", "- [x] Test it"));
    let second_tick = sandbox.run_tribunal(&["story", &story_path, "--tick", "1.1"]);
    assert_eq!(second_tick.stdout, format!("{story_path} is already up to date\n"));
    let wrong_task = sandbox.run_tribunal(&["story", "1.2", "--tick", "7"]);
    assert_eq!(wrong_task.exit_code, Some(3));
    assert!(wrong_task.stderr.contains("unknown task 7"), "{}", wrong_task.stderr);
    let missing_story = sandbox.run_tribunal(&["story", "1.3"]);
    assert_eq!(missing_story.exit_code, Some(2));
    let follow_up_tick = sandbox.run_tribunal(&["story", "1.2", "--tick-follow-up", "20"]);
    assert_eq!(follow_up_tick.stdout, "✓ follow-up on line 20 ticked\n", "{}", follow_up_tick.stderr);
    assert!(sandbox.read_file(&story_path).ends_with("- [x] [AI-Review][High] holes are too big [src/sieve.py:1]\n"));
    sandbox.write_file(&story_path, &SIFT_STORY.replace("- [ ] Test it", "- [x] Test it"));
    // Open findings of a review are added to the story once, in the format its file uses.
    sandbox.write_file(
        "../agent.sh",
        "cat >/dev/null\ncat <<'E'\nfindings:\n\
            - {severity: high, category: x, description: flour is not defined, quote: \"As a miller I want fine flour.\"}\nE\n",
    );
    let agent = sandbox.path_of("../agent.sh");
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent:?}]}}}}\n\
             tasks: {{retry_after: 0, required_issues: 0}}\n"
        ),
    );
    let review_output = sandbox.run_tribunal(&["review", &story_path, "--no-fix"]);
    assert_eq!(review_output.exit_code, Some(3), "{}{}", review_output.stdout, review_output.stderr);
    assert!(sandbox.run_tribunal(&["status"]).stdout.contains("1 follow-up · 1 finding open"));
    let text_before = sandbox.read_file(&story_path);
    let output = sandbox.run_tribunal(&["story", "1.2", "--follow-ups", &sandbox.last_run_id()]);
    assert_eq!(output.stdout, "✓ F1 added as a follow-up: flour is not defined\n", "{}", output.stderr);
    let follow_up_line = format!("- [ ] [AI-Review][High] flour is not defined [{story_path}:7]\n");
    assert_eq!(sandbox.read_file(&story_path), format!("{text_before}{follow_up_line}"));
    sandbox.run_tribunal(&["story", "1.2", "--follow-ups", &sandbox.last_run_id()]);
    assert_eq!(sandbox.read_file(&story_path), format!("{text_before}{follow_up_line}"));
}

#[test]
fn a_story_follows_the_board_only_if_both_had_the_same_status() {
    let sandbox = sandbox_with_sprint();
    let story_path = format!("{STORIES_DIR}/1-2-sift.md");
    for (story_status, board_status, expected_status) in [
        ("Status: review", "done", "Status: done"),
        ("Status: done", "done", "Status: done"),
        ("Status: in-progress", "done", "Status: in-progress"),
        ("Status: blocked", "in-progress", "Status: blocked"),
        ("Status: review - Bob looks at it, see #12", "in-progress", "Status: in-progress - Bob looks at it, see #12"),
    ] {
        sandbox.write_file(BOARD_FILE, BOARD_TEXT);
        sandbox.write_file(&story_path, &SIFT_STORY.replace("Status: review", story_status));
        let output = sandbox.run_tribunal(&["board", "move", "1.2", board_status]);
        assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
        assert_eq!(
            sandbox.read_file(&story_path),
            SIFT_STORY.replace("Status: review", expected_status),
            "{story_status}"
        );
        let is_left_alone = output.stderr.contains("was not changed: its status");
        assert_eq!(is_left_alone, !expected_status.contains(board_status), "{story_status}: {}", output.stderr);
        // Moving again changes nothing, because the board has this status already.
        sandbox.write_file(&story_path, SIFT_STORY);
        assert_eq!(sandbox.run_tribunal(&["board", "move", "1.2", board_status]).exit_code, Some(0));
        assert_eq!(sandbox.read_file(&story_path), SIFT_STORY);
    }
    sandbox.write_file(BOARD_FILE, BOARD_TEXT);
    sandbox.write_file(&story_path, &SIFT_STORY.replace("Status: review", "Status: blocked"));
    assert!(sandbox.run_tribunal(&["status"]).stdout.contains("its file says blocked"));
    let validation_text = sandbox.run_tribunal(&["validate"]).stdout;
    assert!(validation_text.contains("the story says blocked, but the board says review"), "{validation_text}");
}

#[test]
fn a_story_file_is_found_by_its_full_key_where_the_board_says() {
    let sandbox = sandbox_with_sprint();
    sandbox.write_file(
        BOARD_FILE,
        &BOARD_TEXT.replace("  1-3-pack: ready-for-dev\n", "  1-3-pack: ready-for-dev\n  1-2-sieve: ready-for-dev\n"),
    );
    // The file of another story is not used, even if it has the same number.
    let other_story = sandbox.run_tribunal(&["story", "1-2-sieve", "--tick", "1.1"]);
    assert_eq!(other_story.exit_code, Some(2), "{}", other_story.stdout);
    assert_eq!(sandbox.read_file(&format!("{STORIES_DIR}/1-2-sift.md")), SIFT_STORY);
    sandbox.write_file(
        BOARD_FILE,
        &BOARD_TEXT.replace("project: Mill", "story_location: \"{project-root}/docs/stories\""),
    );
    fs::rename(sandbox.path_of(&format!("{STORIES_DIR}/1-2-sift.md")), sandbox.path_of(&format!("{STORIES_DIR}/x.md")))
        .unwrap();
    sandbox.write_file("docs/stories/1-2-sift.md", SIFT_STORY);
    let output = sandbox.run_tribunal(&["board", "move", "1.2", "done"]);
    assert!(output.stdout.contains("✓ Status: done · docs/stories/1-2-sift.md"), "{}{}", output.stdout, output.stderr);
    assert_eq!(sandbox.run_tribunal(&["story", "1.2"]).exit_code, Some(0));
}

#[test]
fn directories_outside_the_project_are_refused() {
    let sandbox = sandbox_with_sprint();
    let write_config = |directory: &str| {
        let config_text = format!("project_name: Mill\nimplementation_artifacts: \"{directory}\"\n");
        sandbox.write_file("_bmad/bmm/config.yaml", &config_text);
    };
    for directory in ["/srv/elsewhere", "{project-root}/../elsewhere"] {
        write_config(directory);
        let output = sandbox.run_tribunal(&["board", "move", "1.2", "done"]);
        assert_eq!(output.exit_code, Some(3), "{}", output.stdout);
        assert!(output.stderr.contains("_bmad/bmm/config.yaml:2: `implementation_artifacts` is"), "{}", output.stderr);
        assert_eq!(sandbox.read_file(BOARD_FILE), BOARD_TEXT);
        assert!(sandbox.run_tribunal(&["status"]).stdout.contains("`implementation_artifacts` is"));
    }
    write_config(&sandbox.root_dir().canonicalize().unwrap().join(STORIES_DIR).display().to_string());
    let output = sandbox.run_tribunal(&["board", "move", "1.2", "done"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let output = sandbox.run_tribunal(&["validate", "--for", "trace"]);
    assert_eq!(output.exit_code, Some(3));
    assert!(output.stdout.contains("trace cannot be run here"), "{}", output.stdout);
}

/// Two processes move the stories of their own epic step by step on one board.
#[test]
fn two_writers_of_one_board_lose_no_move() {
    const STORIES_EACH: u32 = 6;
    let sandbox = sandbox_with_sprint();
    let mut board_text = "development_status:\n".to_string();
    for epic in [1, 2] {
        board_text += &format!("  epic-{epic}: in-progress   # {epic}\n");
        board_text.extend((1..=STORIES_EACH).map(|story_number| format!("  {epic}-{story_number}-x: backlog\n")));
    }
    sandbox.write_file(BOARD_FILE, &board_text);
    thread::scope(|scope| {
        for epic in [1, 2] {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for story_number in 1..=STORIES_EACH {
                    for story_state in ["ready-for-dev", "in-progress", "review", "done"] {
                        let story_key = format!("{epic}-{story_number}-x");
                        // Exit code 5 means that the lock was held for too long; the move is tried again.
                        let mut exit_code = Some(5);
                        while exit_code == Some(5) {
                            exit_code = sandbox.run_tribunal(&["board", "move", &story_key, story_state]).exit_code;
                        }
                        assert_eq!(exit_code, Some(0), "{story_key} {story_state}");
                    }
                }
            });
        }
    });
    assert_eq!(sandbox.read_file(BOARD_FILE), board_text.replace("backlog", "done"));
}

/// The process is killed right before the new board replaces the old one, and right after.
#[test]
fn a_killed_writer_leaves_a_complete_board_and_a_lock_that_expires() {
    for (moment, expected_board) in
        [("before", BOARD_TEXT.to_string()), ("after", BOARD_TEXT.replace("'review'", "'done'"))]
    {
        let sandbox = sandbox_with_sprint();
        let fault_point = format!("{moment}:write:sprint-status.yaml");
        let killed_move = sandbox
            .tribunal_command(&["board", "move", "1.2", "done"])
            .env("TRIBUNAL_FAULT", fault_point)
            .output()
            .unwrap();
        assert_eq!(killed_move.status.code(), None, "it was to be killed");
        assert_eq!(sandbox.read_file(BOARD_FILE), expected_board);
        let early_move = sandbox.run_tribunal(&["board", "move", "1.3", "in-progress"]);
        assert_eq!(early_move.exit_code, Some(5));
        assert!(
            early_move.stderr.contains("which has exited, left the lock")
                && early_move.stderr.contains("in 30 seconds"),
            "{}",
            early_move.stderr
        );
        let lock_path = sandbox.path_of(&format!("{BOARD_FILE}.lock"));
        let expired_time = fs::metadata(&lock_path).unwrap().modified().unwrap() - Duration::from_secs(31);
        fs::File::options().write(true).open(&lock_path).unwrap().set_modified(expired_time).unwrap();
        let late_move = sandbox.run_tribunal(&["board", "move", "1.3", "in-progress"]);
        assert_eq!(late_move.exit_code, Some(0), "{}", late_move.stderr);
        assert_eq!(sandbox.read_file(BOARD_FILE), expected_board.replace("pack: ready-for-dev", "pack: in-progress"));
        assert!(!lock_path.exists());
        assert_eq!(sandbox.temporary_leftovers(), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_story_is_reviewed_with_the_changes_since_its_baseline() {
    let sandbox = sandbox_with_sprint();
    let (agent_path, prompts_dir) = (sandbox.path_of("../agent.sh"), sandbox.path_of("../seen"));
    fs::create_dir(&prompts_dir).unwrap();
    let script = format!("cat > \"$(mktemp '{}'/XXXXXX)\"\necho 'findings: []'\n", prompts_dir.display());
    sandbox.write_file("../agent.sh", &script);
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent_path:?}]}}}}\n\
             tasks: {{retry_after: 0, required_issues: 0}}\n"
        ),
    );
    sandbox.write_file("src/sieve.py", "holes = 9\n");
    let run_git = |args: &[&str]| {
        let mut git_command = Command::new("git");
        git_command.args(["-c", "user.name=n", "-c", "user.email=e@e"]).args(args).current_dir(sandbox.root_dir());
        sandbox.set_home_env(&mut git_command);
        let output = git_command.output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    run_git(&["init", "-q", "-b", "main"]);
    run_git(&["add", "-A"]);
    run_git(&["commit", "-q", "-m", "one"]);
    let baseline_commit = run_git(&["rev-parse", "HEAD"]);
    sandbox.write_file("src/sieve.py", "holes = 3\n");
    run_git(&["commit", "-q", "-am", "two"]);
    sandbox.write_file("src/new.py", "grain = 0\n");
    sandbox.write_file(
        &format!("{STORIES_DIR}/1-2-sift.md"),
        &format!("---\nbaseline_commit: {baseline_commit}\n---\n{SIFT_STORY}"),
    );
    let command_output = sandbox.run_tribunal(&["review", "--story", "1.2", "--no-fix"]);
    assert_eq!(command_output.exit_code, Some(0), "{}{}", command_output.stdout, command_output.stderr);
    let subjects: Vec<String> = sandbox.run_json(&["runs"])["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run_summary| {
            let subject = &run_summary["subject"];
            let files = subject["files"].as_array().into_iter().flatten();
            let files: Vec<&str> = files.filter_map(|file| file["path"].as_str()).collect();
            format!("{} {} {}", subject["subject"], subject["path"], files.join(" "))
        })
        .collect();
    let mut subjects = subjects;
    subjects.sort();
    assert_eq!(
        subjects,
        ["\"change\" null src/new.py src/sieve.py", &format!("\"document\" \"{STORIES_DIR}/1-2-sift.md\" ")]
    );
    let prompts = fs::read_dir(&prompts_dir).unwrap().flatten();
    let prompts: Vec<String> = prompts.map(|dir_entry| fs::read_to_string(dir_entry.path()).unwrap()).collect();
    assert!(prompts.iter().any(|prompt| prompt.contains("No grain is left.") && prompt.contains("grain = 0")));
    // The story file does not exist yet.
    let command_output = sandbox.run_tribunal(&["review", "--story", "1-3"]);
    assert_eq!(command_output.exit_code, Some(2));
    assert!(
        command_output.stderr.contains("1-3-pack has no file yet")
            && command_output.stderr.contains("/bmad-create-story 1-3-pack"),
        "{}",
        command_output.stderr
    );
}
