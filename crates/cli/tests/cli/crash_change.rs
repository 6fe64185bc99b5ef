//! A big change, repaired by three fixers at a time while the program is killed again and again. It must reach the files,
//! findings and statuses of an uninterrupted run, and no recorded agent call may be repeated.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::Value;
use tribunal_testkit::Dice;

use crate::{
    common::{CommandOutput, Sandbox, scripted_agent_path},
    loop_sandbox::count_calls,
};

const FILE_COUNT: usize = 40;
const FLAWS_PER_FILE: usize = 5;

fn file_path(file_number: usize) -> String {
    format!("src/part{}/f{file_number:02}.txt", file_number % 4)
}

fn flaw_line(first_word: &str, file_number: usize, flaw_number: usize) -> String {
    format!("{first_word} {flaw_number} of f{file_number:02}.")
}

fn file_text(file_number: usize, first_word: &str) -> String {
    let mut text = format!("File {file_number}\n");
    for flaw_number in 0..FLAWS_PER_FILE {
        let _ = write!(
            text,
            "\nPart {flaw_number} of {file_number}\n\n{}\n",
            flaw_line(first_word, file_number, flaw_number)
        );
    }
    text
}

/// Builds the script of reviewers and fixers: 200 findings of all severities in 40 files.
fn review_script() -> String {
    let (mut findings, mut fix_rules) = (String::new(), String::new());
    for (file_number, flaw_number) in
        (0..FILE_COUNT).flat_map(|file_number| (0..FLAWS_PER_FILE).map(move |flaw_number| (file_number, flaw_number)))
    {
        let (flawed_line, fixed_line) =
            (flaw_line("Flaw", file_number, flaw_number), flaw_line("Done", file_number, flaw_number));
        let severity = ["critical", "high", "medium", "low"][(file_number + flaw_number) % 4];
        let _ = writeln!(
            findings,
            "      - {{severity: {severity}, category: test, description: 'f{file_number:02} has {flaw_number}', quote: '{flawed_line}'}}"
        );
        let _ = writeln!(
            fix_rules,
            "    - {{match: '{flawed_line}', replace: '{flawed_line}', with: '{fixed_line}', description: done}}"
        );
    }
    format!(
        "tasks:\n- task: 'round-1/review/*'\n  steps:\n  - findings:\n{findings}\
         - task: '*/review/*'\n  steps: [{{findings: []}}]\n- task: '*/fix/*'\n  fix:\n{fix_rules}"
    )
}

fn sandbox_with_big_change() -> Sandbox {
    let sandbox = Sandbox::new();
    for file_number in 0..FILE_COUNT {
        sandbox.write_file(&file_path(file_number), &file_text(file_number, "Fine"));
    }
    sandbox.write_file("../script.yaml", &review_script());
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 1\nagents: {{use: [scripted], scripted: {{driver: command, argv: [{:?}, {:?}]}}}}\n\
             tasks: {{retry_after: 0, required_issues: 0, max_concurrent_fixers: 3, max_issues_per_agent: 10}}\n\
             limits: {{max_findings: 250, max_tokens: 1000000000}}\n",
            scripted_agent_path(),
            sandbox.path_of("../script.yaml"),
        ),
    );
    for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "x"]] {
        let mut git_command = Command::new("git");
        git_command.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"]).args(args);
        sandbox.set_home_env(&mut git_command);
        assert!(git_command.current_dir(sandbox.root_dir()).status().unwrap().success());
    }
    for file_number in 0..FILE_COUNT {
        sandbox.write_file(&file_path(file_number), &file_text(file_number, "Flaw"));
    }
    sandbox
}

/// What must be the same however often the program was killed.
#[derive(Debug, PartialEq)]
struct ChangeResult {
    outcome: Value,
    findings: Vec<Vec<Value>>,
    files: BTreeMap<String, Vec<u8>>,
}

fn collect_result(sandbox: &Sandbox) -> ChangeResult {
    let findings = sandbox.run_json(&["findings"]);
    let field_of = |finding: &Value, field_name: &str| finding[field_name].clone();
    let fields_of = |finding: &Value| {
        ["id", "status", "severity", "place", "raisers"].map(|field_name| field_of(finding, field_name)).to_vec()
    };
    ChangeResult {
        outcome: sandbox.run_json(&["runs"])["runs"][0]["last"]["outcome"].clone(),
        findings: findings["findings"].as_array().unwrap().iter().map(fields_of).collect(),
        files: user_files(sandbox),
    }
}

/// Returns all files of the user.
fn user_files(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let mut files_by_name = BTreeMap::new();
    let mut directories = vec![sandbox.root_dir().to_path_buf()];
    while let Some(directory) = directories.pop() {
        for dir_entry in fs::read_dir(directory).unwrap().flatten() {
            let entry_path = dir_entry.path();
            let file_name = entry_path.strip_prefix(sandbox.root_dir()).unwrap().display().to_string();
            if !dir_entry.file_type().unwrap().is_dir() {
                files_by_name.insert(file_name, fs::read(entry_path).unwrap());
            } else if file_name != ".git" && file_name != ".tribunal" {
                directories.push(entry_path);
            }
        }
    }
    // The settings contain the path of the sandbox.
    files_by_name.remove("tribunal.yaml");
    files_by_name
}

fn counting_command(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.tribunal_command(args);
    command.env("TRIBUNAL_CALLS", sandbox.path_of("../calls"));
    command
}

/// Runs until the fault point kills it, until it has printed `max_events` events, or to its end. Returns whether it was
/// killed.
fn run_until_killed(sandbox: &Sandbox, args: &[&str], fault_point: &str, max_events: usize) -> bool {
    let mut child = counting_command(sandbox, args)
        .env("TRIBUNAL_FAULT", fault_point)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let event_count = BufReader::new(child.stdout.take().unwrap()).lines().take(max_events).count();
    if event_count == max_events {
        // The process may have ended already.
        let _ = child.kill();
    }
    let output = CommandOutput::from_output(child.wait_with_output().unwrap());
    let waiting = sandbox.run_tribunal(&["decisions"]).stdout;
    assert!(
        matches!(output.exit_code, None | Some(0)),
        "{fault_point}: {:?}: {}{waiting}",
        output.exit_code,
        output.stderr
    );
    output.exit_code.is_none()
}

/// Returns all events in the journal.
fn journal_events(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.run_ids().pop().map(|run_id| sandbox.run_events(&["log", &run_id])).unwrap_or_default()
}

/// Picks the fault point of the next life among the entries that are still missing.
fn next_fault_point(sandbox: &Sandbox, missing_ids: &[&str], kills_left: usize, dice: &mut Dice) -> String {
    let is_flawed = |file_number: &usize| sandbox.read_file(&file_path(*file_number)).contains("Flaw");
    let flawed_files: Vec<usize> = (0..FILE_COUNT).filter(is_flawed).collect();
    // The stride leaves enough entries for the later kills.
    let stride = (missing_ids.len() / kills_left).clamp(1, missing_ids.len());
    let is_agent_reply = |entry_id: &&&str| {
        let (reply, key) = (entry_id.contains(":finished:"), entry_id.rsplit_once('/').map_or("", |(key, _)| key));
        reply && (key.ends_with("/fix") || key.ends_with("/review"))
    };
    let replies: Vec<&&str> = missing_ids.iter().filter(is_agent_reply).take(3).collect();
    match dice.roll(8) {
        0 if !flawed_files.is_empty() => "between:landing".to_string(),
        1 if !flawed_files.is_empty() => "before:landing".to_string(),
        2 if !flawed_files.is_empty() => format!("before:write:f{:02}.txt", flawed_files[0]),
        // The reply is not recorded yet, so the agent has to be asked again.
        3 | 4 if !replies.is_empty() => format!("before:{}", replies[dice.roll(replies.len())]),
        5 => format!("after:{}", missing_ids[dice.roll(stride)]),
        _ => format!("before:{}", missing_ids[dice.roll(stride)]),
    }
}

#[test]
fn a_big_change_survives_some_kills_with_the_same_result() {
    kill_repeatedly(10);
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_big_change_survives_many_kills_with_the_same_result() {
    kill_repeatedly(50);
}

fn kill_repeatedly(kill_count: usize) {
    let uninterrupted = sandbox_with_big_change();
    let review_args = ["review", "--work-tree", "--json"];
    assert!(!run_until_killed(&uninterrupted, &review_args, "", usize::MAX));
    let expected_result = collect_result(&uninterrupted);
    assert_eq!(expected_result.outcome, "resolved");
    assert_eq!(expected_result.findings.len(), FILE_COUNT * FLAWS_PER_FILE);
    assert!(expected_result.findings.iter().all(|finding| finding[1] == "fixed"));
    for file_number in 0..FILE_COUNT {
        assert_eq!(
            String::from_utf8_lossy(&expected_result.files[&file_path(file_number)]),
            file_text(file_number, "Done")
        );
    }
    let reference_events = journal_events(&uninterrupted);
    let reference_ids: Vec<&str> = reference_events.iter().filter_map(|event| event["id"].as_str()).collect();

    let sandbox = sandbox_with_big_change();
    let mut dice = Dice::new(7);
    let mut paid_calls: BTreeMap<String, usize> = BTreeMap::new();
    for kill in 0..kill_count {
        let recorded_events = journal_events(&sandbox);
        let recorded_ids: BTreeSet<&str> = recorded_events.iter().filter_map(|event| event["id"].as_str()).collect();
        let call_counts = count_calls(&sandbox);
        for event in &recorded_events {
            if event["kind"] == "effect_finished" && event["reply"]["outcome"] == "answered" {
                let task = event["key"].as_str().unwrap();
                let call_count = *paid_calls.entry(task.to_string()).or_insert(call_counts[task]);
                assert_eq!(call_counts[task], call_count, "{task} was recorded and asked again");
            }
        }
        let missing_ids: Vec<&str> =
            reference_ids.iter().copied().filter(|entry_id| !recorded_ids.contains(entry_id)).collect();
        let fault_point = next_fault_point(&sandbox, &missing_ids, kill_count - kill, &mut dice);
        // Every third life is killed from outside after a few events, at an arbitrary point.
        let max_events = if kill % 3 == 0 { 1 + dice.roll(8) } else { usize::MAX };
        let args = if recorded_events.is_empty() { &review_args[..] } else { &["resume", "--json"] };
        assert!(
            run_until_killed(&sandbox, args, &fault_point, max_events),
            "kill {kill}: {fault_point} did not come up"
        );
    }
    assert!(!run_until_killed(&sandbox, &["resume", "--json"], "", usize::MAX));
    assert!(paid_calls.len() > 10, "the journal's answers were looked at: {paid_calls:?}");
    let call_counts = count_calls(&sandbox);
    for (task, call_count) in paid_calls {
        assert_eq!(call_counts[&task], call_count, "{task} was recorded and asked again");
    }
    let final_result = collect_result(&sandbox);
    assert_eq!(final_result.findings, expected_result.findings);
    assert!(final_result == expected_result, "the files are others");
    assert!(sandbox.temporary_leftovers().is_empty(), "{:?}", sandbox.temporary_leftovers());
}
