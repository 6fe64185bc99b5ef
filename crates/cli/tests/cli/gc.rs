//! `tribunal gc`: it removes what is no longer needed and keeps everything that may be needed complete.

use serde_json::Value;

use crate::{
    common::{Sandbox, hold},
    people::hanging,
};

const SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}]
";

/// A project with one resolved run, one that waits for the user, and one that was killed.
fn project() -> (Sandbox, [String; 3]) {
    let sandbox = Sandbox::scripted(SCRIPT);
    sandbox.write("other.md", "# Other\n\nIt shall be fast.\n");
    sandbox.write("third.md", "# Third\n\nIt shall be fast.\n");
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(0));
    let resolved = sandbox.last_run();
    sandbox.write(
        "script.yaml",
        &SCRIPT.replace(
            "replace: It shall be fast., with: It answers in 200 ms., description: number",
            "blocked: how fast",
        ),
    );
    assert_eq!(sandbox.run(&["review", "other.md"]).code, Some(3));
    let waiting = sandbox.last_run();
    let killed =
        sandbox.command(&["review", "third.md"]).env("TRIBUNAL_FAULT", "after:0:round_ended:1#1").output();
    assert!(!killed.unwrap().status.success());
    let died = sandbox.last_run();
    (sandbox, [resolved, waiting, died])
}

/// Adds workspace files of a run that is not in the journal.
fn orphan(sandbox: &Sandbox) {
    for file in ["tree/plan.md", "base", "manifest.json"] {
        sandbox.write(&format!(".tribunal/work/nobody-0000/round-1.freeze/{file}"), "a copy\n");
    }
}

/// Returns everything the user can read of a run: its entries and every text they name.
fn all_of(sandbox: &Sandbox, run: &str) -> (Vec<Value>, Value) {
    let texts = sandbox.json(&["log", run, "--prompts", "--key", "/"]);
    for call in texts["calls"].as_array().unwrap() {
        assert!(call["prompt"]["text"].is_string() && call["answer"]["text"].is_string(), "{call}");
    }
    (sandbox.events(&["log", run]), texts)
}

#[test]
fn what_is_kept_reads_as_before_and_goes_on() {
    let (sandbox, [resolved, waiting, died]) = project();
    let before: Vec<_> = [&resolved, &waiting, &died].map(|run| all_of(&sandbox, run)).into();
    let ran = sandbox.run(&["gc"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let after: Vec<_> = [&resolved, &waiting, &died].map(|run| all_of(&sandbox, run)).into();
    assert_eq!(after, before);
    assert!(sandbox.path(&format!(".tribunal/originals/{resolved}")).exists());

    assert_eq!(sandbox.run(&["gc", "--runs", "--keep-days", "0"]).code, Some(0));
    assert_eq!(sandbox.runs(), [waiting.clone(), died.clone()], "only what came to a good end may go");
    assert_eq!(vec![all_of(&sandbox, &waiting), all_of(&sandbox, &died)], before[1..]);
    assert!(!sandbox.path(&format!(".tribunal/originals/{resolved}")).exists());
    assert_eq!(sandbox.run(&["resume", &died]).code, Some(3), "it goes on as if nothing had happened");
    assert_eq!(sandbox.run(&["resume", &waiting]).code, Some(3));
}

#[test]
fn leftovers_go_and_what_is_needed_to_go_on_stays() {
    let (sandbox, [resolved, waiting, died]) = project();
    let copies = |run: &str| sandbox.path(&format!(".tribunal/work/{run}"));
    sandbox.write(&format!(".tribunal/work/{resolved}/round-1.freeze/tree/plan.md"), "a copy\n");
    orphan(&sandbox);
    sandbox.write(".tribunal/work/somebody/thesis.md", "not ours\n");
    sandbox.write(".tribunal-tmp-999999999@1@0-abc", "half a file");
    sandbox.write(".tribunal-tmp-mine", "not ours");
    for run in [&waiting, &died] {
        sandbox.write(&format!(".tribunal/work/{run}/round-1.fix.1/1/base"), "a copy\n");
    }
    let said = sandbox.json(&["gc", "--dry-run"]);
    assert_eq!(said["copies"].as_array().unwrap().len(), 2);
    assert!(copies(&resolved).exists() && sandbox.path(".tribunal-tmp-999999999@1@0-abc").exists());
    let done = sandbox.json(&["gc"]);
    assert_eq!(
        (&said["bytes"], &said["copies"], &said["temporary"]),
        (&done["bytes"], &done["copies"], &done["temporary"])
    );
    assert!(!copies(&resolved).exists() && !copies("nobody-0000").exists());
    assert!(copies(&waiting).exists() && copies(&died).exists());
    assert!(
        sandbox.path(".tribunal-tmp-mine").exists()
            && sandbox.path(".tribunal/work/somebody/thesis.md").exists()
    );
    assert_eq!(sandbox.litter().len(), 1);
    assert_eq!(sandbox.run(&["gc"]).out, "nothing to remove\n");
}

#[test]
fn a_young_run_stays_and_a_project_without_runs_is_left_alone() {
    let (sandbox, _) = project();
    let ran = sandbox.run(&["gc", "--runs"]);
    assert_eq!((ran.code, sandbox.runs().len()), (Some(0), 3));
    let empty = Sandbox::new();
    assert_eq!(empty.run(&["gc"]).out, "nothing to remove\n");
    assert!(!empty.path(".tribunal").exists());
}

#[test]
fn a_run_that_goes_on_is_left_alone() {
    let (sandbox, mut child, _lines) = hanging();
    let run = sandbox.last_run();
    assert_eq!(sandbox.json(&["runs", "--live"])["runs"][0]["run"], run.as_str());
    let ran = sandbox.run(&["gc", "--runs", "--keep-days", "0"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "nothing to remove\n"));
    assert!(ran.err.contains(&format!("[i] run {run} goes on")), "{}", ran.err);
    assert!(sandbox.path(&format!(".tribunal/work/{run}/round-1.freeze/tree/plan.md")).exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn people_are_told_what_went() {
    let (sandbox, _) = project();
    orphan(&sandbox);
    let out = sandbox.run(&["gc", "--runs", "--keep-days", "0", "--dry-run"]).out;
    let out = sandbox.normal(&out);
    // The sizes change with every word of the prompts, so the snapshot leaves them out.
    let lines = out.lines().map(|line| line.split(" (").next().unwrap());
    let lines: Vec<&str> = lines.map(|line| line.split(" KB in all").next().unwrap()).collect();
    insta::assert_snapshot!(lines[..4].join("\n"), @r"
    would remove 1 folder of copies
    would remove 4 texts that nothing refers to
    would remove 1 run
      [run]
    ");
}

#[test]
fn a_link_in_the_place_of_our_folder_is_refused() {
    let sandbox = Sandbox::scripted(SCRIPT);
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(0));
    let scratch = sandbox.home().with_file_name("scratch");
    std::fs::create_dir_all(scratch.join("thesis")).unwrap();
    let work = sandbox.path(".tribunal/work");
    let _ = std::fs::remove_dir_all(&work);
    std::os::unix::fs::symlink(&scratch, &work).unwrap();
    let ran = sandbox.run(&["gc"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    insta::assert_snapshot!(ran.err, @r"
    [!] .tribunal/work is a link
        Behind it could be what is not Tribunal's to remove. Nothing was removed.
        1. see where it leads: ls -ld .tribunal/work
        2. put a folder in its place, then: tribunal gc
    ");
    assert!(scratch.join("thesis").exists());
}

#[test]
fn a_run_whose_processes_are_still_ending_is_left_alone() {
    let sandbox = Sandbox::scripted(SCRIPT);
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(0));
    let run = sandbox.last_run();
    // The lock looks as if the process had been killed and its keepers had not finished yet.
    let _held = hold(&sandbox, &run, &format!("{run}\n1@1@0\n"));
    let said = sandbox.json(&["gc", "--runs", "--keep-days", "0"]);
    assert_eq!((&said["live"][0], said["runs"].as_array().unwrap().len()), (&run.as_str().into(), 0));
    assert_eq!(sandbox.runs(), [run]);
}
