//! Child runs, tried with a toy run that starts them: a review that gets resolved, one that waits for the user, and one that
//! fails. The toy kind exists only in test builds; every command treats it like any other run.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tribunal_engine::{ids::RunId, sandbox::SandboxSettings, tier::ProcessTier, timestamp::Timestamp};
use tribunal_store::{EntryBatch, NewEntry, Store};
use tribunal_workflows::{
    findings::subject::Subject,
    review::{level::ReviewLevel, order::ReviewOrder},
    runs::{
        kinds::RunOrder,
        settings::{AgentSpec, DriverSpec, Settings},
        types::{EntryDraft, RunEvent},
    },
    tasks::purpose::ExpectedAnswer,
    toy::{ToyChild, ToyOrder, ToyStep},
};

use crate::common::{Sandbox, hide_times, scripted_agent_path};

/// One reviewer raises what it finds in both documents; the finding about the speed is fixed, the one about the owner blocked.
pub(crate) const SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps:
      - findings:
          - {severity: high, category: test, description: fast is vague, quote: It shall be fast.}
          - {severity: high, category: test, description: the owner is missing, quote: Somebody decides.}
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix:
      - {match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}
      - {match: owner, blocked: who decides}
";

pub(crate) const ROOT: &str = "toy-root";

pub(crate) fn toy_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_file("plan.md", "# Plan\n\n## Goals\n\nIt shall be fast.\n");
    sandbox.write_file("law.md", "# Law\n\n## Order\n\nSomebody decides.\n");
    sandbox.write_file("script.yaml", SCRIPT);
    // The agent notes for which run and task it was started.
    sandbox.write_file(
        "agent.sh",
        &format!(
            "echo \"$TRIBUNAL_RUN $TRIBUNAL_TASK\" >> {:?}\nexec {:?} {:?}\n",
            sandbox.path_of("../calls"),
            scripted_agent_path(),
            sandbox.path_of("script.yaml"),
        ),
    );
    sandbox
}

fn toy_settings(sandbox: &Sandbox) -> Settings {
    let argv = vec!["sh".to_string(), sandbox.path_of("agent.sh").display().to_string()];
    let mut settings = Settings {
        tier: ProcessTier::new(0).unwrap(),
        agents: vec![AgentSpec::new("scripted", DriverSpec::Command { argv })],
        reviews: ".tribunal/reviews".to_string(),
        sandbox: SandboxSettings { write: vec!["..".to_string()], ..SandboxSettings::default() },
        ..Settings::default()
    };
    settings.tasks.retry_after_ms = 0;
    settings
}

pub(crate) fn review_of(path: &str) -> RunOrder {
    let mut order = ReviewOrder::new(Subject::from_path(path, None));
    order.level = Some(ReviewLevel::Minimal);
    order.panel.required_issues = 0;
    order.into()
}

pub(crate) fn toy_order(name: &str, steps: Vec<ToyStep>) -> RunOrder {
    ToyOrder { name: name.to_string(), steps }.into()
}

pub(crate) fn child(name: &str, order: RunOrder) -> ToyChild {
    ToyChild { name: name.to_string(), order: Box::new(order) }
}

/// A review that gets resolved, one that waits for the user, and a run that fails.
pub(crate) fn three_children() -> Vec<ToyStep> {
    let failing = toy_order("broken", vec![ToyStep::Fail { detail: "the disk is gone".to_string() }]);
    vec![ToyStep::Children {
        children: vec![child("fast", review_of("plan.md")), child("law", review_of("law.md")), child("lost", failing)],
    }]
}

/// Records the start of a toy run, as its command would; `tribunal resume` then runs it.
pub(crate) fn record_start(sandbox: &Sandbox, steps: Vec<ToyStep>) {
    let store = Store::open(&sandbox.path_of(".tribunal")).unwrap();
    let event = RunEvent::RunStarted {
        version: 1,
        build: "test".to_string(),
        settings: toy_settings(sandbox),
        order: toy_order("night", steps),
        parent: None,
        batch: None,
    };
    let entry = NewEntry {
        run_id: RunId::new(ROOT),
        timestamp: Timestamp { wall_ms: 1_763_000_000_000, awake_ms: 0 },
        draft: EntryDraft { id: "run_started".to_string(), event },
    };
    store.append(EntryBatch { entries: vec![entry], ..EntryBatch::default() }).unwrap();
}

pub(crate) fn row_of<'a>(runs: &'a Value, name: &str) -> &'a Value {
    let rows = runs["runs"].as_array().unwrap();
    rows.iter().find(|row| row["parent"]["name"] == name).unwrap_or_else(|| panic!("no {name} in {runs}"))
}

pub(crate) fn id_of(sandbox: &Sandbox, name: &str) -> String {
    row_of(&sandbox.run_json(&["runs"]), name)["run"].as_str().unwrap().to_string()
}

#[test]
fn a_parent_runs_its_children_waits_for_one_and_goes_on_after_the_answer() {
    let sandbox = toy_sandbox();
    record_start(&sandbox, three_children());
    let output = sandbox.run_tribunal(&["resume", ROOT]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("1 child run waiting"), "{}", output.stderr);

    let runs = sandbox.run_json(&["runs"]);
    let states: BTreeMap<&str, &str> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["parent"]["name"].as_str().unwrap_or("root"), row["state"].as_str().unwrap()))
        .collect();
    assert_eq!(
        states,
        BTreeMap::from([("root", "waiting"), ("fast", "resolved"), ("law", "waiting"), ("lost", "failed")])
    );
    let (law_id, fast_id) = (id_of(&sandbox, "law"), id_of(&sandbox, "fast"));
    assert!(sandbox.read_file("plan.md").contains("200 ms"));

    // A child is named by its id or as PARENT/name, and has findings of its own.
    assert_eq!(sandbox.run_json(&["findings", "toy-root/fast"])["run"], json!(fast_id));
    let law_findings = sandbox.run_json(&["findings", &law_id]);
    assert!(law_findings.to_string().contains("\"blocked\""), "{law_findings}");
    let no_child = sandbox.run_tribunal(&["findings", "toy-root/slow"]);
    assert_eq!(no_child.exit_code, Some(2));
    assert!(no_child.stderr.contains("run toy-root has no child run named `slow`"), "{}", no_child.stderr);

    // The answer reaches the child, and the parent asks for the child again.
    let answer = sandbox.run_tribunal(&["decisions", &format!("{law_id}.D1"), "dismiss"]);
    assert_eq!(answer.exit_code, Some(0), "{}", answer.stderr);
    let resumed = sandbox.run_tribunal(&["resume", &law_id]);
    assert_eq!(resumed.exit_code, Some(0), "{}", resumed.stderr);
    assert!(resumed.stderr.contains(&format!("{law_id} is a child run of toy-root, which is resumed")));
    let runs = sandbox.run_json(&["runs"]);
    assert_eq!(row_of(&runs, "law")["state"], "resolved");
    let root = runs["runs"].as_array().unwrap().iter().find(|row| row["run"] == ROOT).unwrap();
    assert_eq!((root["state"].as_str(), root["kind"].as_str()), (Some("resolved"), Some("toy")));
    assert_eq!(root["last"]["detail"], "2 of 3 child runs resolved");
    // What the children used is part of what the root used.
    let tokens_of = |row: &Value| row["last"]["tokens"].as_u64().unwrap();
    assert!(tokens_of(root) > 0);
    assert_eq!(tokens_of(root), tokens_of(row_of(&runs, "law")) + tokens_of(row_of(&runs, "fast")));
}

#[test]
fn runs_and_status_draw_the_tree() {
    let sandbox = toy_sandbox();
    // One after the other, so that their order is the same each time.
    let steps = three_children().into_iter().flat_map(|step| match step {
        ToyStep::Children { children } => children,
        _ => Vec::new(),
    });
    record_start(&sandbox, steps.map(|child| ToyStep::Children { children: vec![child] }).collect());
    sandbox.run_tribunal(&["resume", ROOT]);
    let ids = ["fast", "law", "lost"].map(|name| (name, id_of(&sandbox, name)));
    let normalize = |text: String| {
        hide_times(&ids.iter().fold(text, |text, (name, id)| text.replace(id.as_str(), &format!("{name}-xxxx"))))
    };
    insta::assert_snapshot!(normalize(sandbox.run_tribunal(&["runs"]).stdout));
    insta::assert_snapshot!(normalize(sandbox.run_tribunal(&["status"]).stdout));
    insta::assert_snapshot!(normalize(sandbox.run_tribunal(&["log", ROOT]).stdout));
}

#[test]
fn runs_are_nested_six_levels_deep_at_most() {
    let sandbox = toy_sandbox();
    let nest = |name: &str, inner: RunOrder| {
        let inner_child = vec![child(name, inner)];
        toy_order(name, vec![ToyStep::Children { children: inner_child }])
    };
    let names = ["two", "three", "four", "five", "six", "seven"];
    let nested = names.iter().rev().fold(toy_order("leaf", Vec::new()), |inner, name| nest(name, inner));
    let steps = vec![ToyStep::Children { children: vec![child("one", nested)] }];
    record_start(&sandbox, steps);
    let output = sandbox.run_tribunal(&["resume", ROOT]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let runs = sandbox.run_json(&["runs"]);
    let names: Vec<&str> =
        runs["runs"].as_array().unwrap().iter().filter_map(|row| row["parent"]["name"].as_str()).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(output.stderr.contains("nested 7 levels deep, but at most 6 are allowed"), "{}", output.stderr);
    let status = sandbox.run_tribunal(&["status", ROOT]).stdout;
    assert!(status.contains("      child run three: "), "{status}");
    assert!(status.contains(&format!("{}child run seven: ", "  ".repeat(7))), "{status}");
    assert!(status.contains("could not run: ") && !status.contains("running"), "{status}");
}

#[test]
fn settings_that_are_read_again_hold_for_the_children_too() {
    let sandbox = toy_sandbox();
    fs::rename(sandbox.path_of("agent.sh"), sandbox.path_of("mended.sh")).unwrap();
    record_start(&sandbox, vec![ToyStep::Children { children: vec![child("fast", review_of("plan.md"))] }]);
    assert_eq!(sandbox.run_tribunal(&["resume", ROOT]).exit_code, Some(3));
    assert_eq!(row_of(&sandbox.run_json(&["runs"]), "fast")["state"], "failed");
    sandbox.write_file(
        "tribunal.yaml",
        &format!("agents: {{scripted: {{driver: command, argv: [sh, {:?}]}}}}\n", sandbox.path_of("mended.sh")),
    );
    // With its own settings the child fails again.
    assert_eq!(sandbox.run_tribunal(&["resume", ROOT]).exit_code, Some(3));
    let output = sandbox.run_tribunal(&["resume", ROOT, "--reload"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(row_of(&sandbox.run_json(&["runs"]), "fast")["state"], "resolved");
}

#[test]
fn a_tree_is_discarded_as_a_whole_and_restored() {
    let sandbox = toy_sandbox();
    record_start(&sandbox, three_children());
    sandbox.run_tribunal(&["resume", ROOT]);
    let law_id = id_of(&sandbox, "law");
    let refused = sandbox.run_tribunal(&["discard", &law_id]);
    assert_eq!(refused.exit_code, Some(2));
    assert!(refused.stderr.contains(&format!("{law_id} is a child run of toy-root")), "{}", refused.stderr);
    assert_eq!(sandbox.run_tribunal(&["discard", ROOT]).exit_code, Some(0));
    assert_eq!(sandbox.run_json(&["runs"])["runs"], json!([]));
    assert_eq!(sandbox.run_json(&["runs", "--discarded"])["runs"].as_array().unwrap().len(), 4);
    assert_eq!(sandbox.run_tribunal(&["discard", "--restore", ROOT]).exit_code, Some(0));
    assert_eq!(sandbox.run_json(&["runs"])["runs"].as_array().unwrap().len(), 4);
}

#[test]
fn a_question_of_a_toy_run_is_asked_answered_and_its_run_ends() {
    let sandbox = toy_sandbox();
    record_start(&sandbox, vec![ToyStep::Question { text: "Shall it rain?".to_string() }]);
    assert_eq!(sandbox.run_tribunal(&["resume", ROOT]).exit_code, Some(3));
    let decisions = sandbox.run_tribunal(&["decisions"]);
    assert!(decisions.stdout.contains("Shall it rain?"), "{}", decisions.stdout);
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "accept"]).exit_code, Some(0));
    assert_eq!(sandbox.run_tribunal(&["resume", ROOT]).exit_code, Some(0));
    assert_eq!(sandbox.run_json(&["runs"])["runs"][0]["state"], "resolved");
}

/// A tree under way: the agent of the child `law` waits until the gate, a named pipe, is opened.
pub(crate) struct GatedTree {
    pub(crate) sandbox: Sandbox,
    pub(crate) gate_path: PathBuf,
    pub(crate) process: Child,
    events: BufReader<ChildStdout>,
}

impl GatedTree {
    /// Returns once the reviewer of `law` was asked and the review of `plan.md` has ended.
    fn start() -> GatedTree {
        let children = vec![child("fast", review_of("plan.md")), child("law", review_of("law.md"))];
        let mut tree = GatedTree::start_gated("law-", vec![ToyStep::Children { children }]);
        let (mut is_asked, mut is_resolved) = (false, false);
        while !(is_asked && is_resolved) {
            let event = tree.next_event().unwrap();
            is_asked |= is_ask_of(&event, "law-");
            is_resolved |= event["kind"] == "run_finished" && event["run"].as_str().unwrap().starts_with("plan-");
        }
        tree
    }

    /// Starts a tree in which the agents of runs whose id begins with `gated_prefix` wait at the gate.
    pub(crate) fn start_gated(gated_prefix: &str, steps: Vec<ToyStep>) -> GatedTree {
        let sandbox = toy_sandbox();
        let gate_path = sandbox.path_of("../gate");
        assert!(Command::new("mkfifo").arg(&gate_path).status().unwrap().success());
        let agent_script = sandbox.read_file("agent.sh");
        let open_path = sandbox.path_of("../open");
        let wait = format!("test -e {open_path:?} || cat {gate_path:?} >/dev/null");
        let gate = format!("case $TRIBUNAL_RUN in {gated_prefix}*) {wait};; esac\n");
        sandbox.write_file("agent.sh", &(gate + &agent_script));
        record_start(&sandbox, steps);
        let mut command = sandbox.tribunal_command(&["resume", ROOT, "--json"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let events = BufReader::new(process.stdout.take().unwrap());
        GatedTree { sandbox, gate_path, process, events }
    }

    pub(crate) fn next_event(&mut self) -> Option<Value> {
        let mut line = String::new();
        (self.events.read_line(&mut line).unwrap() > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Waits for the end; returns the sandbox, the exit code and the events until then.
    pub(crate) fn finish(mut self) -> (Sandbox, Option<i32>, Vec<Value>) {
        let mut events = Vec::new();
        while let Some(event) = self.next_event() {
            events.push(event);
        }
        let exit_code = self.process.wait().unwrap().code();
        (self.sandbox, exit_code, events)
    }
}

pub(crate) fn is_ask_of(event: &Value, run_prefix: &str) -> bool {
    event["run"].as_str().unwrap().starts_with(run_prefix) && event["effect"]["effect"] == "ask"
}

#[test]
fn an_answer_reaches_a_parent_that_is_working_on_something_else() {
    let steps = vec![
        ToyStep::Children { children: vec![child("law", review_of("law.md"))] },
        ToyStep::Children { children: vec![child("fast", review_of("plan.md"))] },
    ];
    let mut tree = GatedTree::start_gated("plan-", steps);
    while !is_ask_of(&tree.next_event().unwrap(), "plan-") {}
    let law_id = id_of(&tree.sandbox, "law");
    let answer = tree.sandbox.run_tribunal(&["decisions", &format!("{law_id}.D1"), "dismiss"]);
    assert_eq!(answer.exit_code, Some(0), "{}", answer.stderr);
    // The later agents of the review find the gate open.
    fs::write(tree.sandbox.path_of("../open"), "").unwrap();
    fs::write(&tree.gate_path, "").unwrap();
    let (sandbox, exit_code, events) = tree.finish();
    assert_eq!(exit_code, Some(0), "{events:?}");
    let asked_again = events.iter().find(|event| event["kind"] == "effect_started" && event["key"] == "child/law/2");
    assert!(asked_again.is_some(), "the parent asks for the child again under a new key");
    assert_eq!(row_of(&sandbox.run_json(&["runs"]), "law")["state"], "resolved");
}

#[test]
fn a_child_is_stopped_alone_and_continued_by_its_root() {
    let tree = GatedTree::start();
    let law_id = id_of(&tree.sandbox, "law");
    assert_eq!(row_of(&tree.sandbox.run_json(&["runs"]), "law")["state"], "running");
    let output = tree.sandbox.run_tribunal(&["stop", "toy-root/law", "--now"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains(&format!("run {law_id} has stopped")), "{}", output.stdout);
    // The root was not stopped: it came to its own end, and waits for the child.
    let (sandbox, exit_code, events) = tree.finish();
    assert_eq!(exit_code, Some(3), "{events:?}");
    let reply = events.iter().find(|event| event["reply"]["reply"] == "run_child" && event["key"] == "child/law/1");
    assert_eq!(reply.unwrap()["reply"]["reason"], "stopped");
    assert_eq!(row_of(&sandbox.run_json(&["runs"]), "law")["state"], "stopped");

    // Without the gate the child gets to its question.
    let agent_script = sandbox.read_file("agent.sh");
    sandbox.write_file("agent.sh", agent_script.split_once('\n').unwrap().1);
    let resumed = sandbox.run_tribunal(&["resume", &law_id]);
    assert_eq!(resumed.exit_code, Some(3), "{}", resumed.stderr);
    assert_eq!(row_of(&sandbox.run_json(&["runs"]), "law")["state"], "waiting");
}

#[test]
fn a_root_that_is_stopped_stops_its_children_and_continues_them() {
    let tree = GatedTree::start();
    let stopped = tree.sandbox.run_tribunal(&["stop", ROOT]);
    assert_eq!(stopped.exit_code, Some(0), "{}", stopped.stderr);
    fs::write(&tree.gate_path, "").unwrap();
    let (sandbox, exit_code, events) = tree.finish();
    assert_eq!(exit_code, Some(130));
    // What the child was doing is not an answer to its parent, which asks for it again.
    let has_law_reply = events.iter().any(|event| event["kind"] == "effect_finished" && event["key"] == "child/law/1");
    assert!(!has_law_reply, "{events:?}");
    let runs = sandbox.run_json(&["runs"]);
    assert_eq!(
        (row_of(&runs, "law")["state"].as_str(), row_of(&runs, "fast")["state"].as_str()),
        (Some("stopped"), Some("resolved"))
    );
    let agent_script = sandbox.read_file("agent.sh");
    sandbox.write_file("agent.sh", agent_script.split_once('\n').unwrap().1);
    let calls_before = sandbox.read_file("../calls");
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(3));
    assert_eq!(row_of(&sandbox.run_json(&["runs"]), "law")["state"], "waiting");
    let fast_id = id_of(&sandbox, "fast");
    let new_calls = sandbox.read_file("../calls").replacen(&calls_before, "", 1);
    assert!(!new_calls.contains(&fast_id), "nothing is paid twice: {new_calls}");
}

#[test]
fn a_run_without_a_subject_asks_agents_for_text_and_for_a_status() {
    let sandbox = toy_sandbox();
    sandbox.write_file(
        "agent.sh",
        "cat > \"$0.$(echo $TRIBUNAL_TASK | tr / -).prompt\"\n\
         case $TRIBUNAL_TASK in\n\
         step-1/agent) echo 'All is quiet.';;\n\
         step-2/agent) echo 'I forgot the block.';;\n\
         *) printf -- '---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: true\\n---END_RALPH_STATUS---\\n';;\n\
         esac\n",
    );
    let ask = |text: &str, expects| ToyStep::Ask { text: text.to_string(), expects };
    record_start(
        &sandbox,
        vec![ask("How is the night?", ExpectedAnswer::Text), ask("Do the work.", ExpectedAnswer::Status)],
    );
    let output = sandbox.run_tribunal(&["resume", ROOT]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("step 1: All is quiet."), "{}", output.stderr);
    // An answer without the block is asked for once more.
    let events = sandbox.run_events(&["log", ROOT]);
    let replies: Vec<(&str, &str)> = events
        .iter()
        .filter(|event| event["reply"]["reply"] == "ask")
        .map(|event| (event["key"].as_str().unwrap(), event["reply"]["answer"].as_str().unwrap()))
        .collect();
    assert_eq!(replies, [("step-1/agent", "text"), ("step-2/agent", "unreadable"), ("step-2/agent/again", "status")]);
    assert!(sandbox.read_file("agent.sh.step-2-agent.prompt").contains("Do the work."));
    let root = sandbox.run_json(&["runs"])["runs"][0].clone();
    assert!(root["last"]["tokens"].as_u64().unwrap() > 0, "{root}");
}
