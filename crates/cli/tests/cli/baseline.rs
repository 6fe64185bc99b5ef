//! The checks run once on the untouched project, before the first agent is asked.

use std::fs;

use crate::common::{CONFIRM_REPAIRS, CommandOutput, Sandbox};

/// A project whose agent counts its calls, finds one flaw and repairs it.
fn sandbox_with_checks(checks_yaml: &str) -> Sandbox {
    let sandbox = Sandbox::with_shell_agent("");
    let calls_path = sandbox.root_dir().parent().unwrap().join("calls");
    sandbox.write_file(
        "agent.sh",
        &format!(
            "cat >/dev/null\necho call >>{calls_path:?}\ncase $TRIBUNAL_TASK in\n{CONFIRM_REPAIRS}\n\
             */fix/*) sed -i s/fast/quick/ plan.md; echo '{{\"fixes\": [{{\"id\": \"F1\", \"status\": \"FIXED\"}}]}}';;\n\
             *) echo '{{\"findings\": [{{\"severity\": \"high\", \"description\": \"vague\", \
             \"quote\": \"It shall be fast.\"}}]}}';;\nesac\n"
        ),
    );
    sandbox.append_setting(checks_yaml);
    sandbox
}

fn count_calls(sandbox: &Sandbox) -> usize {
    let calls_path = sandbox.root_dir().parent().unwrap().join("calls");
    fs::read_to_string(calls_path).map_or(0, |calls| calls.lines().count())
}

fn review(sandbox: &Sandbox, more_args: &[&str]) -> CommandOutput {
    sandbox.run_tribunal(&[&["review", "plan.md"], more_args].concat())
}

#[test]
fn a_red_check_keeps_every_agent_from_being_asked_until_it_is_repaired() {
    let sandbox = sandbox_with_checks("verify: [\"test -f Makefile || { echo no rule to make; exit 2; }\"]");
    let output = review(&sandbox, &[]);
    assert_eq!((output.exit_code, count_calls(&sandbox)), (Some(3), 0), "{}", output.stderr);
    for expected_text in [
        "failed with exit code 2 on the untouched project",
        "no rule to make",
        "--skip-baseline",
        "tribunal resume plan-",
    ] {
        assert!(output.stderr.contains(expected_text), "{expected_text}: {}", output.stderr);
    }
    let events = sandbox.run_events(&["log"]);
    assert!(events.iter().any(|event| event["kind"] == "run_parked" && event["reason"] == "baseline"), "{events:?}");
    // Nothing has changed, so the checks fail again; after a repair the run goes on.
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!((output.exit_code, count_calls(&sandbox)), (Some(3), 0), "{}", output.stderr);
    sandbox.write_file("Makefile", "all:\n");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!((output.exit_code, count_calls(&sandbox)), (Some(0), 3), "{}", output.stderr);
    assert!(output.stderr.contains("checks pass on the untouched project (1 check, "), "{}", output.stderr);
}

#[test]
fn the_suggested_command_goes_on_without_the_checks() {
    let sandbox = sandbox_with_checks("verify: [grep -q quick plan.md]");
    assert_eq!(review(&sandbox, &[]).exit_code, Some(3));
    let output = sandbox.run_tribunal(&["resume", "--reload", "--set", "baseline=false"]);
    assert_eq!((output.exit_code, count_calls(&sandbox)), (Some(0), 3), "{}", output.stderr);
    assert!(sandbox.read_file("plan.md").contains("quick"));
}

#[test]
fn a_missing_program_is_the_fault_of_the_environment() {
    let sandbox = sandbox_with_checks("verify: [cd . && no-such-program-here]");
    let output = review(&sandbox, &[]);
    assert_eq!((output.exit_code, count_calls(&sandbox)), (Some(5), 0), "{}", output.stderr);
    assert!(output.stderr.contains("its program is missing in the workspace"), "{}", output.stderr);
}

#[test]
fn the_checks_are_skipped_where_they_are_not_wanted() {
    let red_check = "verify: [\"grep -q quick plan.md\"]";
    let sandbox = sandbox_with_checks(red_check);
    let output = review(&sandbox, &["--skip-baseline"]);
    assert_eq!((output.exit_code, count_calls(&sandbox)), (Some(0), 3), "{}", output.stderr);
    let sandbox = sandbox_with_checks(&format!("{red_check}\nbaseline: false"));
    assert_eq!((review(&sandbox, &[]).exit_code, count_calls(&sandbox)), (Some(0), 3));
    let sandbox = sandbox_with_checks(red_check);
    let output = review(&sandbox, &["--no-fix"]);
    assert_eq!((output.exit_code, count_calls(&sandbox)), (Some(3), 1), "{}", output.stderr);
    assert!(!output.stderr.contains("untouched"), "{}", output.stderr);
}

#[test]
fn an_ignored_file_that_the_check_needs_is_named() {
    let sandbox = sandbox_with_checks("verify: [test -f .env]");
    let git = |args: &[&str]| assert!(sandbox.isolated_command("git").args(args).status().unwrap().success());
    git(&["init", "-q"]);
    sandbox.write_file(".gitignore", ".env\nnode_modules/\n");
    sandbox.write_file(".env", "a=b\n");
    sandbox.write_file("node_modules/a/index.js", "x\n");
    let output = review(&sandbox, &[]);
    assert_eq!((output.exit_code, count_calls(&sandbox)), (Some(3), 0), "{}", output.stderr);
    assert!(output.stderr.contains("not in the workspace: .env, node_modules/"), "{}", output.stderr);
    assert!(output.stderr.contains("`workspace.seed`"), "{}", output.stderr);
    sandbox.append_setting("workspace: {seed: [.env]}");
    let output = sandbox.run_tribunal(&["resume", "--reload"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
}

#[test]
fn a_red_check_to_fix_is_a_finding_from_the_start() {
    let sandbox = sandbox_with_checks("checks: [{command: grep -q quick plan.md, on_failure: fix}]");
    // The check is F1, and what the reviewer finds is F2.
    let both_claims = r#"{"id": "F1", "status": "FIXED"}, {"id": "F2", "status": "FIXED"}"#;
    let script = sandbox.read_file("agent.sh").replace(r#"{"id": "F1", "status": "FIXED"}"#, both_claims);
    sandbox.write_file("agent.sh", &script);
    let output = review(&sandbox, &[]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let findings = sandbox.run_json(&["findings", &sandbox.last_run_id()]);
    assert_eq!(findings["findings"][0]["evidence"], "check", "{findings}");
    assert_eq!(findings["findings"][0]["status"], "fixed", "{findings}");
}
