//! What a run suggests after it came to nothing: every suggested command is run, and has to show or change something.

use std::process::Stdio;

use tribunal_engine::ids::RunId;
use tribunal_store::{EntryBatch, Store};

use crate::common::{CONFIRM_REPAIRS, CommandOutput, Sandbox, hold_run_lock};

/// Runs the review and returns the suggested command that contains `part`.
fn suggested_command(sandbox: &Sandbox, part: &str) -> Vec<String> {
    let run_row = sandbox.run_json(&["runs"])["runs"][0].clone();
    let commands: Vec<String> =
        run_row["next"].as_array().unwrap().iter().map(|step| step.as_str().unwrap().into()).collect();
    let command = commands.iter().find(|command| command.contains(part)).unwrap_or_else(|| panic!("{commands:?}"));
    // The explanation stands behind the command.
    let command = command.split("    (").next().unwrap();
    command.split(' ').skip(1).map(String::from).collect()
}

fn run_suggested(sandbox: &Sandbox, part: &str) -> CommandOutput {
    let arguments = suggested_command(sandbox, part);
    sandbox.run_tribunal(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn an_unusable_answer_leads_to_what_the_agent_printed() {
    let sandbox = Sandbox::with_shell_agent("cat >/dev/null; echo 'I would rather not.'\n");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(
        output.stderr.contains("(what mine printed)") && !output.stderr.contains("tribunal doctor"),
        "{}",
        output.stderr
    );
    let transcript = run_suggested(&sandbox, "what mine printed");
    assert_eq!(transcript.exit_code, Some(0), "{}", transcript.stderr);
    assert!(transcript.stdout.contains("printed:\nI would rather not.\n"), "{}", transcript.stdout);
}

#[test]
fn a_crashing_agent_leads_to_its_error_output() {
    let sandbox = Sandbox::with_shell_agent("cat >/dev/null; echo 'the disk is on fire' >&2; exit 3\n");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(5));
    let transcript = run_suggested(&sandbox, "what mine printed");
    assert!(transcript.stdout.contains("the disk is on fire"), "{}", transcript.stdout);
}

#[test]
fn a_timeout_leads_to_its_setting() {
    let sandbox = Sandbox::with_shell_agent("cat >/dev/null; exec sleep 60\n");
    let output = sandbox.run_tribunal(&["review", "plan.md", "--set", "tasks.reviewer_timeout=1"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("--reload --set tasks.reviewer_timeout=2"), "{}", output.stderr);
    // In the meantime the agent has become quicker. On a busy machine two seconds may be too few all the same; then the
    // suggestion doubles them.
    sandbox.write_file("agent.sh", "cat >/dev/null; echo 'findings: []'\n");
    let mut output = run_suggested(&sandbox, "give mine more time");
    for _ in 0..6 {
        if output.stderr.contains("timed out after") {
            output = run_suggested(&sandbox, "give mine more time");
        }
    }
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let settings = sandbox.run_events(&["log", &sandbox.last_run_id(), "--kind", "settings_changed"]);
    assert_eq!(settings[0]["order"]["panel"]["reviewer_timeout_ms"], 2000);
}

#[test]
fn a_red_check_leads_to_its_output() {
    let sandbox = Sandbox::with_shell_agent(&format!(
        "cat >/dev/null\ncase $TRIBUNAL_TASK in\n{CONFIRM_REPAIRS}\n\
         */fix/*) sed -i s/fast/quick/ plan.md; echo '{{\"fixes\": [{{\"id\": \"F1\", \"status\": \"FIXED\"}}]}}';;\n\
         *) echo '{{\"findings\": [{{\"severity\": \"high\", \"description\": \"vague\", \"quote\": \"It shall be fast.\"}}]}}';;\nesac\n"
    ));
    sandbox.append_setting("verify: [\"echo first line; echo second line; grep -q slow plan.md\"]\nbaseline: false");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    let log = run_suggested(&sandbox, "output of the check `echo first line; ");
    assert_eq!(log.exit_code, Some(0), "{}", log.stderr);
    assert!(
        log.stdout.contains("F1: check `echo first line; echo second line; grep -q slow plan.md` failed\n"),
        "{}",
        log.stdout
    );
    assert!(log.stdout.contains("       | first line\n       | second line\n"), "{}", log.stdout);
}

#[test]
fn suggested_commands_name_the_project_that_was_named() {
    let sandbox = Sandbox::with_shell_agent("cat >/dev/null; echo nonsense\n");
    let project_dir = sandbox.root_dir().display().to_string();
    let run_elsewhere = |arguments: &[&str]| {
        let mut command = sandbox.tribunal_command(&[&["-C", project_dir.as_str()], arguments].concat());
        CommandOutput::from_output(command.current_dir("/").output().unwrap())
    };
    let output = run_elsewhere(&["review", &sandbox.path_of("plan.md").display().to_string()]);
    assert!(output.stderr.contains(&format!("tribunal -C {project_dir} inspect transcript ")), "{}", output.stderr);
    let runs = run_elsewhere(&["runs", "--json"]).stdout;
    assert!(runs.contains(&format!("tribunal -C {project_dir} inspect transcript ")), "{runs}");
    let output = run_elsewhere(&["log", "no-such-run"]);
    assert!(output.stderr.contains(&format!("`tribunal -C {project_dir} runs`")), "{}", output.stderr);
}

#[test]
fn an_answer_to_a_live_run_does_not_suggest_to_resume_it() {
    let sandbox = Sandbox::with_script(
        "tasks:\n  - task: '*/review/*'\n    steps: [{findings: [{severity: high, description: fast is vague, \
         quote: It shall be fast.}]}]\n  - task: '*/fix/*'\n    fix: [{match: fast, blocked: how fast must it be}]\n",
    );
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(3));
    let run_id = sandbox.last_run_id();
    let own_identity = tribunal_supervise::ProcessIdentity::current();
    let _held_lock = hold_run_lock(&sandbox, &run_id, &format!("{run_id}\n{own_identity}\n"));
    // The agents of this run have no sandbox, so the command waits until the run has looked at it.
    let output = answer_with_receipt(&sandbox, &run_id, false);
    assert_eq!(
        output.stderr,
        format!(
            "error: run {run_id} has not accepted this, so it does not count\n  \
             Its agents have no sandbox, so the run accepts only commands of the program that it runs in itself.\n  \
             help: use that program, in a terminal of your own\n"
        )
    );
    let output = answer_with_receipt(&sandbox, &run_id, true);
    assert_eq!(
        output.stdout,
        format!("answer recorded; run {run_id} reads it at its next step\n"),
        "{}",
        output.stderr
    );
}

/// Answers the decision of a run, in whose place the test accepts the answer or not.
fn answer_with_receipt(sandbox: &Sandbox, run_id: &str, is_accepted: bool) -> CommandOutput {
    let mut command = sandbox.tribunal_command(&["decisions", "D1", "defer"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let store = Store::open(&sandbox.path_of(".tribunal")).unwrap();
    let inbox_id = loop {
        match store.pending_requests(&RunId::new(run_id)).unwrap().last() {
            Some(stored) => break stored.inbox_id,
            None => std::thread::yield_now(),
        }
    };
    store.append(EntryBatch { receipts: vec![(inbox_id, is_accepted)], ..EntryBatch::default() }).unwrap();
    CommandOutput::from_output(child.wait_with_output().unwrap())
}
