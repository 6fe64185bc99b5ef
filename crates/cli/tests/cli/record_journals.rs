//! Records the journals that `workflows`'s tests replay. Run it only when the format of journals changes, and say in the commit what
//! became different: `cargo test -p tribunal --test cli -- --ignored record_journals`.

use std::{fs, path::Path};

use crate::{
    common::{PRD, Sandbox, scripted_agent_path},
    crash_harness::{CrashScenario, list_runs, name_of},
    crash_loop::LOOP_SCENARIO,
    crash_sprint::SPRINT_SCENARIO,
    crash_story::STORY_SCENARIO,
};

#[test]
#[ignore = "writes into the sources"]
fn record_journals() {
    let demo_sandbox = Sandbox::with_demo();
    assert_eq!(demo_sandbox.run_tribunal(&["review", PRD]).exit_code, Some(0));
    write_journals(&demo_sandbox, "demo");
    for (name, scenario) in [("loop", LOOP_SCENARIO), ("story", STORY_SCENARIO), ("sprint", SPRINT_SCENARIO)] {
        write_journals(&run_scenario(&scenario), name);
    }
}

fn run_scenario(scenario: &CrashScenario) -> Sandbox {
    let sandbox = (scenario.new_sandbox)();
    let output = scenario.run_with_fault(&sandbox, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    sandbox
}

/// Writes the journals of all runs of a sandbox into one file, that of the root first.
fn write_journals(sandbox: &Sandbox, name: &str) {
    let mut rows = list_runs(sandbox);
    rows.sort_by_key(|row| (name_of(row) != "root", row["run"].to_string()));
    let mut lines = String::new();
    for row in rows {
        for event in sandbox.run_events(&["log", row["run"].as_str().unwrap()]) {
            lines += &hide_paths(sandbox, &format!("{event}\n"));
        }
    }
    let recorded_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflows/tests/recorded");
    fs::create_dir_all(&recorded_dir).unwrap();
    fs::write(recorded_dir.join(format!("{name}.jsonl")), lines).unwrap();
}

/// Replaces the directories of the machine on which the journal was recorded.
fn hide_paths(sandbox: &Sandbox, line: &str) -> String {
    let (sandbox_dir, agent_path) = (sandbox.root_dir().parent().unwrap(), scripted_agent_path());
    line.replace(&sandbox_dir.display().to_string(), "/sandbox")
        .replace(&agent_path.parent().unwrap().display().to_string(), "/agents")
}
