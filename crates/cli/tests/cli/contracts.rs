//! What programs rely on: JSON documents, events, schemas, exit codes, and pipes without decoration.

use crate::common::{PRD, Sandbox, hide_times};

const VAGUE_GOAL_SCRIPT: &str = "tasks:
  - task: '*/review/*'
    usage: {input_tokens: 1000, output_tokens: 100, cost: 0.5}
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
";

#[test]
fn a_run_prints_one_event_a_line_and_ends_with_its_summary() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    let events = sandbox.run_events(&["review", "plan.md", "--no-fix"]);
    assert_eq!(events[0]["kind"], "run_started");
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], index as u64 + 1);
        assert_eq!(event["v"], 1);
    }
    let last_event = events.last().unwrap();
    assert_eq!(last_event["kind"], "run_finished");
    assert_eq!(last_event["outcome"], "waiting");
    assert_eq!(last_event["reason"], "review_only");
    assert_eq!(last_event["rounds"], 1);
    assert_eq!(last_event["findings"]["open"], 1);
    assert_eq!(last_event["findings"]["open_by_severity"]["high"], 1);
    assert_eq!(last_event["cost"], 0.5);
    assert_eq!(last_event["tokens"], 1100);
    assert!(last_event["elapsed_ms"].is_u64() && last_event["run"].is_string());
    assert_eq!(sandbox.run_events(&["log", &sandbox.last_run_id()]), events, "the log is the journal");
}

#[test]
fn an_exhausted_budget_halts_the_run() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    let settings = sandbox.read_file("tribunal.yaml");
    sandbox.write_file("tribunal.yaml", &format!("{settings}limits: {{max_cost: 0.40}}\n"));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("cost limit reached ($0.50 of $0.40 spent)"), "{}", output.stderr);
    assert!(
        hide_times(&output.stderr).contains("remaining: 2 rounds, 3 fix iterations in this round, 5 failures, [time],"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.starts_with("review of plan.md") && output.stderr.contains("$0.40 (or 1M tokens"),
        "{}",
        output.stderr
    );
}

#[test]
fn every_document_names_its_schema_and_fits_it() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    sandbox.write_file("answer.txt", "```yaml\nfindings: []\n```\n");
    sandbox.write_file("menu.txt", "> [A] Add\n> [B] Remove\n\n[C] Continue\n[X] Exit\n\nShall I? (y/n)\n");
    for (args, schema_name, schema) in [
        (&["runs"][..], "tribunal.runs/1", "runs"),
        (&["status"], "tribunal.status/1", "status"),
        (&["findings"], "tribunal.findings/1", "findings"),
        (&["report"], "tribunal.report/1", "report"),
        (&["log", "--prompts"], "tribunal.prompts/1", "prompts"),
        (&["log", "--sent"], "tribunal.sent/1", "sent"),
        (&["gc"], "tribunal.gc/1", "gc"),
        (&["decisions"], "tribunal.decisions/1", "decisions"),
        (&["review", "plan.md", "--dry-run"], "tribunal.plan/1", "plan"),
        (&["inspect", "findings", "answer.txt"], "tribunal.inspect/1", "inspect"),
        (&["inspect", "response", "answer.txt"], "tribunal.inspect/1", "inspect"),
        (&["inspect", "menu", "menu.txt"], "tribunal.menu/1", "menu"),
        (&["inspect", "project", "--task", "fix a typo"], "tribunal.project/1", "project"),
        (&["inspect", "settings"], "tribunal.settings/1", "inspect-settings"),
        (&["inspect", "settings", "tribunal.yaml"], "tribunal.settings/1", "inspect-settings"),
        (&["diff"], "tribunal.diff/1", "diff"),
        (&["trust", "--list"], "tribunal.trust/1", "trust"),
    ] {
        let document = sandbox.run_json(args);
        assert_eq!(document["schema"], schema_name);
        let schema = sandbox.run_json(&["schema", schema]);
        assert_matches_schema(&schema, &document, schema_name);
    }
    let event = sandbox.run_json(&["schema", "event"]);
    for entry in sandbox.run_events(&["log", &sandbox.last_run_id()]) {
        assert_matches_schema(&event, &entry, "event");
    }
    let findings = sandbox.run_json(&["findings"]);
    assert_matches_schema(&sandbox.run_json(&["schema", "finding"]), &findings["findings"][0], "finding");
}

fn assert_matches_schema(schema: &serde_json::Value, document: &serde_json::Value, document_name: &str) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{document_name}: {errors:?}");
}

#[test]
fn the_finding_schema_is_unchanged_since_its_release() {
    let sandbox = Sandbox::new();
    let schema = sandbox.run_json(&["schema", "finding"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema).unwrap());
}

#[test]
fn every_shell_gets_completions_and_every_command_a_page() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = sandbox.run_tribunal(&["completions", shell]);
        assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
        assert!(!output.stdout.contains("play-script"), "{shell}: it is not for people");
        assert!(output.stdout.contains("findings") && output.stdout.contains("warnings"), "{shell}");
    }
    assert!(sandbox.run_tribunal(&["man"]).stdout.contains(".TH tribunal 1"));
    assert_eq!(sandbox.run_tribunal(&["man", "--dir", "pages"]).exit_code, Some(0));
    let help = sandbox.run_tribunal(&["help"]).stdout;
    let command_lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let command_names: Vec<&str> = command_lines
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(command_names.contains(&"review") && command_names.contains(&"gc"), "{help}");
    for command_name in command_names.iter().filter(|command_name| **command_name != "help") {
        assert!(
            sandbox.read_file(&format!("pages/tribunal-{command_name}.1")).contains(".SH SYNOPSIS"),
            "{command_name}"
        );
    }
    assert!(!sandbox.path_of("pages/tribunal-play-script.1").exists(), "it is not for people");
    assert!(sandbox.path_of("pages/tribunal-inspect-transcript.1").exists());
}

#[test]
fn a_dry_run_starts_nothing() {
    let sandbox = Sandbox::with_demo();
    let output = sandbox.run_tribunal(&["review", PRD, "--dry-run", "--tier", "1"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    // The estimate changes with every word of the prompts, so the snapshot leaves it out.
    let steady_lines =
        output.stdout.lines().map(|line| if line.contains("prompts:") { line[..11].trim_end() } else { line });
    insta::assert_snapshot!(steady_lines.collect::<Vec<_>>().join("\n"), @"
    would review _bmad-output/planning-artifacts/prd.md (dry run, nothing was started)
      level:    dual (tier 1)
      reviewer: party by scripted
      reviewer: adversarial by scripted
      prompts:
      limits:   3 rounds, 3 fix iterations a round, 50 findings, 120 min, $5.00 or 1000000 tokens
      check:    ! grep -n 'TBD' _bmad-output/planning-artifacts/prd.md
    ");
    assert!(!sandbox.path_of(".tribunal").exists());
}

#[test]
fn an_answer_of_a_reviewer_can_be_inspected() {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "good.txt",
        "Here:\n```yaml\nfindings: [{severity: dire, description: d, quote: q}, {description: vague}]\n```\n",
    );
    let output = sandbox.run_tribunal(&["inspect", "findings", "good.txt"]);
    assert_eq!(output.exit_code, Some(0));
    insta::assert_snapshot!(output.stdout, @"
    1 finding
      critical  d
                quote “q”
    warning: unknown severity `dire`, treated as critical
    warning: item 2 was ignored: it has neither `quote` nor `absent`
    ");
    sandbox.write_file("bad.txt", "All good!");
    let output = sandbox.run_tribunal(&["inspect", "findings", "bad.txt"]);
    assert_eq!(
        (output.exit_code, output.stdout.as_str()),
        (Some(3), "unreadable: the answer has no `findings` list; it begins: All good!\n")
    );
    assert_eq!(sandbox.run_tribunal(&["inspect", "findings", "absent.txt"]).exit_code, Some(2));
}

#[test]
fn an_answer_of_a_fixer_can_be_inspected_too() {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "fixer.txt",
        "```yaml\nfixes: [{id: F2, status: FIXED, note: named}, {id: F3, status: BLOCKED, reason: who?}, {id: 9}]\n```\n",
    );
    let output = sandbox.run_tribunal(&["inspect", "response", "fixer.txt", "--fixes"]);
    assert_eq!(output.exit_code, Some(0));
    insta::assert_snapshot!(output.stdout, @"
    2 claims
      F2   fixed     named
      F3   blocked   who?
    warning: item 3 was ignored: `9` is not a finding id
    ");
    let as_findings = sandbox.run_tribunal(&["inspect", "response", "fixer.txt"]);
    assert_eq!(as_findings.exit_code, Some(3), "it is no reviewer's answer");
}

#[test]
fn an_answer_of_a_challenger_can_be_inspected_too() {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "challenger.txt",
        "verdicts:\n- {id: F1, verdict: VALID, reason: both are there}\n- id: F2\n  verdict: INVALID\n  \
         reason: it is said: twice\n  counter_evidence: erased after 90 days\n- {id: F3, verdict: INVALID}\n",
    );
    let output = sandbox.run_tribunal(&["inspect", "response", "challenger.txt", "--verdicts"]);
    assert_eq!(output.exit_code, Some(0));
    insta::assert_snapshot!(output.stdout, @"
    3 verdicts
      F1   valid      both are there
      F2   invalid    it is said: twice
                      counter-quote “erased after 90 days”
      F3   ambiguous
    warning: the list is malformed; it was read as far as possible
    warning: F3 was called invalid without counter-evidence, treated as ambiguous
    ");
    let document = sandbox.run_json(&["inspect", "response", "challenger.txt", "--verdicts"]);
    assert_eq!(document["rulings"][1]["holds"], "invalid");
}

#[test]
fn the_votes_of_a_party_can_be_inspected() {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "party.txt",
        "personas: [architect, tester]\nfindings:\n\
         - {severity: low, description: d, quote: q, votes: {architect: high, tester: high}}\nconsensus: not yet\n",
    );
    insta::assert_snapshot!(sandbox.run_tribunal(&["inspect", "response", "party.txt"]).stdout, @r"
    1 finding
      low       d
                quote “q”
    personas: architect, tester
    votes on finding 1: architect high, tester high
    consensus: not yet
    ");
}

#[test]
fn a_project_prompt_that_lacks_a_placeholder_is_refused_at_the_start() {
    let sandbox = Sandbox::new();
    sandbox.write_file("plan.md", "# Plan\n");
    sandbox.write_file("tribunal.yaml", "agents: {use: [mine], mine: {driver: command, argv: [cat]}}\n");
    sandbox.write_file(".tribunal/templates/party.md", "Have a party about\n{{subject}}\n{{task}}\n");
    let output = sandbox.run_tribunal(&["review", "plan.md", "--dry-run"]);
    assert_eq!(output.exit_code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
    error: .tribunal/templates/party.md cannot be used: `{{form}}` is missing, so the agent would not get the answer format
      It replaces the built-in prompt of the party. Nothing was started.
      1. fix the template
      2. or use the built-in prompt: `mv .tribunal/templates/party.md .tribunal/templates/party.md.off`
    ");
}

#[test]
fn the_transcript_of_an_agent_can_be_inspected() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    let run_id = sandbox.last_run_id();
    let output = sandbox.run_tribunal(&["inspect", "transcript", &run_id, "round-1/review"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let without_time =
        output.stdout.lines().map(|line| line.split(" · ").next().unwrap()).map(|line| line.get(..60).unwrap_or(line));
    insta::assert_snapshot!(sandbox.normalize_output(&without_time.collect::<Vec<_>>().join("\n")), @r#"
    round-1/review/adversarial: scripted (replay) as adversarial
    used 1000 tokens in, 100 out, 0 cached, $0.50
    parsed as 1 finding
      high      fast is vague
                quote “It shall be fast.”
    printed:
    {"type":"text","text":"```json\n{\"findings\":[{\"category\"
    {"type":"usage","usage":{"input_tokens":1000,"output_tokens"
    "#);
    let document = sandbox.run_json(&["inspect", "transcript", &run_id, "--key", "round-1/review/adversarial"]);
    assert_matches_schema(&sandbox.run_json(&["schema", "transcript"]), &document, "transcript");
    assert_eq!(document["calls"][0]["read"]["raised"][0]["description"], "fast is vague");

    let mistyped = sandbox.run_tribunal(&["inspect", "transcript", &run_id, "round-1/revew/adversarial"]);
    assert_eq!(mistyped.exit_code, Some(2));
    insta::assert_snapshot!(sandbox.normalize_output(&mistyped.stderr), @"
    error: no agent call in run [run] has the key `round-1/revew/adversarial`
      1. did you mean `round-1/review/adversarial`?
      2. list all calls: `tribunal log [run] --prompts`
    ");
}

#[test]
fn several_subjects_are_several_runs_and_the_worst_exit_code_counts() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    sandbox.write_file("good.md", "# Good\n\nNothing to see.\n");
    let output = sandbox.run_tribunal(&["review", "good.md", "plan.md", "--no-fix", "--jobs", "1"]);
    // What the reviewer claims about the first one is not there, so nothing is known about it.
    assert_eq!(output.exit_code, Some(4), "{}", output.stderr);
    let runs = sandbox.run_json(&["runs"]);
    let states: Vec<&str> =
        runs["runs"].as_array().unwrap().iter().map(|run_summary| run_summary["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["halted", "waiting"]);
    let listed_count = |args: &[&str]| sandbox.run_json(&[&["runs"], args].concat())["runs"].as_array().unwrap().len();
    assert_eq!((listed_count(&["--live"]), listed_count(&["--waiting"]), listed_count(&["-n", "1"])), (0, 2, 1));
    assert_eq!(sandbox.run_json(&["runs", "-n", "1"])["runs"][0]["state"], "waiting", "the newest is the last");
    assert_eq!(sandbox.run_tribunal(&["runs", "--live"]).stdout, "no matching runs; list all with `tribunal runs`\n");
}

#[test]
fn the_list_of_runs_shows_the_same_as_the_status_of_each() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    sandbox.write_file("good.md", "# Good\n\nNothing to see.\n");
    sandbox.run_tribunal(&["review", "good.md", "plan.md"]);
    let killed_output =
        sandbox.tribunal_command(&["review", "good.md"]).env("TRIBUNAL_FAULT", "after:0:round_ended:1#1").output();
    assert!(!killed_output.unwrap().status.success());
    let list = sandbox.run_json(&["runs"]);
    let rows = list["runs"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(*row, sandbox.run_json(&["status", row["run"].as_str().unwrap()])["runs"][0]);
    }
}

#[test]
fn two_subjects_with_the_same_name_have_two_trackers() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    sandbox.write_file("old/plan.md", "# Old plan\n\nIt shall be fast.\n");
    assert_eq!(
        sandbox.run_tribunal(&["review", "plan.md", "old/plan.md", "--no-fix", "--jobs", "1"]).exit_code,
        Some(3)
    );
    let runs = sandbox.run_json(&["runs"]);
    let trackers: Vec<&str> = (0..2).map(|run_index| runs["runs"][run_index]["tracker"].as_str().unwrap()).collect();
    assert_ne!(trackers[0], trackers[1]);
    assert!(sandbox.read_file(trackers[0]).starts_with("# Issue tracker: plan.md\n"));
    assert!(sandbox.read_file(trackers[1]).starts_with("# Issue tracker: old/plan.md\n"));
}

#[test]
fn colour_is_used_only_where_it_is_wanted() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    let plain_output = sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    assert!(!plain_output.stderr.contains('\x1b'));
    let coloured_output = sandbox.run_tribunal(&["log", &sandbox.last_run_id(), "--color", "always"]);
    assert!(coloured_output.stdout.contains('\x1b'));
}

#[test]
fn a_section_alone_can_be_reviewed() {
    let sandbox = Sandbox::with_script(VAGUE_GOAL_SCRIPT);
    let output = sandbox.run_tribunal(&["review", "plan.md", "--section", "risks", "--no-fix"]);
    assert_eq!(output.exit_code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("plan.md § Risks"), "{}", output.stderr);
    assert!(output.stderr.contains("quote not found in plan.md"), "a quote from another section does not count");
    assert!(sandbox.path_of(".tribunal/reviews/plan-risks-issues.md").exists());
}
