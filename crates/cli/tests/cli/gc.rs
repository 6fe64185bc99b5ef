//! `tribunal gc`: what nobody needs goes, what somebody may need stays whole.

use serde_json::Value;

use crate::{common::Sandbox, people::hanging};

const SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}]
";

/// One run that is resolved, one that waits for a person, one that was killed.
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

/// All that a person can read of a run: its entries, and every text they name.
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
    sandbox.write(".tribunal/work/nobody-0000/x", "a copy\n");
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
    assert!(sandbox.path(".tribunal-tmp-mine").exists());
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
    sandbox.write(".tribunal/work/nobody-0000/x", "a copy\n");
    let out = sandbox.run(&["gc", "--runs", "--keep-days", "0", "--dry-run"]).out;
    let out = sandbox.normal(&out);
    // Sizes follow every word of the prompts.
    let lines = out.lines().map(|line| line.split(" (").next().unwrap());
    let lines: Vec<&str> = lines.map(|line| line.split(" KB in all").next().unwrap()).collect();
    insta::assert_snapshot!(lines[..4].join("\n"), @r"
    would remove 1 folder of copies
    would remove 4 texts that nothing refers to
    would remove 1 run
      [run]
    ");
}
