//! What programs rely on: JSON documents, events, schemas, exit codes, and pipes without decoration.

use crate::common::{PRD, Sandbox};

const FAST: &str = "tasks:
  - task: '*/review/*'
    usage: {input_tokens: 1000, output_tokens: 100, cost: 0.5}
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
";

#[test]
fn a_run_prints_one_event_a_line_and_ends_with_its_summary() {
    let sandbox = Sandbox::scripted(FAST);
    let events = sandbox.events(&["review", "plan.md", "--no-fix"]);
    assert_eq!(events[0]["kind"], "run_started");
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], index as u64 + 1);
        assert_eq!(event["v"], 1);
    }
    let last = events.last().unwrap();
    assert_eq!(last["kind"], "run_finished");
    assert_eq!(last["outcome"], "waiting");
    assert_eq!(last["reason"], "review_only");
    assert_eq!(last["rounds"], 1);
    assert_eq!(last["findings"]["open"], 1);
    assert_eq!(last["findings"]["open_by_severity"]["high"], 1);
    assert_eq!(last["cost"], 0.5);
    assert_eq!(last["tokens"], 1100);
    assert!(last["elapsed_ms"].is_u64() && last["run"].is_string());
    assert_eq!(sandbox.events(&["log", &sandbox.last_run()]), events, "the log is the journal");
}

#[test]
fn a_used_up_budget_halts_the_run() {
    let sandbox = Sandbox::scripted(FAST);
    let settings = sandbox.read("tribunal.yaml");
    sandbox.write("tribunal.yaml", &format!("{settings}limits: {{max_cost: 0.40}}\n"));
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(ran.err.contains("halted · the cost budget is used up: 0.50 of 0.40 in cost"), "{}", ran.err);
    assert!(ran.err.contains("left: 2 rounds, 3 fix iterations in this one, 5 failures, 7,1"), "{}", ran.err);
    assert!(
        ran.err.starts_with("review of plan.md") && ran.err.contains("0.40 in cost (or 1,000,000 tokens"),
        "{}",
        ran.err
    );
}

#[test]
fn every_document_names_its_schema_and_fits_it() {
    let sandbox = Sandbox::scripted(FAST);
    sandbox.run(&["review", "plan.md", "--no-fix"]);
    sandbox.write("answer.txt", "```yaml\nfindings: []\n```\n");
    sandbox.write("menu.txt", "> [A] Add\n> [B] Remove\n\n[C] Continue\n[X] Exit\n\nShall I? (y/n)\n");
    for (args, name, schema) in [
        (&["runs"][..], "tribunal.runs/1", "runs"),
        (&["status"], "tribunal.status/1", "status"),
        (&["findings"], "tribunal.findings/1", "findings"),
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
        let document = sandbox.json(args);
        assert_eq!(document["schema"], name);
        let schema = sandbox.json(&["schema", schema]);
        assert_valid(&schema, &document, name);
    }
    let event = sandbox.json(&["schema", "event"]);
    for entry in sandbox.events(&["log", &sandbox.last_run()]) {
        assert_valid(&event, &entry, "event");
    }
    let findings = sandbox.json(&["findings"]);
    assert_valid(&sandbox.json(&["schema", "finding"]), &findings["findings"][0], "finding");
}

fn assert_valid(schema: &serde_json::Value, document: &serde_json::Value, name: &str) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{name}: {errors:?}");
}

#[test]
fn the_schema_of_findings_is_what_was_released() {
    let sandbox = Sandbox::new();
    let schema = sandbox.json(&["schema", "finding"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema).unwrap());
}

#[test]
fn every_shell_gets_completions_and_every_command_a_page() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = sandbox.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert!(!ran.out.contains("play-script"), "{shell}: it is not for people");
        assert!(ran.out.contains("findings") && ran.out.contains("warnings"), "{shell}");
    }
    assert!(sandbox.run(&["man"]).out.contains(".TH tribunal 1"));
    assert_eq!(sandbox.run(&["man", "--dir", "pages"]).code, Some(0));
    let help = sandbox.run(&["help"]).out;
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"review") && names.contains(&"gc"), "{help}");
    for name in names.iter().filter(|name| **name != "help") {
        assert!(sandbox.read(&format!("pages/tribunal-{name}.1")).contains(".SH SYNOPSIS"), "{name}");
    }
    assert!(!sandbox.path("pages/tribunal-play-script.1").exists(), "it is not for people");
    assert!(sandbox.path("pages/tribunal-inspect-transcript.1").exists());
}

#[test]
fn a_plan_starts_nothing() {
    let sandbox = Sandbox::demo();
    let ran = sandbox.run(&["review", PRD, "--dry-run", "--tier", "1"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // The estimate changes with every word of the prompts, so the snapshot leaves it out.
    let said =
        ran.out.lines().map(|line| if line.contains("prompts:") { line[..11].trim_end() } else { line });
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n"), @r"
    _bmad-output/planning-artifacts/prd.md would be reviewed; nothing was started
      level:    dual (tier 1)
      reviewer: party by scripted
      reviewer: adversarial by scripted
      prompts:
      limits:   3 rounds, 3 fix iterations a round, 50 findings, 120 min, 5.00 in cost or 1000000 tokens
      verify:   ! grep -n 'TBD' _bmad-output/planning-artifacts/prd.md
    ");
    assert!(!sandbox.path(".tribunal").exists());
}

#[test]
fn an_answer_can_be_inspected() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "good.txt",
        "Here:\n```yaml\nfindings: [{severity: dire, description: d, quote: q}, {description: vague}]\n```\n",
    );
    let ran = sandbox.run(&["inspect", "findings", "good.txt"]);
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.out, @r"
    1 finding
      critical  d
                quote “q”
    [W] severity `dire` is unknown and was taken as critical
    [W] item 2 was left out: it has neither a quote nor an absence
    ");
    sandbox.write("bad.txt", "All good!");
    let ran = sandbox.run(&["inspect", "findings", "bad.txt"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(3), "unreadable: the answer has no `findings` list; it begins: All good!\n")
    );
    assert_eq!(sandbox.run(&["inspect", "findings", "absent.txt"]).code, Some(2));
}

#[test]
fn an_answer_of_a_fixer_can_be_inspected_too() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "fixer.txt",
        "```yaml\nfixes: [{id: F2, status: FIXED, note: named}, {id: F3, status: BLOCKED, reason: who?}, {id: 9}]\n```\n",
    );
    let ran = sandbox.run(&["inspect", "response", "fixer.txt", "--fixes"]);
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.out, @r"
    2 claims
      F2   fixed    named
      F3   blocked  who?
    [W] item 3 was left out: `9` is no finding id
    ");
    let as_findings = sandbox.run(&["inspect", "response", "fixer.txt"]);
    assert_eq!(as_findings.code, Some(3), "it is no reviewer's answer");
}

#[test]
fn an_answer_of_a_challenger_can_be_inspected_too() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "challenger.txt",
        "verdicts:\n- {id: F1, verdict: VALID, reason: both are there}\n- id: F2\n  verdict: INVALID\n  \
         reason: it is said: twice\n  counter_evidence: erased after 90 days\n- {id: F3, verdict: INVALID}\n",
    );
    let ran = sandbox.run(&["inspect", "response", "challenger.txt", "--verdicts"]);
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.out, @r"
    3 verdicts
      F1   valid      both are there
      F2   invalid    it is said: twice
                      against it “erased after 90 days”
      F3   ambiguous
    [W] the list is not well-formed; it was read as far as it could be understood
    [W] F3 was called invalid without counter-evidence; taken as ambiguous
    ");
    let document = sandbox.json(&["inspect", "response", "challenger.txt", "--verdicts"]);
    assert_eq!(document["rulings"][1]["holds"], "invalid");
}

#[test]
fn a_party_s_votes_can_be_inspected() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "party.txt",
        "personas: [architect, tester]\nfindings:\n\
         - {severity: low, description: d, quote: q, votes: {architect: high, tester: high}}\nconsensus: not yet\n",
    );
    insta::assert_snapshot!(sandbox.run(&["inspect", "response", "party.txt"]).out, @r"
    1 finding
      low       d
                quote “q”
    personas: architect, tester
    votes on finding 1: architect high, tester high
    consensus: not yet
    ");
}

#[test]
fn a_project_s_own_prompt_that_leaves_something_out_is_refused_at_the_start() {
    let sandbox = Sandbox::new();
    sandbox.write("plan.md", "# Plan\n");
    sandbox.write("tribunal.yaml", "agents: {use: [mine], mine: {driver: command, argv: [cat]}}\n");
    sandbox.write(".tribunal/templates/party.md", "Have a party about\n{{subject}}\n{{task}}\n");
    let ran = sandbox.run(&["review", "plan.md", "--dry-run"]);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.err, @r"
    [!] .tribunal/templates/party.md cannot be used: `{{form}}` is missing: the agent would not get the form its answer is read by
        It takes the place of the party's built-in prompt.
        1. put in what is missing
        2. or use the built-in prompt: mv .tribunal/templates/party.md .tribunal/templates/party.md.off
    ");
}

#[test]
fn what_an_agent_printed_can_be_inspected() {
    let sandbox = Sandbox::scripted(FAST);
    sandbox.run(&["review", "plan.md", "--no-fix"]);
    let run = sandbox.last_run();
    let ran = sandbox.run(&["inspect", "transcript", &run, "round-1/review"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let without_time = ran
        .out
        .lines()
        .map(|line| line.split(" · after ").next().unwrap())
        .map(|line| line.get(..60).unwrap_or(line));
    insta::assert_snapshot!(sandbox.normal(&without_time.collect::<Vec<_>>().join("\n")), @r#"
    round-1/review/adversarial: scripted (replay) as adversarial
    used 1000 tokens in, 100 out, 0 from the cache, 0.50 in cost
    read as 1 finding
      high      fast is vague
                quote “It shall be fast.”
    printed:
    {"type":"text","text":"```json\n{\"findings\":[{\"category\"
    {"type":"usage","usage":{"input_tokens":1000,"output_tokens"
    "#);
    let document = sandbox.json(&["inspect", "transcript", &run, "--key", "round-1/review/adversarial"]);
    assert_valid(&sandbox.json(&["schema", "transcript"]), &document, "transcript");
    assert_eq!(document["calls"][0]["read"]["raised"][0]["description"], "fast is vague");

    let slip = sandbox.run(&["inspect", "transcript", &run, "round-1/revew/adversarial"]);
    assert_eq!(slip.code, Some(2));
    insta::assert_snapshot!(sandbox.normal(&slip.err), @r"
    [!] run [run] has no call of an agent with the key `round-1/revew/adversarial`
        1. did you mean `round-1/review/adversarial`?
        2. see all of them: tribunal log [run] --prompts
    ");
}

#[test]
fn several_subjects_are_several_runs_and_the_worst_exit_code_counts() {
    let sandbox = Sandbox::scripted(FAST);
    sandbox.write("good.md", "# Good\n\nNothing to see.\n");
    let ran = sandbox.run(&["review", "good.md", "plan.md", "--no-fix", "--jobs", "1"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let runs = sandbox.json(&["runs"]);
    let states: Vec<&str> =
        runs["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["resolved", "waiting"]);
    let listed = |args: &[&str]| sandbox.json(&[&["runs"], args].concat())["runs"].as_array().unwrap().len();
    assert_eq!((listed(&["--live"]), listed(&["--waiting"]), listed(&["-n", "1"])), (0, 1, 1));
    assert_eq!(sandbox.json(&["runs", "-n", "1"])["runs"][0]["state"], "waiting", "the newest is the last");
    assert_eq!(sandbox.run(&["runs", "--live"]).out, "no such runs; all of them: tribunal runs\n");
}

#[test]
fn a_list_of_runs_says_the_same_as_a_look_at_each() {
    let sandbox = Sandbox::scripted(FAST);
    sandbox.write("good.md", "# Good\n\nNothing to see.\n");
    sandbox.run(&["review", "good.md", "plan.md"]);
    let killed =
        sandbox.command(&["review", "good.md"]).env("TRIBUNAL_FAULT", "after:0:round_ended:1#1").output();
    assert!(!killed.unwrap().status.success());
    let list = sandbox.json(&["runs"]);
    let rows = list["runs"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(*row, sandbox.json(&["status", row["run"].as_str().unwrap()])["runs"][0]);
    }
}

#[test]
fn two_subjects_of_one_name_have_two_trackers() {
    let sandbox = Sandbox::scripted(FAST);
    sandbox.write("old/plan.md", "# Old plan\n\nIt shall be fast.\n");
    assert_eq!(sandbox.run(&["review", "plan.md", "old/plan.md", "--no-fix", "--jobs", "1"]).code, Some(3));
    let runs = sandbox.json(&["runs"]);
    let trackers: Vec<&str> = (0..2).map(|run| runs["runs"][run]["tracker"].as_str().unwrap()).collect();
    assert_ne!(trackers[0], trackers[1]);
    assert!(sandbox.read(trackers[0]).starts_with("# Issue tracker: plan.md\n"));
    assert!(sandbox.read(trackers[1]).starts_with("# Issue tracker: old/plan.md\n"));
}

#[test]
fn colour_is_used_only_where_it_is_wanted() {
    let sandbox = Sandbox::scripted(FAST);
    let plain = sandbox.run(&["review", "plan.md", "--no-fix"]);
    assert!(!plain.err.contains('\x1b'));
    let coloured = sandbox.run(&["log", &sandbox.last_run(), "--color", "always"]);
    assert!(coloured.out.contains('\x1b'));
}

#[test]
fn a_section_alone_can_be_reviewed() {
    let sandbox = Sandbox::scripted(FAST);
    let ran = sandbox.run(&["review", "plan.md", "--section", "risks", "--no-fix"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("plan.md § Risks"), "{}", ran.err);
    assert!(ran.err.contains("dismissed, ungrounded"), "a quote from another section does not count");
    assert!(sandbox.path(".tribunal/reviews/plan-risks-issues.md").exists());
}
