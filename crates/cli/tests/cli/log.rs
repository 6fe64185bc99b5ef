//! `tribunal log`: filters, prompts and answers, and following a live run.

use std::{
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

use serde_json::Value;

use crate::common::{Ran, Sandbox};

const SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}]
";

fn reviewed() -> Sandbox {
    let sandbox = Sandbox::scripted(SCRIPT);
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    sandbox
}

#[test]
fn filters_apply_to_events_too() {
    let sandbox = reviewed();
    let kinds = |args: &[&str]| -> Vec<String> {
        let events = sandbox.events(&[&["log"], args].concat());
        events.iter().map(|event| event["kind"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(
        kinds(&["--kind", "round_started", "--kind", "round_ended", "--round", "1"]),
        ["round_started", "round_ended"]
    );
    assert_eq!(kinds(&["--key", "round-1/freeze"]), ["effect_started", "effect_finished"]);
    assert_eq!(kinds(&["--kind", "finding_moved", "--finding", "f1"]), ["finding_moved", "finding_moved"]);
    assert_eq!(kinds(&["--warnings"]), [""; 0]);
    assert_eq!(kinds(&["--since", "2970-01-01"]), [""; 0]);
    let nothing = sandbox.run(&["log", "--round", "9"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(0), ""));
    assert!(nothing.err.contains("has no such entries"), "{}", nothing.err);
}

#[test]
fn what_nobody_can_mean_is_refused_with_what_is_meant() {
    let sandbox = reviewed();
    for (args, says) in [
        (["--kind", "finding_rised"], "1. did you mean `finding_raised`?"),
        (["--finding", "seven"], "Findings are called F1"),
        (["--since", "teatime"], "1. for instance: tribunal log --since 10m"),
    ] {
        let ran = sandbox.run(&["log", args[0], args[1]]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.err.starts_with("[!] ") && ran.err.contains(says), "{}", ran.err);
    }
}

#[test]
fn every_prompt_and_answer_can_be_read() {
    let sandbox = reviewed();
    let document = sandbox.json(&["log", "--prompts", "--key", "fix/1"]);
    assert_eq!(document["schema"], "tribunal.prompts/1");
    let call = &document["calls"][0];
    assert_eq!((call["agent"].as_str(), call["driver"].as_str()), (Some("scripted"), Some("replay")));
    let prompt = call["prompt"]["text"].as_str().unwrap();
    assert!(prompt.contains("fast is vague"), "{prompt}");
    assert_eq!(call["prompt"]["bytes"], prompt.len());
    assert!(call["answer"]["text"].as_str().unwrap().contains("FIXED"));
    let read = sandbox.run(&["log", "--prompts", "--key", "fix/1"]).out;
    assert!(read.contains("sent to scripted") && read.contains(prompt.trim_end()), "{read}");
    assert_eq!(
        sandbox.run(&["log", "--prompts"]).out.lines().count(),
        sandbox.json(&["log", "--prompts"])["calls"].as_array().unwrap().len()
    );
}

#[test]
fn what_was_sent_is_listed_even_if_the_agent_failed() {
    let sandbox = Sandbox::scripted("tasks: [{task: '*', steps: [{exit: 3}]}]\n");
    sandbox.run(&["review", "plan.md"]);
    let document = sandbox.json(&["log", "--sent"]);
    assert_eq!(document["schema"], "tribunal.sent/1");
    let calls = document["calls"].as_array().unwrap();
    assert!(!calls.is_empty());
    for call in calls {
        assert!(call["prompt"]["bytes"].as_u64().unwrap() > 100, "{call}");
        assert_eq!(call["answer"], Value::Null, "only what was sent was asked for");
    }
}

#[test]
fn what_was_sent_is_listed_by_vendor_with_what_it_comes_to() {
    let sandbox = Sandbox::scripted(SCRIPT);
    sandbox.write("agent.sh", "cat >/dev/null; echo '{\"findings\": []}'\n");
    let agent = |name: &str, provider: &str| {
        let script = sandbox.path("agent.sh");
        format!("  {name}: {{driver: command, argv: [sh, {script:?}], provider: {provider}}}\n")
    };
    sandbox.write(
        "tribunal.yaml",
        &format!(
            "tier: 2\nlevel: full\nfix: false\ntasks: {{required_issues: 0}}\nagents:\n  use: [one, two, scripted]\n{}{}  \
             scripted: {{driver: replay, script: script.yaml}}\n",
            agent("one", "acme"),
            agent("two", "globex")
        ),
    );
    let ran = sandbox.run(&["review", "plan.md", "--no-fix"]);
    assert!(ran.code.is_some(), "{}", ran.err);
    let sent = sandbox.run(&["log", "--sent"]).out;
    let heads: Vec<&str> = sent.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
    assert_eq!(heads, ["to acme", "to globex", "nobody: played from a script"], "{sent}");
    let document = sandbox.json(&["log", "--sent"]);
    let vendors = document["vendors"].as_array().unwrap();
    for vendor in vendors {
        let name = vendor["vendor"].as_str().unwrap();
        let calls = document["calls"].as_array().unwrap().iter();
        let of = calls.filter(|call| match name {
            "nobody" => call["driver"] == "replay",
            name => call["provider"] == name && call["driver"] != "replay",
        });
        let bytes: u64 = of.map(|call| call["prompt"]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(vendor["bytes"], bytes, "{name}");
        let shown = bytes.to_string();
        let shown = format!("{},{} bytes, about", &shown[..shown.len() - 3], &shown[shown.len() - 3..]);
        assert!(name == "nobody" || sent.contains(&shown), "{shown}: {sent}");
    }
    assert_eq!(sandbox.json(&["log", "--prompts"])["vendors"], Value::Null);
}

#[test]
fn a_run_is_followed_to_its_end() {
    let sandbox = Sandbox::scripted(SCRIPT);
    let mut review = sandbox
        .command(&["review", "plan.md", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(review.stdout.take().unwrap());
    let mut all = String::new();
    printed.read_line(&mut all).unwrap();
    let followed = sandbox.run(&["log", "--follow", "--json"]);
    printed.read_to_string(&mut all).unwrap();
    assert!(review.wait().unwrap().success());
    assert_eq!(followed.out, all);
}

#[test]
fn following_a_run_that_was_killed_ends_and_says_how_to_go_on() {
    let sandbox = Sandbox::scripted(SCRIPT);
    let killed = sandbox
        .command(&["review", "plan.md"])
        .env("TRIBUNAL_FAULT", "after:0:round_started:1#1")
        .output()
        .unwrap();
    assert_ne!(Ran::of(killed).code, Some(0));
    let ran = sandbox.run(&["log", "--follow"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        sandbox.normal(&ran.err).ends_with("[W] run [run] died; to go on with it: tribunal resume [run]\n"),
        "{}",
        ran.err
    );
}
