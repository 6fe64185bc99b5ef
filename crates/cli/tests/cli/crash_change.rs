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

use crate::common::{Ran, Sandbox, scripted_agent};

const FILES: usize = 40;
const FLAWS: usize = 5;
const KILLS: usize = 50;

fn path(file: usize) -> String {
    format!("src/part{}/f{file:02}.txt", file % 4)
}

fn line(word: &str, file: usize, flaw: usize) -> String {
    format!("{word} {flaw} of f{file:02}.")
}

fn text(file: usize, word: &str) -> String {
    let mut text = format!("File {file}\n");
    for flaw in 0..FLAWS {
        let _ = write!(text, "\nPart {flaw} of {file}\n\n{}\n", line(word, file, flaw));
    }
    text
}

/// Builds the script of reviewers and fixers: 200 findings of all severities in 40 files.
fn script() -> String {
    let (mut findings, mut fixes) = (String::new(), String::new());
    for (file, flaw) in (0..FILES).flat_map(|file| (0..FLAWS).map(move |flaw| (file, flaw))) {
        let (bad, good) = (line("Flaw", file, flaw), line("Done", file, flaw));
        let severity = ["critical", "high", "medium", "low"][(file + flaw) % 4];
        let _ = writeln!(
            findings,
            "      - {{severity: {severity}, category: test, description: 'f{file:02} has {flaw}', quote: '{bad}'}}"
        );
        let _ =
            writeln!(fixes, "    - {{match: '{bad}', replace: '{bad}', with: '{good}', description: done}}");
    }
    format!(
        "tasks:\n- task: 'round-1/review/*'\n  steps:\n  - findings:\n{findings}\
         - task: '*/review/*'\n  steps: [{{findings: []}}]\n- task: '*/fix/*'\n  fix:\n{fixes}"
    )
}

fn big_change() -> Sandbox {
    let sandbox = Sandbox::new();
    for file in 0..FILES {
        sandbox.write(&path(file), &text(file, "Fine"));
    }
    sandbox.write("../script.yaml", &script());
    sandbox.write(
        "tribunal.yaml",
        &format!(
            "tier: 1\nagents: {{use: [scripted], scripted: {{driver: command, argv: [{:?}, {:?}]}}}}\n\
             tasks: {{retry_after: 0, required_issues: 0, max_concurrent_fixers: 3, max_issues_per_agent: 10}}\n\
             limits: {{max_findings: 250, max_tokens: 1000000000}}\n",
            scripted_agent(),
            sandbox.path("../script.yaml"),
        ),
    );
    for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "x"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"]).args(args);
        sandbox.at_home(&mut git);
        assert!(git.current_dir(sandbox.root()).status().unwrap().success());
    }
    for file in 0..FILES {
        sandbox.write(&path(file), &text(file, "Flaw"));
    }
    sandbox
}

/// What must be the same however often the program was killed.
#[derive(Debug, PartialEq)]
struct Result {
    outcome: Value,
    findings: Vec<Vec<Value>>,
    files: BTreeMap<String, Vec<u8>>,
}

fn result(sandbox: &Sandbox) -> Result {
    let findings = sandbox.json(&["findings"]);
    let field = |finding: &Value, name: &str| finding[name].clone();
    let fields = |finding: &Value| {
        ["id", "status", "severity", "place", "raisers"].map(|name| field(finding, name)).to_vec()
    };
    Result {
        outcome: sandbox.json(&["runs"])["runs"][0]["last"]["outcome"].clone(),
        findings: findings["findings"].as_array().unwrap().iter().map(fields).collect(),
        files: files(sandbox),
    }
}

/// Returns all files of the user.
fn files(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![sandbox.root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap().flatten() {
            let path = item.path();
            let name = path.strip_prefix(sandbox.root()).unwrap().display().to_string();
            if !item.file_type().unwrap().is_dir() {
                files.insert(name, fs::read(path).unwrap());
            } else if name != ".git" && name != ".tribunal" {
                folders.push(path);
            }
        }
    }
    // The settings contain the path of the sandbox.
    files.remove("tribunal.yaml");
    files
}

/// Returns the number of agent calls so far, by task.
fn calls(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for task in fs::read_to_string(sandbox.path("../calls")).unwrap_or_default().lines() {
        *calls.entry(task.to_string()).or_default() += 1;
    }
    calls
}

fn command(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.command(args);
    command.env("TRIBUNAL_CALLS", sandbox.path("../calls"));
    command
}

/// Runs until the fault point kills it, until it has printed `max_events` events, or to its end. Returns whether it was
/// killed.
fn live(sandbox: &Sandbox, args: &[&str], fault: &str, most: usize) -> bool {
    let mut child = command(sandbox, args)
        .env("TRIBUNAL_FAULT", fault)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let told = BufReader::new(child.stdout.take().unwrap()).lines().take(most).count();
    if told == most {
        // The process may have ended already.
        let _ = child.kill();
    }
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert!(matches!(ran.code, None | Some(0)), "{fault}: {:?}: {}", ran.code, ran.err);
    ran.code.is_none()
}

/// Returns all events in the journal.
fn journal(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.runs().pop().map(|run| sandbox.events(&["log", &run])).unwrap_or_default()
}

/// Picks the fault point of the next life among the entries that are still missing.
fn next_point(sandbox: &Sandbox, missing: &[&str], due: usize, dice: &mut Dice) -> String {
    let flawed = |file: &usize| sandbox.read(&path(*file)).contains("Flaw");
    let flawed: Vec<usize> = (0..FILES).filter(flawed).collect();
    // The stride leaves enough entries for the later kills.
    let stride = (missing.len() / due).clamp(1, missing.len());
    let of_agent = |id: &&&str| {
        let (reply, key) = (id.contains(":finished:"), id.rsplit_once('/').map_or("", |(key, _)| key));
        reply && (key.ends_with("/fix") || key.ends_with("/review"))
    };
    let replies: Vec<&&str> = missing.iter().filter(of_agent).take(3).collect();
    match dice.roll(8) {
        0 if !flawed.is_empty() => "between:landing".to_string(),
        1 if !flawed.is_empty() => "before:landing".to_string(),
        2 if !flawed.is_empty() => format!("before:write:f{:02}.txt", flawed[0]),
        // The reply is not recorded yet, so the agent has to be asked again.
        3 | 4 if !replies.is_empty() => format!("before:{}", replies[dice.roll(replies.len())]),
        5 => format!("after:{}", missing[dice.roll(stride)]),
        _ => format!("before:{}", missing[dice.roll(stride)]),
    }
}

#[test]
fn two_hundred_findings_survive_fifty_kills() {
    let whole = big_change();
    let review = ["review", "--work-tree", "--json"];
    assert!(!live(&whole, &review, "", usize::MAX));
    let due = result(&whole);
    assert_eq!(due.outcome, "resolved");
    assert_eq!(due.findings.len(), FILES * FLAWS);
    assert!(due.findings.iter().all(|finding| finding[1] == "fixed"));
    for file in 0..FILES {
        assert_eq!(String::from_utf8_lossy(&due.files[&path(file)]), text(file, "Done"));
    }
    let reference = journal(&whole);
    let ids: Vec<&str> = reference.iter().filter_map(|event| event["id"].as_str()).collect();

    let sandbox = big_change();
    let mut dice = Dice::new(7);
    let mut paid: BTreeMap<String, usize> = BTreeMap::new();
    for kill in 0..KILLS {
        let journal = journal(&sandbox);
        let seen: BTreeSet<&str> = journal.iter().filter_map(|event| event["id"].as_str()).collect();
        let calls = calls(&sandbox);
        for event in &journal {
            if event["kind"] == "effect_finished" && event["reply"]["outcome"] == "answered" {
                let task = event["key"].as_str().unwrap();
                let times = *paid.entry(task.to_string()).or_insert(calls[task]);
                assert_eq!(calls[task], times, "{task} was recorded and asked again");
            }
        }
        let missing: Vec<&str> = ids.iter().copied().filter(|id| !seen.contains(id)).collect();
        let point = next_point(&sandbox, &missing, KILLS - kill, &mut dice);
        // Every third life is killed from outside after a few events, at an arbitrary point.
        let most = if kill % 3 == 0 { 1 + dice.roll(8) } else { usize::MAX };
        let args = if journal.is_empty() { &review[..] } else { &["resume", "--json"] };
        assert!(live(&sandbox, args, &point, most), "kill {kill}: {point} did not come up");
    }
    assert!(!live(&sandbox, &["resume", "--json"], "", usize::MAX));
    assert!(paid.len() > 10, "the journal's answers were looked at: {paid:?}");
    let calls = calls(&sandbox);
    for (task, times) in paid {
        assert_eq!(calls[&task], times, "{task} was recorded and asked again");
    }
    println!("{} events, {} agent calls", ids.len(), calls.values().sum::<usize>());
    let came = result(&sandbox);
    assert_eq!(came.findings, due.findings);
    assert!(came == due, "the files are others");
    assert!(sandbox.litter().is_empty(), "{:?}", sandbox.litter());
}
