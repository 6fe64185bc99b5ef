//! `tribunal loop plan`: the stories of a BMAD project as a fix plan, and its ticks on the board.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink};

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, loop_sandbox, prompt_of, run_git},
};

const PLAN: &str = ".ralph/@fix_plan.md";
const PLANNING_DIR: &str = "_bmad-output/planning-artifacts";
const STORIES_DIR: &str = "_bmad-output/implementation-artifacts";
const BOARD: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
const STORY: &str = "_bmad-output/implementation-artifacts/1-2-log-in.md";

const EPICS_TEXT: &str = "# Shop\n\n## Epic 1: Accounts\n\n\
    ### Story 1.1: Sign up\n\n**Acceptance Criteria:**\n\n1. An account is made.\n\n\
    ### Story 1.2: Log in\n\n**Acceptance Criteria:**\n\n1. In with a password.\n\n\
    ## Epic 2: Reports\n\n\
    ### Story 2.1: Export\n\n**Acceptance Criteria:**\n\n1. A file is written.\n2. It has all rows.\n";
const BOARD_TEXT: &str = "development_status:\n  epic-1: in-progress\n  1-1-sign-up: done\n  1-2-log-in: in-progress\n\
    \x20 epic-2: backlog\n  2-1-export: backlog\n";
const STORY_TEXT: &str =
    "# Story 1.2: Log in\n\nStatus: in-progress\n\n## Acceptance Criteria\n\n1. In with a password.\n";

fn write_project(sandbox: &Sandbox) {
    sandbox.write_file("_bmad/bmm/config.yaml", "project_name: Shop\noutput_folder: _bmad-output\n");
    sandbox.write_file(&format!("{PLANNING_DIR}/prd.md"), "# PRD\n\nPeople buy things.\n");
    sandbox.write_file(&format!("{PLANNING_DIR}/epics.md"), EPICS_TEXT);
    sandbox.write_file(BOARD, BOARD_TEXT);
    sandbox.write_file(STORY, STORY_TEXT);
}

fn planned_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    write_project(&sandbox);
    sandbox
}

fn run_plan(sandbox: &Sandbox, more_args: &[&str]) -> CommandOutput {
    let output = sandbox.run_tribunal(&[&["loop", "plan"], more_args].concat());
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    output
}

/// The plan without the fingerprints, which are no concern of users.
fn read_plan(sandbox: &Sandbox) -> String {
    let mask_line = |line: &str| match line.split_once("<!-- story ") {
        Some((before_mark, mark)) => {
            let words = mark.split(' ').enumerate().map(|(index, word)| if index == 1 { "[…]" } else { word });
            format!("{before_mark}<!-- story {}\n", words.collect::<Vec<_>>().join(" "))
        }
        None => format!("{line}\n"),
    };
    sandbox.read_file(PLAN).lines().map(mask_line).collect()
}

fn edit_plan(sandbox: &Sandbox, old_text: &str, new_text: &str) {
    let plan_text = sandbox.read_file(PLAN);
    assert!(plan_text.contains(old_text), "{plan_text}");
    sandbox.write_file(PLAN, &plan_text.replace(old_text, new_text));
}

/// All files of the project with their bytes.
fn read_files(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![sandbox.root_dir().to_path_buf()];
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().flatten().map(|dir_entry| dir_entry.path()) {
            if path.is_dir() {
                directories.push(path);
            } else {
                files.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn the_stories_become_a_plan_with_a_prompt_and_specs() {
    let sandbox = planned_sandbox();
    let output = run_plan(&sandbox, &[]);
    insta::assert_snapshot!(format!("{}{}", output.stdout, output.stderr), @"
    ✓ wrote .ralph/@fix_plan.md
    ✓ wrote .ralph/PROMPT.md
    ✓ wrote 3 files in .ralph/specs
    stories: 3 new, 1 done, 2 open
    next: tribunal loop run
    ");
    insta::assert_snapshot!(read_plan(&sandbox), @"
    # Fix plan

    A ticked box means that the story is implemented and tested. `tribunal loop plan` adds new stories and keeps everything else.

    ## Epic 1: Accounts

    - [x] Story 1.1: Sign up <!-- story 1-1 […] counted -->
      Acceptance criteria: An account is made.
    - [ ] Story 1.2: Log in <!-- story 1-2 […] -->
      Story file: _bmad-output/implementation-artifacts/1-2-log-in.md

    ## Epic 2: Reports

    - [ ] Story 2.1: Export <!-- story 2-1 […] -->
      Acceptance criteria: A file is written.; It has all rows.
    ");
    insta::assert_snapshot!(sandbox.read_file(".ralph/PROMPT.md"), @"
    # Implement the plan

    `.ralph/@fix_plan.md` lists the stories of this project, with one box for each.

    1. Take the first box that is not ticked. Work on this story and on no other.
    2. Read its story file, if the plan names one, and what `.ralph/specs` says about it: requirements, architecture,
       design and acceptance criteria. They are what you have to meet.
    3. Look for existing code before you write new code. Implement the story completely, without placeholders.
    4. Write tests for its acceptance criteria. Run all tests, and fix what fails.
    5. Tick its box when the acceptance criteria are met and the tests pass, and not before. If something keeps you from
       that, leave the box open and note what it is.

    Change nothing else in the plan: the comments behind the stories belong to Tribunal. Do not edit `.ralph/specs` or
    the sprint board.
    ");
    for (copy_path, document_text) in [
        ("planning-artifacts/prd.md", "# PRD\n\nPeople buy things.\n"),
        ("planning-artifacts/epics.md", EPICS_TEXT),
        ("implementation-artifacts/1-2-log-in.md", STORY_TEXT),
    ] {
        let copy_text = sandbox.read_file(&format!(".ralph/specs/{copy_path}"));
        assert!(copy_text.starts_with(document_text), "{copy_text}");
        assert!(copy_text.contains(&format!("<!-- copy of _bmad-output/{copy_path}, ")), "{copy_text}");
    }
    assert_eq!(sandbox.temporary_leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_second_run_changes_no_byte() {
    let sandbox = planned_sandbox();
    run_plan(&sandbox, &[]);
    let files = read_files(&sandbox);
    insta::assert_snapshot!(run_plan(&sandbox, &[]).stdout, @"
    nothing to write: .ralph/@fix_plan.md and the files beside it are up to date
    stories: 1 done, 2 open
    next: tribunal loop run
    ");
    assert_eq!(read_files(&sandbox), files);
}

#[test]
fn a_dry_run_writes_nothing() {
    let sandbox = planned_sandbox();
    let files = read_files(&sandbox);
    insta::assert_snapshot!(run_plan(&sandbox, &["--dry-run"]).stdout, @"
    would write .ralph/@fix_plan.md
    would write .ralph/PROMPT.md
    would write 3 files in .ralph/specs
    stories: 3 new, 1 done, 2 open
    next: tribunal loop plan
    ");
    assert_eq!(read_files(&sandbox), files);
    run_plan(&sandbox, &[]);
    edit_plan(&sandbox, "- [ ] Story 1.2", "- [x] Story 1.2");
    let files = read_files(&sandbox);
    let output = run_plan(&sandbox, &["--dry-run"]);
    assert!(output.stdout.starts_with("would move 1-2-log-in: in-progress → review (ticked in "), "{}", output.stdout);
    assert_eq!(read_files(&sandbox), files);
}

#[test]
fn a_ticked_story_moves_to_review_on_the_board_and_no_further() {
    let sandbox = planned_sandbox();
    run_plan(&sandbox, &[]);
    edit_plan(&sandbox, "- [ ]", "- [x]");
    let output = run_plan(&sandbox, &[]);
    insta::assert_snapshot!(format!("{}{}", output.stdout, output.stderr), @"
    ✓ 1-2-log-in: in-progress → review (ticked in .ralph/@fix_plan.md)
    ✓ epic-2: backlog → in-progress
    ✓ 2-1-export: backlog → review (ticked in .ralph/@fix_plan.md)
    ✓ wrote .ralph/@fix_plan.md
    ✓ wrote 1 file in .ralph/specs
    stories: 3 done, 0 open
    next: tribunal verify STORY
    note: a ticked box moves a story to review and no further; check it with `tribunal verify STORY`, finish it with `tribunal sprint STORY`
    ");
    let board_text = BOARD_TEXT
        .replace("1-2-log-in: in-progress", "1-2-log-in: review")
        .replace("epic-2: backlog", "epic-2: in-progress")
        .replace("2-1-export: backlog", "2-1-export: review");
    assert_eq!(sandbox.read_file(BOARD), board_text);
    assert_eq!(sandbox.read_file(STORY), STORY_TEXT.replace("Status: in-progress", "Status: review"));
    let files = read_files(&sandbox);
    run_plan(&sandbox, &[]);
    assert_eq!(read_files(&sandbox), files);
    // A tick counts once: a story that you move back stays there.
    assert_eq!(sandbox.run_tribunal(&["board", "move", "1.2", "in-progress"]).exit_code, Some(0));
    run_plan(&sandbox, &[]);
    assert!(sandbox.read_file(BOARD).contains("1-2-log-in: in-progress"));
}

#[test]
fn ticks_and_lines_of_the_user_are_kept_and_changed_stories_are_named() {
    let sandbox = planned_sandbox();
    sandbox.write_file(PLAN, "# Mine\n\n- [ ] buy milk\n");
    sandbox.write_file("PROMPT.md", "Do it.\n");
    run_plan(&sandbox, &[]);
    assert!(!sandbox.path_of(".ralph/PROMPT.md").exists(), "the loop uses PROMPT.md");
    edit_plan(&sandbox, "- [ ] Story 1.2: Log in", "- [x] Story 1.2: Log in (by hand)");
    edit_plan(&sandbox, "## Epic 2: Reports\n", "## Epic 2: Reports\n\nAsk Ann first.\n");
    let epics_text = EPICS_TEXT
        .replace("In with a password.", "In with a passkey.")
        .replace("### Story 2.1: Export\n", "### Story 2.2: Import\n");
    sandbox.write_file(&format!("{PLANNING_DIR}/epics.md"), &epics_text);
    sandbox.write_file(BOARD, &BOARD_TEXT.replace("  2-1-export: backlog\n", ""));
    let output = run_plan(&sandbox, &[]);
    insta::assert_snapshot!(format!("{}{}", output.stdout, output.stderr), @"
    ✓ 1-2-log-in: in-progress → review (ticked in .ralph/@fix_plan.md)
    ✓ wrote .ralph/@fix_plan.md
    ✓ wrote 2 files in .ralph/specs
    stories: 1 new, 1 changed (1-2: the acceptance criteria), 2 done, 1 open
    next: tribunal loop run
    note: 1-2 has changed and stays ticked; untick it if it has to be done again
    note: 2-1 is in .ralph/@fix_plan.md, but neither in the epics nor on the board; its item was kept, remove it if it is not needed
    note: a ticked box moves a story to review and no further; check it with `tribunal verify STORY`, finish it with `tribunal sprint STORY`
    ");
    insta::assert_snapshot!(read_plan(&sandbox), @"
    # Mine

    - [ ] buy milk

    ## Epic 1: Accounts

    - [x] Story 1.1: Sign up <!-- story 1-1 […] counted -->
      Acceptance criteria: An account is made.
    - [x] Story 1.2: Log in (by hand) <!-- story 1-2 […] counted -->
      Story file: _bmad-output/implementation-artifacts/1-2-log-in.md

    ## Epic 2: Reports

    Ask Ann first.

    - [ ] Story 2.1: Export <!-- story 2-1 […] -->
      Acceptance criteria: A file is written.; It has all rows.
    - [ ] Story 2.2: Import <!-- story 2-2 […] -->
      Acceptance criteria: A file is written.; It has all rows.
    ");
}

#[test]
fn a_spec_that_was_edited_by_hand_is_kept_unless_forced() {
    let sandbox = planned_sandbox();
    run_plan(&sandbox, &[]);
    let copy_path = ".ralph/specs/planning-artifacts/prd.md";
    let edited_text = sandbox.read_file(copy_path).replace("buy", "sell");
    sandbox.write_file(copy_path, &edited_text);
    sandbox.write_file(&format!("{PLANNING_DIR}/prd.md"), "# PRD\n\nNew.\n");
    let output = run_plan(&sandbox, &[]);
    let expected =
        format!("note: {copy_path} was edited by hand and kept; replace it with `tribunal loop plan --force`\n");
    assert_eq!(output.stderr, expected);
    assert_eq!(sandbox.read_file(copy_path), edited_text);
    assert!(run_plan(&sandbox, &["--force"]).stdout.contains("✓ wrote 1 file in .ralph/specs\n"));
    assert!(sandbox.read_file(copy_path).starts_with("# PRD\n\nNew.\n"));
}

#[test]
fn a_project_without_stories_is_refused_with_the_next_step() {
    let output = Sandbox::new().run_tribunal(&["loop", "plan"]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(output.stderr, @"
    error: no stories in this project
      Tribunal looked for epics with stories in _bmad-output/planning-artifacts and for a board, sprint-status.yaml.
      1. write epics and stories with BMAD
      2. or pass the project directory with `-C DIR`
    ");
}

#[test]
fn nothing_is_written_through_a_link_or_into_an_open_code_block() {
    let sandbox = planned_sandbox();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), sandbox.path_of(".ralph")).unwrap();
    let output = sandbox.run_tribunal(&["loop", "plan"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("leads out of the project"), "{}", output.stderr);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    fs::remove_file(sandbox.path_of(".ralph")).unwrap();
    sandbox.write_file(PLAN, "# Plan\n\n```\nnever closed\n");
    let output = sandbox.run_tribunal(&["loop", "plan"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains(".ralph/@fix_plan.md: stories cannot be added to this plan"), "{}", output.stderr);
    assert_eq!(sandbox.read_file(PLAN), "# Plan\n\n```\nnever closed\n");
}

#[test]
fn the_board_alone_is_enough_for_a_plan_and_parked_stories_are_left_out() {
    let sandbox = planned_sandbox();
    fs::remove_file(sandbox.path_of(&format!("{PLANNING_DIR}/epics.md"))).unwrap();
    sandbox.write_file(BOARD, &BOARD_TEXT.replace("2-1-export: backlog", "2-1-export: blocked"));
    let document = sandbox.run_json(&["loop", "plan"]);
    let schema = sandbox.run_json(&["schema", "loop-plan"]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(document["schema"], "tribunal.loop-plan/1");
    assert_eq!(document["stories"]["new"], serde_json::json!(["1-1", "1-2"]));
    assert_eq!(document["stories"]["parked"][0]["state"], "blocked");
    assert!(
        read_plan(&sandbox).contains("## Epic 1\n\n- [x] Story 1.1: sign up <!-- story 1-1 "),
        "{}",
        read_plan(&sandbox)
    );
    assert!(sandbox.path_of(&format!(".ralph/specs/{}", STORIES_DIR.trim_start_matches("_bmad-output/"))).is_dir());
}

/// Runs the first of the next commands as a user would who pastes it into a shell in `directory`.
fn paste_commit_command(sandbox: &Sandbox, output: &CommandOutput, directory: &str) {
    let next_line = output.stdout.lines().find_map(|line| line.strip_prefix("next: git ")).unwrap();
    let mut shell = sandbox.isolated_command("sh");
    let pasted = shell.args(["-c", &format!("git {next_line}")]).current_dir(sandbox.path_of(directory)).output();
    let pasted = CommandOutput::from_output(pasted.unwrap());
    assert_eq!(pasted.exit_code, Some(0), "{next_line}: {}{}", pasted.stdout, pasted.stderr);
}

/// The files of the last commit, each with its letter: `M src/lib.txt`.
fn list_committed(sandbox: &Sandbox) -> Vec<String> {
    let listed = run_git(sandbox, &["show", "--name-status", "--no-renames", "--format=", "HEAD"]);
    listed.lines().map(|line| line.replace('\t', " ")).collect()
}

#[test]
fn the_commit_that_comes_next_has_every_changed_file_that_a_loop_needs() {
    let sandbox = loop_sandbox("true\n");
    write_project(&sandbox);
    commit_all(&sandbox, "Plan the project");
    run_plan(&sandbox, &[]);
    commit_all(&sandbox, "Update the plan");
    assert!(run_plan(&sandbox, &[]).stdout.ends_with("\nnext: tribunal loop run\n"));
    edit_plan(&sandbox, "- [ ] Story 1.2", "- [x] Story 1.2");
    let epics_path = format!("{PLANNING_DIR}/epics.md");
    sandbox.write_file(&epics_path, &EPICS_TEXT.replace("It has all rows.", "It has all columns."));
    let paths = [".ralph", epics_path.as_str(), STORY, BOARD];
    // Nothing of it is new, so nothing has to be added.
    let expected = format!("\nnext: git -C [project] commit -m \"Update the plan\" -- {}\n", paths.join(" "));
    let output = run_plan(&sandbox, &[]);
    let shown_stdout = sandbox.normalize_output(&output.stdout);
    assert!(shown_stdout.contains(&expected), "{shown_stdout}");
    // What was not committed is still missing in a clone, although there is nothing more to write.
    let output = run_plan(&sandbox, &[]);
    let shown_stdout = sandbox.normalize_output(&output.stdout);
    assert!(shown_stdout.starts_with("nothing to write") && shown_stdout.contains(&expected), "{shown_stdout}");
    paste_commit_command(&sandbox, &output, ".");
    assert_eq!(run_git(&sandbox, &["status", "--porcelain", "--", ".ralph", "_bmad-output"]), "");
    assert!(run_plan(&sandbox, &[]).stdout.ends_with("\nnext: tribunal loop run\n"));
}

#[test]
fn the_commit_command_works_in_every_directory_and_takes_nothing_else_with_it() {
    let sandbox = loop_sandbox("true\n");
    write_project(&sandbox);
    sandbox.write_file(&format!("{STORIES_DIR}/1-1-sign-up.md"), "# Story 1.1: Sign up\n\nStatus: done\n");
    sandbox.write_file(&format!("{STORIES_DIR}/notes.md"), "Ask Ann.\n");
    commit_all(&sandbox, "Plan the project");
    // A story was renamed, and the user has begun something else.
    fs::rename(sandbox.path_of(STORY), sandbox.path_of(&format!("{STORIES_DIR}/1-2-login.md"))).unwrap();
    fs::remove_file(sandbox.path_of(&format!("{STORIES_DIR}/1-1-sign-up.md"))).unwrap();
    fs::remove_file(sandbox.path_of(&format!("{STORIES_DIR}/notes.md"))).unwrap();
    sandbox.write_file("src/lib.txt", "two\n");
    run_git(&sandbox, &["add", "src/lib.txt"]);
    // Git has forgotten one of them already.
    run_git(&sandbox, &["rm", "-q", "--cached", STORY]);
    let output = run_plan(&sandbox, &[]);
    paste_commit_command(&sandbox, &output, "src");
    let committed = list_committed(&sandbox);
    for expected in [
        "A .ralph/@fix_plan.md".to_string(),
        "A .ralph/PROMPT.md".to_string(),
        format!("D {STORIES_DIR}/1-1-sign-up.md"),
        format!("D {STORY}"),
        format!("A {STORIES_DIR}/1-2-login.md"),
    ] {
        assert!(committed.contains(&expected), "{expected}: {committed:?}");
    }
    assert!(!committed.iter().any(|line| line.contains("src/") || line.contains("notes.md")), "{committed:?}");
    assert_eq!(run_git(&sandbox, &["diff", "--cached", "--name-only"]), "src/lib.txt\n");
}

#[test]
fn a_plan_that_git_ignores_is_committed_without_its_logs() {
    let sandbox = loop_sandbox("true\n");
    write_project(&sandbox);
    sandbox.write_file(".gitignore", ".ralph/\n");
    sandbox.write_file(".ralph/logs/1.log", "private\n");
    commit_all(&sandbox, "Plan the project");
    let output = run_plan(&sandbox, &[]);
    assert!(
        output.stdout.contains(" add --force -- .ralph/@fix_plan.md .ralph/PROMPT.md .ralph/specs && "),
        "{}",
        output.stdout
    );
    paste_commit_command(&sandbox, &output, "src");
    let committed = list_committed(&sandbox);
    assert!(committed.iter().any(|line| line.starts_with("A .ralph/specs/")), "{committed:?}");
    assert!(!committed.iter().any(|line| line.contains("logs")), "{committed:?}");
    assert!(run_plan(&sandbox, &[]).stdout.ends_with("\nnext: tribunal loop run\n"));
    // Now the plan is tracked and still ignored: git refuses to add its directory.
    edit_plan(&sandbox, "- [ ] Story 1.2", "- [x] Story 1.2");
    let output = run_plan(&sandbox, &[]);
    paste_commit_command(&sandbox, &output, "src");
    assert!(list_committed(&sandbox).contains(&format!("M {PLAN}")), "{:?}", list_committed(&sandbox));
    // A new spec beside it is ignored, too.
    sandbox.write_file(&format!("{STORIES_DIR}/2-1-export.md"), "# Story 2.1: Export\n\nStatus: ready-for-dev\n");
    let output = run_plan(&sandbox, &[]);
    paste_commit_command(&sandbox, &output, ".");
    let committed = list_committed(&sandbox);
    assert!(committed.contains(&"A .ralph/specs/implementation-artifacts/2-1-export.md".to_string()), "{committed:?}");
    assert!(run_plan(&sandbox, &[]).stdout.ends_with("\nnext: tribunal loop run\n"));
}

#[test]
fn the_commit_command_works_before_the_first_commit() {
    let sandbox = loop_sandbox("true\n");
    write_project(&sandbox);
    run_git(&sandbox, &["update-ref", "-d", "HEAD"]);
    let output = run_plan(&sandbox, &[]);
    paste_commit_command(&sandbox, &output, "src");
    let committed = list_committed(&sandbox);
    assert!(committed.contains(&format!("A {PLAN}")) && committed.contains(&format!("A {BOARD}")), "{committed:?}");
    assert!(!committed.iter().any(|line| line.contains("src/")), "{committed:?}");
}

#[test]
fn a_loop_works_on_the_plan_and_moves_the_board_when_it_has_landed() {
    let sandbox = loop_sandbox(
        "echo $n > out.txt\nsed -i '0,/- \\[ \\]/s//- [x]/' .ralph/@fix_plan.md\necho \"Ticked box $n.\"\n",
    );
    write_project(&sandbox);
    commit_all(&sandbox, "Plan the project");
    let output = run_plan(&sandbox, &[]);
    let next_steps = "next: git -C [project] add -- .ralph && git -C [project] commit -m \"Update the plan\" -- .ralph\n      \
        tribunal loop run\n";
    let shown_stdout = sandbox.normalize_output(&output.stdout);
    assert!(shown_stdout.ends_with(next_steps), "{shown_stdout}");
    commit_all(&sandbox, "Update the plan");
    let output = sandbox.run_tribunal(&["loop", "run"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    for expected in [
        "until every box in .ralph/@fix_plan.md is ticked",
        "resolved: the task is done after 2 iterations",
        "note: 1-2-log-in: in-progress → review (ticked in .ralph/@fix_plan.md)\n",
        "note: 2-1-export: backlog → review (ticked in .ralph/@fix_plan.md)\n",
        "finish it with `tribunal sprint STORY`\n",
    ] {
        assert!(output.stderr.contains(expected), "{expected}: {}", output.stderr);
    }
    let prompt = prompt_of(&sandbox, 1);
    assert!(prompt.contains("# Implement the plan\n"), "{prompt}");
    let second_prompt = prompt_of(&sandbox, 2);
    let next_task = "2 of 3 tasks of the plan are done; the next one is: Story 2.1: Export";
    assert!(second_prompt.contains(next_task), "{second_prompt}");
    assert!(sandbox.read_file(BOARD).contains("1-2-log-in: review"));
    assert!(!sandbox.read_file(PLAN).contains("- [ ]"));
    assert_eq!(run_git(&sandbox, &["status", "--porcelain", "--", ".ralph"]), "");
}
