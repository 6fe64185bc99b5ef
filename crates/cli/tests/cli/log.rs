//! `tribunal log`: filters, prompts and answers, and following a live run.

use std::{
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

use serde_json::Value;

use crate::common::{CommandOutput, FIXING_SCRIPT, Sandbox};

fn reviewed_sandbox() -> Sandbox {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    sandbox
}

#[test]
fn filters_apply_to_events_too() {
    let sandbox = reviewed_sandbox();
    let event_kinds = |args: &[&str]| -> Vec<String> {
        let events = sandbox.run_events(&[&["log"], args].concat());
        events.iter().map(|event| event["kind"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(
        event_kinds(&["--kind", "round_started", "--kind", "round_ended", "--round", "1"]),
        ["round_started", "round_ended"]
    );
    assert_eq!(event_kinds(&["--key", "round-1/freeze"]), ["effect_started", "effect_finished"]);
    assert_eq!(event_kinds(&["--kind", "finding_moved", "--finding", "f1"]), ["finding_moved", "finding_moved"]);
    assert_eq!(event_kinds(&["--warnings"]), [""; 0]);
    assert_eq!(event_kinds(&["--since", "2970-01-01"]), [""; 0]);
    let empty_output = sandbox.run_tribunal(&["log", "--round", "9"]);
    assert_eq!((empty_output.exit_code, empty_output.stdout.as_str()), (Some(0), ""));
    assert!(empty_output.stderr.contains("no matching entries"), "{}", empty_output.stderr);
}

#[test]
fn mistyped_filters_are_refused_with_a_suggestion() {
    let sandbox = reviewed_sandbox();
    for (args, expected_message) in [
        (["--kind", "finding_rised"], "did you mean `finding_raised`?"),
        (["--finding", "seven"], "Finding IDs look like F1"),
        (["--since", "teatime"], "for example: `tribunal log --since 10m`"),
    ] {
        let output = sandbox.run_tribunal(&["log", args[0], args[1]]);
        assert_eq!(output.exit_code, Some(2));
        assert!(output.stderr.starts_with("error: ") && output.stderr.contains(expected_message), "{}", output.stderr);
    }
}

#[test]
fn every_prompt_and_answer_can_be_read() {
    let sandbox = reviewed_sandbox();
    let document = sandbox.run_json(&["log", "--prompts", "--key", "fix/1"]);
    assert_eq!(document["schema"], "tribunal.prompts/1");
    let call = &document["calls"][0];
    assert_eq!((call["agent"].as_str(), call["driver"].as_str()), (Some("scripted"), Some("replay")));
    let prompt_text = call["prompt"]["text"].as_str().unwrap();
    assert!(prompt_text.contains("fast is vague"), "{prompt_text}");
    assert_eq!(call["prompt"]["bytes"], prompt_text.len());
    assert!(call["answer"]["text"].as_str().unwrap().contains("FIXED"));
    let prompt_listing = sandbox.run_tribunal(&["log", "--prompts", "--key", "fix/1"]).stdout;
    assert!(
        prompt_listing.contains("sent to scripted") && prompt_listing.contains(prompt_text.trim_end()),
        "{prompt_listing}"
    );
    assert_eq!(
        // The first line is the header.
        sandbox.run_tribunal(&["log", "--prompts"]).stdout.lines().skip(1).count(),
        sandbox.run_json(&["log", "--prompts"])["calls"].as_array().unwrap().len()
    );
}

#[test]
fn prompts_are_listed_even_if_the_agent_failed() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{exit: 3}]}]\n");
    sandbox.run_tribunal(&["review", "plan.md"]);
    let document = sandbox.run_json(&["log", "--sent"]);
    assert_eq!(document["schema"], "tribunal.sent/1");
    let calls = document["calls"].as_array().unwrap();
    assert!(!calls.is_empty());
    for call in calls {
        assert!(call["prompt"]["bytes"].as_u64().unwrap() > 100, "{call}");
        assert_eq!(call["answer"], Value::Null, "only what was sent was asked for");
    }
}

#[test]
fn prompts_are_listed_by_vendor_with_their_total_size() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    sandbox.write_file("agent.sh", "cat >/dev/null; echo '{\"findings\": []}'\n");
    let agent_settings = |vendor_name: &str, provider: &str| {
        let script = sandbox.path_of("agent.sh");
        format!("  {vendor_name}: {{driver: command, argv: [sh, {script:?}], provider: {provider}}}\n")
    };
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 2\nlevel: full\nfix: false\ntasks: {{required_issues: 0}}\nagents:\n  use: [one, two, scripted]\n{}{}  \
             scripted: {{driver: replay, script: script.yaml}}\n",
            agent_settings("one", "acme"),
            agent_settings("two", "globex")
        ),
    );
    let output = sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    assert!(output.exit_code.is_some(), "{}", output.stderr);
    let sent_listing = sandbox.run_tribunal(&["log", "--sent"]).stdout;
    let heading_lines: Vec<&str> =
        sent_listing.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
    assert_eq!(heading_lines, ["to acme", "to globex", "no vendor: replayed from a script"], "{sent_listing}");
    let document = sandbox.run_json(&["log", "--sent"]);
    let vendors = document["vendors"].as_array().unwrap();
    for vendor in vendors {
        let vendor_name = vendor["vendor"].as_str().unwrap();
        let calls = document["calls"].as_array().unwrap().iter();
        let vendor_calls = calls.filter(|call| match vendor_name {
            "none" => call["driver"] == "replay",
            vendor_name => call["provider"] == vendor_name && call["driver"] != "replay",
        });
        let bytes: u64 = vendor_calls.map(|call| call["prompt"]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(vendor["bytes"], bytes, "{vendor_name}");
        let digits = bytes.to_string();
        let expected_size = format!("{},{} bytes, about", &digits[..digits.len() - 3], &digits[digits.len() - 3..]);
        assert!(vendor_name == "none" || sent_listing.contains(&expected_size), "{expected_size}: {sent_listing}");
    }
    assert_eq!(sandbox.run_json(&["log", "--prompts"])["vendors"], Value::Null);
}

#[test]
fn a_run_is_followed_to_its_end() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    let mut review_process = sandbox
        .tribunal_command(&["review", "plan.md", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut review_stdout = BufReader::new(review_process.stdout.take().unwrap());
    let mut all_events = String::new();
    review_stdout.read_line(&mut all_events).unwrap();
    let followed_output = sandbox.run_tribunal(&["log", "--follow", "--json"]);
    review_stdout.read_to_string(&mut all_events).unwrap();
    assert!(review_process.wait().unwrap().success());
    assert_eq!(followed_output.stdout, all_events);
}

#[test]
fn following_a_killed_run_ends_and_names_the_resume_command() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    let killed_output = sandbox
        .tribunal_command(&["review", "plan.md"])
        .env("TRIBUNAL_FAULT", "after:0:round_started:1#1")
        .output()
        .unwrap();
    assert_ne!(CommandOutput::from_output(killed_output).exit_code, Some(0));
    let output = sandbox.run_tribunal(&["log", "--follow"]);
    assert_eq!(output.exit_code, Some(0));
    assert!(
        sandbox
            .normalize_output(&output.stderr)
            .ends_with("warning: run [run] crashed; resume it with `tribunal resume [run]`\n"),
        "{}",
        output.stderr
    );
}
