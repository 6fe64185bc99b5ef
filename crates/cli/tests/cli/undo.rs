//! Landed changes can be shown and undone, and later edits of the user stay.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::common::{PRD, Ran, Sandbox, hold};

const PLAN: &str =
    "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n\n## Team\n\nWe are three.\n";
const FIXED: &str =
    "# Plan\n\n## Goals\n\nIt answers in 200 ms.\n\n## Risks\n\nNone.\n\n## Team\n\nWe are three.\n";

/// A review with two findings that need separate changes; `second_fix` says whether the second one is blocked or fixed.
fn script(second: &str) -> String {
    format!(
        "tasks:
  - task: 'round-1/review/*'
    steps:
      - findings:
          - {{severity: high, category: test, description: fast is vague, quote: It shall be fast.}}
          - {{severity: high, category: test, description: team is small, quote: We are three.}}
  - task: '*/review/*'
    steps: [{{findings: []}}]
  - task: '*/fix/*'
    fix:
      - {{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}
      - {{match: team, {second}}}
"
    )
}

const ALSO_FIXED: &str = "replace: We are three., with: We are four., description: one more";

/// A run that has fixed F1 and waits for the user because of F2.
fn waiting(plan: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::scripted(&script("blocked: who pays"));
    sandbox.write("plan.md", plan);
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let run = sandbox.last_run();
    (sandbox, run)
}

/// A resolved run in which one fixer repaired both findings.
fn resolved() -> (Sandbox, String) {
    let sandbox = Sandbox::scripted(&script(ALSO_FIXED));
    sandbox.write("plan.md", PLAN);
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let run = sandbox.last_run();
    (sandbox, run)
}

fn parked(sandbox: &Sandbox, run: &str) -> Vec<PathBuf> {
    let items =
        fs::read_dir(sandbox.path(&format!(".tribunal/parked/{run}"))).into_iter().flatten().flatten();
    items.map(|item| item.path()).collect()
}

/// Runs a command that is killed at `fault_point`.
fn killed(sandbox: &Sandbox, args: &[&str], fault: &str) {
    let output = sandbox.command(args).env("TRIBUNAL_FAULT", fault).output().unwrap();
    assert!(!output.status.success(), "{fault} did not come up");
}

/// Asserts that undo is refused with this exit code and that neither the file nor anything else was changed.
fn refused(sandbox: &Sandbox, what: &str, code: i32) -> Ran {
    let (before, run) = (fs::read(sandbox.path("plan.md")).ok(), sandbox.last_run());
    let ran = sandbox.run(&["undo", what, "--yes"]);
    assert_eq!(ran.code, Some(code), "{}{}", ran.out, ran.err);
    assert_eq!(fs::read(sandbox.path("plan.md")).ok(), before);
    assert_eq!(parked(sandbox, &run), Vec::<PathBuf>::new());
    ran
}

fn status(sandbox: &Sandbox, finding: usize) -> Value {
    sandbox.json(&["findings"])["findings"][finding - 1]["status"].clone()
}

#[test]
fn a_whole_review_is_shown_and_taken_back() {
    let sandbox = Sandbox::demo();
    let before = sandbox.read(PRD);
    assert_eq!(sandbox.run(&["review", PRD]).code, Some(0));
    let (run, after) = (sandbox.last_run(), sandbox.read(PRD));
    let diff = sandbox.run(&["diff", &run]);
    assert!(
        diff.out.starts_with(&format!("--- a/{PRD}\n+++ b/{PRD}\n@@ ")) && diff.err.is_empty(),
        "{}",
        diff.out
    );
    let preview = sandbox.run(&["undo", &run]);
    assert_eq!((preview.code, sandbox.read(PRD)), (Some(0), after.clone()), "a preview changes nothing");
    assert!(preview.out.ends_with(&format!("to do it: tribunal undo {run} --yes\n")), "{}", preview.out);
    let done = sandbox.run(&["undo", &run, "--yes"]);
    assert_eq!((done.code, sandbox.read(PRD)), (Some(0), before), "{}", done.err);
    let parked = parked(&sandbox, &run);
    assert_eq!(fs::read_to_string(&parked[0]).unwrap(), after);
    assert_eq!(fs::metadata(&parked[0]).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(sandbox.litter(), Vec::<PathBuf>::new());
}

#[test]
fn every_landing_is_counted_as_a_checkpoint() {
    let (sandbox, _) = resolved();
    let reviews = fs::read_dir(sandbox.path(".tribunal/reviews")).unwrap().flatten();
    let metrics =
        reviews.map(|item| item.path()).find(|path| path.extension().is_some_and(|end| end == "json"));
    let metrics: Value = serde_json::from_slice(&fs::read(metrics.unwrap()).unwrap()).unwrap();
    assert_eq!((&metrics["checkpoints"], &metrics["rollbacks"]), (&1.into(), &0.into()));
}

#[test]
fn a_diff_can_be_given_to_patch() {
    let (sandbox, run) = resolved();
    sandbox.write("run.patch", &sandbox.run(&["diff", &run]).out);
    let git = |args: &[&str]| sandbox.wrapped("git").args(args).output().unwrap();
    let applied = git(&["apply", "-R", "run.patch"]);
    assert!(applied.status.success(), "{applied:?}");
    assert_eq!(sandbox.read("plan.md"), PLAN);
}

#[test]
fn people_read_what_would_be_done_and_what_was() {
    let (sandbox, run) = waiting(PLAN);
    let preview = sandbox.run(&["undo", &run]).out.replace(" \n", "\n");
    insta::assert_snapshot!(sandbox.normal(&preview), @r"
    --- a/plan.md
    +++ b/plan.md
    @@ -2,7 +2,7 @@

     ## Goals

    -It answers in 200 ms.
    +It shall be fast.

     ## Risks

    1 change to take back; this is what would be done to plan.md
    F1 would be open again when run [run] goes on
    nothing was changed; to do it: tribunal undo [run] --yes
    ");
    insta::assert_snapshot!(sandbox.normal(&sandbox.run(&["diff", &run, "--stat"]).out), @r"
    plan.md: 1 line added, 1 removed, by 1 change
      round-1/fix-1/fix/1 repaired F1
    ");
    insta::assert_snapshot!(sandbox.normal(&sandbox.run(&["undo", "f1", "--yes"]).out), @r"
    took back 1 change in plan.md; what else was changed since is as it was
    parked what stood there: .tribunal/parked/[run]/1-plan.md; to have it again: cp .tribunal/parked/[run]/1-plan.md plan.md
    F1 will be open again when run [run] goes on
    next: tribunal resume [run]
    ");
    insta::assert_snapshot!(sandbox.normal(&sandbox.run(&["undo", &run, "--yes"]).out), @r"all that run [run] had landed was taken back");
    let ran = sandbox.run(&["diff", &run]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    insta::assert_snapshot!(sandbox.normal(&ran.err), @r"[i] all that run [run] had landed was taken back");
    insta::assert_snapshot!(sandbox.normal(&sandbox.run(&["diff", &run, "F2"]).err), @r"[i] run [run] has landed nothing that repaired F2");
    insta::assert_snapshot!(sandbox.normal(&sandbox.run(&["diff", &run, "F9"]).err), @r"
    [!] run [run] has no finding F9
        1. see which there are: tribunal findings [run]
    ");
}

#[test]
fn the_run_takes_the_finding_for_open_and_repairs_it_again() {
    let (sandbox, run) = waiting(PLAN);
    assert_eq!(sandbox.read("plan.md"), FIXED);
    assert_eq!(sandbox.run(&["undo", &format!("{run}.F1"), "--yes"]).code, Some(0));
    assert_eq!(sandbox.read("plan.md"), PLAN);
    sandbox.run(&["resume", &run]);
    let events = sandbox.events(&["log", &run]);
    let moves: Vec<&Value> =
        events.iter().filter(|event| event["kind"] == "finding_moved" && event["finding"] == "F1").collect();
    assert!(moves.iter().any(|event| event["note"] == "a person opened it again"), "{moves:?}");
    assert_eq!((status(&sandbox, 1), sandbox.read("plan.md")), ("fixed".into(), FIXED.into()));
    // The second fix is a landing of its own, although it made the same change, and it can be undone, too.
    let landings = sandbox.json(&["diff", &run])["landings"].clone();
    let undone: Vec<&Value> = landings.as_array().unwrap().iter().map(|landing| &landing["undone"]).collect();
    assert_eq!(undone, [true, false]);
    let again = sandbox.json(&["undo", &run, "--yes"]);
    assert_eq!((&again["done"], &again["findings"][0]), (&true.into(), &"F1".into()));
    assert_eq!(sandbox.read("plan.md"), PLAN);
    assert_eq!(parked(&sandbox, &run).len(), 2);
}

#[test]
fn what_one_change_repaired_goes_together() {
    let (sandbox, run) = resolved();
    let after = sandbox.read("plan.md");
    let one = format!("{run}.F1");
    let preview = sandbox.run(&["undo", &one]);
    assert!(preview.out.contains("what repaired F1 also repaired F2: they go together\n"), "{}", preview.out);
    insta::assert_snapshot!(sandbox.normal(&refused(&sandbox, &one, 2).err), @r"
    [!] the change that repaired F1 also repaired F2
        They can only be taken back together. Nothing was changed.
        1. see what that would do: tribunal undo [run].F1
        2. take all of them back: tribunal undo [run].F1 --together --yes
    ");
    assert_eq!(sandbox.read("plan.md"), after);
    let done = sandbox.run(&["undo", &one, "--together", "--yes"]);
    assert!(done.out.contains("has ended; its journal keeps F1, F2 as fixed\n"), "{}", done.out);
    assert_eq!(sandbox.read("plan.md"), PLAN);
    assert_eq!(status(&sandbox, 1), "fixed", "the journal of a run that has ended stays as it is");
}

#[test]
fn later_edits_stay_and_where_they_are_in_the_way_nothing_is_done() {
    let (sandbox, run) = waiting(PLAN);
    sandbox.write("plan.md", &FIXED.replace("None.", "One:\n\ntime").replace("200 ms", "300 ms"));
    insta::assert_snapshot!(sandbox.normal(&refused(&sandbox, &format!("{run}.F1"), 3).err), @r"
    [!] plan.md was changed in the same place since: line 5
        Taking the change back would lose what was written there since. Nothing was changed.
        1. take it back by hand; what it was: tribunal diff [run] F1
    ");
    sandbox.write("plan.md", &FIXED.replace("None.", "One:\n\ntime").replace("# Plan", "# The plan\r"));
    assert_eq!(sandbox.run(&["undo", &run, "--yes"]).code, Some(0));
    assert_eq!(
        sandbox.read("plan.md"),
        PLAN.replace("None.", "One:\n\ntime").replace("# Plan", "# The plan\r")
    );
}

/// Lets a fixer repair the second finding in a change of its own, after the user has answered.
fn one_by_one(sandbox: &Sandbox, run: &str) {
    sandbox.write("script.yaml", &script(ALSO_FIXED));
    assert_eq!(sandbox.run(&["decisions", "D1", "retry"]).code, Some(0));
    let ran = sandbox.run(&["resume", run]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn one_repair_is_taken_back_and_the_others_stay() {
    let (sandbox, run) = waiting(PLAN);
    one_by_one(&sandbox, &run);
    assert_eq!(sandbox.read("plan.md"), FIXED.replace("three", "four"));
    let only = sandbox.run(&["diff", &format!("{run}.F2")]).out;
    assert!(only.contains("+We are four.") && !only.contains("+It answers"), "{only}");
    assert_eq!(sandbox.run(&["undo", "F1", "--yes"]).code, Some(0));
    assert_eq!(sandbox.read("plan.md"), PLAN.replace("three", "four"));
    let left = sandbox.run(&["diff", &run]).out;
    assert!(left.contains("+We are four.") && !left.contains("+It answers"), "{left}");
}

#[test]
fn what_others_wrote_between_two_repairs_is_not_shown_as_the_run_s_and_stays() {
    let (sandbox, run) = waiting(PLAN);
    sandbox.write("plan.md", &FIXED.replace("None.", "One."));
    one_by_one(&sandbox, &run);
    let diff = sandbox.run(&["diff", &run]);
    assert!(diff.out.contains("+We are four.") && diff.out.contains("+It answers"), "{}", diff.out);
    assert!(!diff.out.contains("+One.") && diff.err.is_empty(), "{}{}", diff.out, diff.err);
    assert_eq!(sandbox.run(&["undo", &run, "--yes"]).code, Some(0));
    assert_eq!(sandbox.read("plan.md"), PLAN.replace("None.", "One."));
}

#[test]
fn a_conflict_says_what_can_be_taken_back_instead() {
    let (sandbox, run) = waiting(PLAN);
    one_by_one(&sandbox, &run);
    sandbox.write("plan.md", &sandbox.read("plan.md").replace("200 ms", "300 ms"));
    insta::assert_snapshot!(sandbox.normal(&refused(&sandbox, &run, 3).err), @r"
    [!] plan.md was changed in the same place since: line 5
        Taking the change back would lose what was written there since. Nothing was changed.
        1. take it back by hand; what it was: tribunal diff [run]
        2. take back what can be, one by one: tribunal undo [run].FINDING
    ");
    assert_eq!(sandbox.run(&["undo", &format!("{run}.F2"), "--yes"]).code, Some(0));
    assert_eq!(sandbox.read("plan.md"), FIXED.replace("200 ms", "300 ms"));
}

#[test]
fn line_ends_and_a_last_line_without_one_come_back_as_they_were() {
    let plan = PLAN.replace('\n', "\r\n");
    for plan in [plan.trim_end(), PLAN.trim_end(), &plan] {
        let (sandbox, run) = waiting(plan);
        assert_ne!(sandbox.read("plan.md"), plan);
        assert_eq!(sandbox.run(&["undo", &run, "--yes"]).code, Some(0));
        assert_eq!(sandbox.read("plan.md"), plan);
    }
}

#[test]
fn a_file_that_is_no_longer_what_it_was_is_left_alone() {
    let (sandbox, run) = waiting(PLAN);
    let plan = sandbox.path("plan.md");
    fs::write(&plan, b"# Plan\n\xff\n").unwrap();
    assert!(refused(&sandbox, &run, 2).err.contains("plan.md is not text (it is no UTF-8)"));
    fs::remove_file(&plan).unwrap();
    insta::assert_snapshot!(refused(&sandbox, &run, 2).err, @r"
    [!] plan.md does not exist
        Nothing was changed.
        1. put the file back as a text file inside the project, then try again
    ");
    let outside = sandbox.home().with_file_name("outside.md");
    for target in [outside.as_path(), Path::new("other.md")] {
        fs::write(&outside, FIXED).unwrap();
        sandbox.write("other.md", FIXED);
        symlink(target, &plan).unwrap();
        assert!(refused(&sandbox, &run, 2).err.contains("[!] plan.md is a link now\n"));
        assert_eq!(fs::read_to_string(&outside).unwrap(), FIXED);
        assert_eq!(sandbox.read("other.md"), FIXED);
        fs::remove_file(&plan).unwrap();
    }
    fs::create_dir(&plan).unwrap();
    assert!(refused(&sandbox, &run, 2).err.contains("plan.md is a folder"));
}

#[test]
fn what_cannot_be_parked_is_not_touched() {
    let (sandbox, run) = waiting(PLAN);
    sandbox.write(".tribunal/parked", "in the way");
    assert!(refused(&sandbox, &run, 5).err.contains("[!] plan.md could not be parked: "));
    fs::remove_file(sandbox.path(".tribunal/parked")).unwrap();
    let outside = sandbox.home().with_file_name("outside");
    fs::create_dir_all(&outside).unwrap();
    symlink(&outside, sandbox.path(".tribunal/parked")).unwrap();
    assert!(
        refused(&sandbox, &run, 2).err.contains(".tribunal/parked is a link that leads out of the project")
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_damaged_checkpoint_is_said_to_be_one() {
    let (sandbox, run) = waiting(PLAN);
    let texts = sandbox.path(&format!(".tribunal/checkpoints/{run}/texts"));
    for item in fs::read_dir(texts).unwrap().flatten() {
        fs::write(item.path(), "something else\n").unwrap();
    }
    assert!(
        refused(&sandbox, &run, 5).err.contains(&format!("[!] a checkpoint of run {run} cannot be used"))
    );
    assert_eq!(sandbox.run(&["diff", &run]).code, Some(5));
}

#[test]
fn a_run_that_is_worked_on_is_left_alone() {
    let (sandbox, run) = waiting(PLAN);
    let _held = hold(&sandbox, &run, &format!("{run}\n1@1@0\n"));
    assert!(refused(&sandbox, &run, 2).err.contains("is being worked on by another process"));
    assert_eq!(sandbox.run(&["undo", &run]).code, Some(2));
}

#[test]
fn killed_between_checkpoint_and_landing_nothing_has_landed_until_the_run_goes_on() {
    let sandbox = Sandbox::scripted(&script("blocked: who pays"));
    sandbox.write("plan.md", PLAN);
    killed(&sandbox, &["review", "plan.md"], "before:landing");
    let run = sandbox.last_run();
    assert!(sandbox.path(&format!(".tribunal/checkpoints/{run}")).exists());
    assert_eq!(sandbox.read("plan.md"), PLAN);
    let ran = sandbox.run(&["undo", &run, "--yes"]);
    assert_eq!((ran.code, ran.out), (Some(0), format!("run {run} has landed nothing\n")));
    // An edit before the resume makes the landing a different one; the checkpoint of the first attempt must not affect it.
    let edited = PLAN.replace("None.", "One.");
    sandbox.write("plan.md", &edited);
    assert_eq!(sandbox.run(&["resume", &run]).code, Some(3));
    assert_eq!(sandbox.read("plan.md"), FIXED.replace("None.", "One."));
    assert_eq!(sandbox.run(&["undo", &run, "--yes"]).code, Some(0));
    assert_eq!(sandbox.read("plan.md"), edited);
}

#[test]
fn killed_after_landing_it_can_be_taken_back_once_the_run_has_found_out() {
    let sandbox = Sandbox::scripted(&script("blocked: who pays"));
    sandbox.write("plan.md", PLAN);
    killed(&sandbox, &["review", "plan.md"], "after:landing");
    let run = sandbox.last_run();
    insta::assert_snapshot!(sandbox.normal(&refused(&sandbox, &run, 2).err), @r"
    [!] run [run] was killed while a change was being landed
        Whether it landed is found out when the run goes on. Nothing was changed.
        1. tribunal resume [run]
    ");
    // Because of the edit the run cannot recognise the file as its own work.
    sandbox.write("plan.md", &FIXED.replace("None.", "One."));
    assert_eq!(sandbox.run(&["resume", &run]).code, Some(3));
    assert_eq!(sandbox.run(&["undo", &run, "--yes"]).code, Some(0));
    assert_eq!(sandbox.read("plan.md"), PLAN.replace("None.", "One."));
}

#[test]
fn killed_on_the_way_taking_back_is_done_by_the_same_command() {
    for fault in ["before:write:plan.md", "after:write:plan.md", "after:write:1-plan.md"] {
        let (sandbox, run) = waiting(PLAN);
        killed(&sandbox, &["undo", &run, "--yes"], fault);
        let now = sandbox.read("plan.md");
        assert!(now == PLAN || now == FIXED, "{fault}: {now}");
        let done = sandbox.json(&["undo", &run, "--yes"]);
        assert_eq!((&done["done"], &done["findings"][0]), (&true.into(), &"F1".into()), "{fault}");
        assert_eq!(sandbox.read("plan.md"), PLAN, "{fault}");
        assert_eq!(fs::read_to_string(&parked(&sandbox, &run)[0]).unwrap(), FIXED, "{fault}");
        sandbox.run(&["resume", &run]);
        assert_eq!(sandbox.read("plan.md"), FIXED, "{fault}: it was open again, and was repaired again");
        assert_eq!(sandbox.litter(), Vec::<PathBuf>::new(), "{fault}");
    }
}

#[test]
fn checkpoints_go_with_their_run_and_not_before() {
    let (sandbox, run) = resolved();
    let kept = sandbox.path(&format!(".tribunal/checkpoints/{run}"));
    assert_eq!(sandbox.run(&["gc"]).code, Some(0));
    assert!(kept.exists(), "the run is there, and can be taken back");
    assert_eq!(sandbox.run(&["undo", &run, "--yes"]).code, Some(0));
    let young = sandbox.json(&["gc", "--runs", "--keep-days", "1"]);
    assert_eq!(young["originals"].as_array().unwrap().len(), 0);
    let gone = sandbox.json(&["gc", "--runs", "--keep-days", "0"]);
    let gone: Vec<&str> =
        gone["originals"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    let all = ["originals", "checkpoints", "parked"].map(|folder| format!(".tribunal/{folder}/{run}"));
    assert_eq!(gone, all);
    assert!(!kept.exists() && parked(&sandbox, &run).is_empty());
}

#[test]
fn agents_are_not_given_checkpoints_to_read() {
    let sandbox = Sandbox::with_agent("");
    sandbox.write("agent.sh", &format!("find . >> {:?}\n", sandbox.path("seen")));
    sandbox.write(".tribunal/checkpoints/old-0000/texts/abc", "a secret\n");
    sandbox.write(".tribunal/parked/old-0000/1-plan.md", "a secret\n");
    sandbox.run(&["review", "plan.md", "--no-fix"]);
    let seen = sandbox.read("seen");
    assert!(seen.contains("./plan.md\n"), "{seen}");
    assert!(!seen.contains("old-0000"), "{seen}");
}

#[test]
fn documents_fit_their_schema() {
    let (sandbox, run) = waiting(PLAN);
    for (args, name) in
        [(&["diff", &run][..], "diff"), (&["undo", &run], "undo"), (&["undo", &run, "--yes"], "undo")]
    {
        let document = sandbox.json(args);
        assert_eq!(document["schema"], format!("tribunal.{name}/1"));
        let schema = sandbox.json(&["schema", name]);
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&document), "{document}");
    }
}

#[test]
fn in_a_repository_git_can_show_what_landed_until_the_run_is_collected() {
    let sandbox = Sandbox::scripted(&script("blocked: who pays"));
    sandbox.write("plan.md", PLAN);
    let git = |args: &[&str]| Ran::of(sandbox.wrapped("git").args(args).output().unwrap()).out;
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.email", "p@x"]);
    git(&["config", "user.name", "P"]);
    git(&["add", "plan.md"]);
    git(&["commit", "-qm", "mine"]);
    let (head, status) = (git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain=v2", "--branch"]));
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(3));
    let run = sandbox.last_run();
    let reference = format!("refs/tribunal/{run}");
    insta::assert_snapshot!(git(&["log", "--reverse", "--format=%B", &reference]), @r"
    The files before round-1/fix-1/fix/1

    Landing round-1/fix-1/fix/1

    For F1, F2.

    Tribunal-Landing: 1 round-1/fix-1/fix/1
    ");
    assert_eq!(git(&["show", &format!("{reference}~1:plan.md")]), PLAN);
    assert_eq!(git(&["show", &format!("{reference}:plan.md")]), FIXED);
    let preview = sandbox.run(&["undo", &run]).out;
    assert!(preview.contains(&format!("\ngit has them, too: git log -p {reference}\n")), "{preview}");
    assert_eq!(sandbox.json(&["undo", &run])["reference"], reference.as_str());
    assert_eq!(sandbox.run(&["undo", &run, "--yes"]).code, Some(0));
    assert_eq!((git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain=v2", "--branch"])), (head, status));
    // The run can be collected only after the other finding is settled, too.
    sandbox.write("script.yaml", &script(ALSO_FIXED));
    sandbox.run(&["decisions", "D1", "retry"]);
    assert_eq!(sandbox.run(&["resume", &run]).code, Some(0));
    assert_eq!(
        git(&["log", "--format=%s", &reference]).lines().count(),
        4,
        "the second repair found the first gone"
    );
    assert_eq!(sandbox.json(&["gc", "--runs", "--keep-days", "0", "--dry-run"])["runs"][0], run.as_str());
    assert_ne!(git(&["for-each-ref", "refs/tribunal"]), "");
    assert_eq!(sandbox.run(&["gc", "--runs", "--keep-days", "0"]).code, Some(0));
    assert_eq!(git(&["for-each-ref", "refs/tribunal"]), "");
}

#[test]
fn without_a_repository_nobody_is_told_of_git() {
    let (sandbox, run) = waiting(PLAN);
    let preview = sandbox.run(&["undo", &run]).out;
    assert!(!preview.contains("refs/tribunal"), "{preview}");
}
