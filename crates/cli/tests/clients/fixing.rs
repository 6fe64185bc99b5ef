//! Fixers write in a copy, and what they wrote lands as a patch.

use std::{thread, time::Duration};

use tribunal_testkit::model::{
    Call, Rule, Step,
    parts::{Edit, finding, fixed, fixer, fixing, reviewer},
};

use crate::common::{Bench, CLEAR, Client, PLAN, VAGUE, running, with_each_client};

with_each_client!(
    a_fix_lands_as_a_patch,
    a_fixer_s_commands_work_in_its_copy,
    a_client_that_falls_silent_is_ended_with_all_it_started,
);

fn raise() -> Rule {
    reviewer(1, &[finding("high", "fast is vague", VAGUE)])
}

const EDIT: Edit<'_> = Edit { path: "plan.md", old: VAGUE, new: CLEAR };

fn a_fix_lands_as_a_patch(client: Client) {
    let bench = Bench::new(&[client], [raise(), fixer("fast is vague", &[EDIT], &[fixed("F1")])]);
    bench.review();
    assert_eq!(bench.sandbox.read("plan.md"), PLAN.replace(VAGUE, CLEAR));
    assert_eq!(bench.findings(), ["F1 fixed"]);
    assert_eq!(bench.unscripted(), [""; 0]);
    let landed = bench.reply("round-1/fix-1/fix/1/land");
    assert_eq!(landed["hunks"].as_array().map(Vec::len), Some(1), "{landed}");
}

fn a_fixer_s_commands_work_in_its_copy(client: Client) {
    let rewrite = format!("sed -i 's/{VAGUE}/{CLEAR}/' plan.md && pwd");
    let done = Step::structured(serde_json::json!({"fixes": [fixed("F1")]}));
    let rule = Rule::when(fixing("fast is vague"), [Step::calls([Call::Shell(rewrite)]), done]);
    let bench = Bench::new(&[client], [raise(), rule]);
    allow_commands(&bench);
    bench.review();
    assert_eq!(bench.sandbox.read("plan.md"), PLAN.replace(VAGUE, CLEAR));
    let tally = bench.server.tally();
    let said = tally.requests.iter().flat_map(|request| &request.results).next().unwrap();
    assert!(said.contains("/.tribunal/work/"), "not the person's tree: {said}");
}

/// Allows commands, which Claude Code may not use without being asked.
fn allow_commands(bench: &Bench) {
    bench.settle("agents: {", "agents: {claude-code: {allow: [Bash]}, ");
}

/// Builds a sleep command that no other process on this machine uses.
fn sleep() -> String {
    format!("sleep 6{}.5", std::process::id())
}

fn a_client_that_falls_silent_is_ended_with_all_it_started(client: Client) {
    // Both clients run this test in one process, so the process id alone is not unique.
    let sleep = format!("{}{}", sleep(), client as u8);
    let rule = Rule::when(fixing("fast is vague"), [Step::calls([Call::Shell(sleep.clone())])]);
    let bench = Bench::new(&[client], [raise(), rule]);
    allow_commands(&bench);
    bench.sandbox.set("limits: {max_fix_iterations: 1}");
    bench.settle("tasks: {", "tasks: {idle_timeout: 10, ");
    let mut run = bench.start(&["review", "plan.md"], |event| event["key"] == "round-1/fix-1/fix/1");
    while running(&sleep).is_empty() {
        assert!(run.is_at_work(), "nobody slept");
        thread::sleep(Duration::from_millis(20));
    }
    assert_ne!(run.end(), Some(0));
    let reply = bench.reply("round-1/fix-1/fix/1");
    assert_eq!(reply["fault"], "silent", "{reply}");
    assert_eq!(running(&sleep), [""; 0]);
    assert_eq!(bench.sandbox.read("plan.md"), PLAN);
}
