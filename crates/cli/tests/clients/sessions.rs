//! Sessions that the user has open with a real client. Our hooks hold them to what they have taken on, and no longer.
//!
//! The client's settings are those that `tribunal init` writes. The model is scripted; what it does in the shell,
//! what the hooks answer and what the client makes of that is real.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::Value;
use tribunal_testkit::model::{Call, Pattern, Rule, Step, When};

use crate::{
    common::{Bench, Client, with_each_client, word},
    sandbox::{Ran, TRIBUNAL, write_program},
};

with_each_client!(
    who_has_open_findings_is_sent_back_until_they_are_repaired,
    who_lies_for_ever_is_let_go_and_a_person_is_asked,
    a_loop_ends_with_its_promise,
    a_promise_may_be_said_as_it_was_shown,
    a_loop_ends_at_its_limit_and_tools_make_the_client_patient,
    a_loop_of_another_tool_goes_on_here,
    another_session_in_the_same_folder_is_free,
    hooks_that_were_taken_out_again_hold_nobody,
    a_hook_that_is_not_there_holds_nobody,
    a_hook_that_crashes_holds_nobody,
    a_broken_state_file_holds_nobody_and_is_kept,
    a_folder_in_the_place_of_the_state_file_holds_nobody,
    the_state_of_another_session_holds_nobody,
    a_state_file_above_the_project_holds_nobody,
    a_broken_journal_holds_nobody,
    broken_settings_hold_nobody,
    without_a_transcript_the_clients_own_word_counts,
    without_any_word_of_a_session_it_is_free,
    what_is_guarded_is_kept_and_the_model_reads_why,
);

const PLAN: &str = "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n";
const REPAIRED: &str = "# Plan\n\n## Goals\n\nIt answers in 200 ms.\n\n## Risks\n\nThe disk may be full.\n";

/// Reviewers that find two things in the first round and nothing afterwards.
const REVIEWERS: &str = "tasks:
  - task: 'round-1/review/*'
    steps:
      - findings:
          - {severity: low, category: test, description: there are always risks, quote: None.}
          - {severity: high, category: test, description: fast is vague, quote: It shall be fast.}
  - {task: '*', steps: [{findings: []}]}
";

const TOOLS: &str = "Bash,Edit,Write,Read";
const STATE: &str = ".claude/review-loop-state.yaml";
const KEPT: &str = ".tribunal/sessions/1-review-loop-state.yaml";
const PROMISE: &str = "<review-complete>ALL_ISSUES_RESOLVED</review-complete>";

/// Creates a project whose client calls our hooks at every event it knows.
fn project(client: Client, rules: impl IntoIterator<Item = Rule>) -> Bench {
    let bench = Bench::new(&[client], rules);
    bench.sandbox.write("plan.md", PLAN);
    bench.sandbox.write("script.yaml", REVIEWERS);
    bench.sandbox.write(
        "tribunal.yaml",
        "tier: 0\n\
         agents: {use: [scripted], scripted: {driver: replay, script: script.yaml}}\n\
         tasks: {retry_after: 0, required_issues: 0}\n",
    );
    bench.expect(&["trust", "--yes"], 0);
    bench.expect(&["init", "--yes", "--client", client.agent()], 0);
    bench
}

/// Returns the file in which `tribunal init` puts the hooks.
fn settings(client: Client) -> &'static str {
    match client {
        Client::Claude => ".claude/settings.local.json",
        Client::Codex => ".codex/hooks.json",
    }
}

/// The result of a session that has ended.
struct Talk {
    session: String,
    /// The last answer, which the user reads.
    answer: String,
}

/// Builds a command that starts the client with one prompt, as the user would.
fn client(bench: &Bench, client: Client, prompt: &str) -> Command {
    let mut command = bench.client(client);
    bench.sandbox.at_home(&mut command);
    match client {
        Client::Claude => {
            command.args(["-p", prompt, "--output-format", "json"]).args(["--allowedTools", TOOLS])
        }
        Client::Codex => command
            .args(["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--json"])
            // The sandbox would otherwise leave its marks in the temporary directory that all tests share.
            .args(["-c", "sandbox_workspace_write.exclude_slash_tmp=true"])
            .args(["-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"])
            .args(["-s", "workspace-write", prompt]),
    };
    command
}

/// Runs a whole session with one prompt; it must end without an error.
fn talk(bench: &Bench, who: Client, prompt: &str) -> Talk {
    let ran = Ran::of(client(bench, who, prompt).output().unwrap());
    Talk::of(bench, who, &ran)
}

impl Talk {
    fn of(bench: &Bench, client: Client, ran: &Ran) -> Talk {
        assert_eq!(bench.unscripted(), [""; 0], "{}", ran.out);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        let lines = ran.events();
        match client {
            Client::Claude => {
                let [result] = lines.as_slice() else { panic!("{}", ran.out) };
                assert_eq!(result["is_error"], false, "{}", ran.out);
                Talk { session: word(result, "session_id").into(), answer: word(result, "result").into() }
            }
            Client::Codex => {
                let session = lines.iter().find_map(|line| line["thread_id"].as_str()).unwrap();
                let mut items = lines.iter().map(|line| &line["item"]);
                let last = items.rfind(|item| item["type"] == "agent_message").unwrap();
                Talk { session: session.into(), answer: word(last, "text").into() }
            }
        }
    }
}

/// Builds a step in which the model types a command of Tribunal.
fn typed(words: &str) -> Step {
    Step::calls([Call::Shell(format!("{TRIBUNAL} {words}"))])
}

fn review() -> Step {
    Step::calls([Call::Shell(format!(
        "echo session=${{CLAUDE_CODE_SESSION_ID:-$CODEX_SESSION_ID}}; {TRIBUNAL} review --in-session plan.md"
    ))])
}

fn resume() -> Step {
    typed(&format!("resume $(sed -n 's/^run: //p' {STATE})"))
}

fn edit(old: &str, new: &str) -> Step {
    Step::calls([Call::Edit { path: "plan.md".into(), old: old.into(), new: new.into() }])
}

/// Returns the prompts with which the session was sent back, in order, with the client's escaping undone.
fn sent_back(bench: &Bench) -> Vec<String> {
    let all = bench.server.tally().requests.into_iter().filter(|request| request.rounds == 0);
    let back = all.map(|request| request.last).filter(|last| last.contains("sent back"));
    back.map(|words| plain(&words)).collect()
}

/// Undoes the escaping of Codex, which shows the model a tag as `&lt;tag&gt;`.
fn plain(words: &str) -> String {
    words.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Reads what happened in the session from the journal: `bound`, `refused`, `used`, …
fn events(bench: &Bench, run: &str) -> Vec<Value> {
    let mut all = bench.sandbox.events(&["log", run]);
    all.retain(|entry| entry["kind"] == "session");
    all
}

fn count(events: &[Value], what: &str) -> usize {
    events.iter().filter(|event| event["what"] == what).count()
}

/// Lists what sessions have taken on here.
fn loops(bench: &Bench) -> Vec<Value> {
    bench.sandbox.json(&["loop", "status"])["loops"].as_array().unwrap().clone()
}

/// Returns the only loop of the project.
fn taken(bench: &Bench) -> Value {
    let all = loops(bench);
    let [one] = all.as_slice() else { panic!("{all:?}") };
    one.clone()
}

fn who_has_open_findings_is_sent_back_until_they_are_repaired(client: Client) {
    let bench = project(
        client,
        [
            Rule::on("Please review", [review(), Step::text("All done.")]),
            Rule::on("sent back 1 of", [Step::text(format!("Now it is so. {PROMISE}"))]),
            Rule::on(
                "sent back 2 of",
                [
                    Step::calls([Call::Read("plan.md".into())]),
                    edit("It shall be fast.", "It answers in 200 ms."),
                    edit("None.", "The disk may be full."),
                    resume(),
                    Step::text("Repaired."),
                ],
            ),
        ],
    );
    let talk = talk(&bench, client, "Please review plan.md with Tribunal.");
    assert_eq!(talk.answer, "Repaired.");

    let back = sent_back(&bench);
    assert_eq!(back.len(), 2);
    let run = bench.sandbox.last_run();
    let named = "  F1 high plan.md:5: fast is vague\n  F2 low plan.md:9: there are always risks";
    for words in &back {
        assert!(words.contains("Repair what the review found in plan.md"), "{words}");
        for part in
            [named, PROMISE, "<review-blocked>REASON</review-blocked>", &format!("tribunal resume {run}")]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
    let claim = "You said that it is done, and it is not.";
    assert_eq!(back.iter().map(|words| words.contains(claim)).collect::<Vec<_>>(), [false, true]);

    let status = bench.sandbox.json(&["status"]);
    assert_eq!(status["runs"][0]["state"], "resolved", "{status}");
    assert_eq!(bench.findings(), ["F1 fixed", "F2 fixed"]);
    assert_eq!(bench.sandbox.read("plan.md"), REPAIRED);
    let events = events(&bench, &run);
    assert_eq!(events[0]["bound"]["session"], talk.session, "{events:?}");
    assert_eq!(count(&events, "refused"), 2, "{events:?}");
    let last = events.last().unwrap();
    assert_eq!([&last["what"], &last["why"]], ["let_go", "complete"]);
    // The client gives the same session id to the commands it runs, to hooks, and in its output.
    let shown = bench.server.tally().requests[1].results.join("\n");
    assert!(shown.contains(&format!("session={}\n", talk.session)), "{shown}");
    assert!(!bench.sandbox.path(STATE).exists());
    assert!(bench.sandbox.read(KEPT).contains(&run));
}

fn who_lies_for_ever_is_let_go_and_a_person_is_asked(client: Client) {
    let bench = project(
        client,
        [
            Rule::on("Please review", [review(), Step::text("All done.")]),
            Rule::on("sent back", [Step::text(format!("Really. {PROMISE}"))]),
            Rule::on("hello", [Step::text("Good day.")]),
        ],
    );
    let talk = talk(&bench, client, "Please review plan.md with Tribunal.");
    // The client's own cap would end the session with an empty answer.
    assert_eq!(talk.answer, format!("Really. {PROMISE}"));
    assert_eq!(sent_back(&bench).len(), 7);
    let taken = taken(&bench);
    assert_eq!(
        [&taken["refusals"], &taken["let_go"]],
        [&Value::from(7), &Value::from("client_cap")],
        "{taken}"
    );
    assert_eq!(bench.sandbox.json(&["status"])["runs"][0]["state"], "waiting");
    let asked = bench.run(&["decisions"]).out;
    assert!(asked.contains("F1, F2 are in the hands of a session"), "{asked}");
    assert!(asked.contains("fixers") && asked.contains("accept"), "{asked}");
    // The next session gets a notice, and is not held.
    let before = bench.server.tally().requests.len();
    assert_eq!(self::talk(&bench, client, "hello").answer, "Good day.");
    let requests = bench.server.tally().requests;
    assert_eq!(requests.len(), before + 1);
    let sent = requests[before].body.to_string();
    assert!(sent.contains("waits for a person: tribunal decisions"), "{sent}");
}

/// Builds a step in which the model starts a loop in its own shell.
fn start(options: &str) -> Step {
    typed(&format!("loop start 'Make it [good] * with --- in it.' {options}"))
}

const GOOD: &str = "ALL * [GOOD] & \"so\"";

fn a_loop_ends_with_its_promise(client: Client) {
    let promised = format!("It was work, but <promise>{GOOD}</promise> is true, I think.");
    let nearly = format!("<promise>ALL x GOOD</promise> `<promise>{GOOD}</promise>`");
    let bench = project(
        client,
        [
            Rule::on("Please loop", [start(&format!("--promise '{GOOD}'")), Step::text("Begun.")]),
            Rule::on("sent back 1 of", [Step::text(nearly)]),
            Rule::on("sent back 2 of", [Step::text(promised.as_str())]),
        ],
    );
    let talk = talk(&bench, client, "Please loop.");
    assert_eq!(talk.answer, promised);
    let back = sent_back(&bench);
    assert_eq!(back.len(), 2);
    for words in &back {
        assert!(words.contains("Make it [good] * with --- in it."), "{words}");
        assert!(words.contains(&format!("say exactly: <promise>{GOOD}</promise>")), "{words}");
    }
    let taken = taken(&bench);
    assert_eq!([&taken["session"], &taken["let_go"]], [talk.session.as_str(), "complete"], "{taken}");
    assert_eq!(taken["refusals"], 2);
    assert!(!bench.sandbox.path(STATE).exists() && bench.sandbox.path(KEPT).exists());
}

/// Codex escapes what hooks say; a model that repeats exactly what it was shown has kept its promise.
fn a_promise_may_be_said_as_it_was_shown(client: Client) {
    let shown = match client {
        Client::Claude => format!("<promise>{GOOD}</promise>"),
        Client::Codex => "&lt;promise&gt;ALL * [GOOD] &amp; \"so\"&lt;/promise&gt;".to_string(),
    };
    let bench = project(
        client,
        [
            Rule::on("Please loop", [start(&format!("--promise '{GOOD}'")), Step::text("Begun.")]),
            Rule::on(&shown, [Step::text(shown.as_str())]),
        ],
    );
    assert_eq!(talk(&bench, client, "Please loop.").answer, shown);
    assert_eq!([&taken(&bench)["let_go"]], ["complete"]);
}

/// Failing tools count, too: the client does not tell hooks of them, and only its own record has them.
fn a_loop_ends_at_its_limit_and_tools_make_the_client_patient(client: Client) {
    let number = |digits: &str| When {
        last: Some(Pattern::Regex(format!("sent back [0-9]*[{digits}] of").parse().unwrap())),
        ..When::default()
    };
    let using = |command: &str| [Step::calls([Call::Shell(command.into())]), Step::text("Not yet.")];
    let bench = project(
        client,
        [
            Rule::on("Please loop", [start("--max-iterations 12"), Step::text("Begun.")]),
            Rule::when(number("1234"), using("false")),
            Rule::when(number("0-9"), using("true")),
        ],
    );
    assert_eq!(talk(&bench, client, "Please loop.").answer, "Not yet.");
    assert_eq!(sent_back(&bench).len(), 12);
    let taken = taken(&bench);
    assert_eq!(
        [&taken["refusals"], &taken["let_go"]],
        [&Value::from(12), &Value::from("refusals")],
        "{taken}"
    );
    let asked = bench.run(&["decisions"]).out;
    assert!(asked.contains(&format!("{}.D1", word(&taken, "id"))), "{asked}");
}

fn a_loop_of_another_tool_goes_on_here(client: Client) {
    let bench = project(
        client,
        [
            Rule::on("hello", [Step::text("Good day.")]),
            Rule::on("Count the stars", [Step::text("<promise>COUNTED</promise>")]),
        ],
    );
    let theirs = ".claude/ralph-loop.local.md";
    bench.sandbox.write(
        theirs,
        "---\nactive: true\niteration: 1\nmax_iterations: 5\ncompletion_promise: \"COUNTED\"\n---\n\nCount the stars.\n",
    );
    assert_eq!(talk(&bench, client, "hello").answer, "<promise>COUNTED</promise>");
    assert_eq!(bench.server.tally().requests.len(), 2);
    assert!(!bench.sandbox.path(theirs).exists());
    assert!(bench.sandbox.read(".tribunal/sessions/1-ralph-loop.local.md").contains("iteration: 2"));
}

fn another_session_in_the_same_folder_is_free(who: Client) {
    let bench = project(
        who,
        [
            Rule::on("Please loop", [start("--promise OVER"), Step::text("Begun.")]),
            Rule::on("sent back 1 of", [Step::text("<promise>OVER</promise>")])
                .gated("the other one has gone"),
            Rule::on("hello", [Step::calls([Call::Read("plan.md".into())]), Step::text("Good day.")]),
        ],
    );
    let mut first = client(&bench, who, "Please loop.");
    let first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    bench.server.wait_until("the first is sent back", |tally| {
        tally.requests.iter().any(|request| request.last.contains("sent back 1 of"))
    });
    let (state, before) = (bench.sandbox.read(STATE), taken(&bench));
    let second = talk(&bench, who, "hello");
    assert_eq!(second.answer, "Good day.");
    assert_eq!((bench.sandbox.read(STATE), taken(&bench)), (state, before));
    bench.server.open("the other one has gone");
    let first = Talk::of(&bench, who, &Ran::of(first.wait_with_output().unwrap()));
    assert_ne!(first.session, second.session);
    let taken = taken(&bench);
    assert_eq!([&taken["session"], &taken["let_go"]], [first.session.as_str(), "complete"], "{taken}");
    assert_eq!(taken["refusals"], 1);
}

/// Creates a session that has taken on a loop and says that it is done, which is not enough.
fn looping(who: Client) -> Bench {
    project(who, [Rule::on("Please loop", [start("--promise OVER"), Step::text("All done.")])])
}

/// Expects that a session ends by itself, as if there were no hooks, and returns what the hooks printed for the user.
fn is_free(bench: &Bench, who: Client) -> String {
    assert_eq!(talk(bench, who, "Please loop.").answer, "All done.");
    assert_eq!(sent_back(bench).len(), 0);
    fs::read_to_string(bench.sandbox.home().join("said")).unwrap_or_default()
}

/// Replaces the hook by a script in which `$T` is the hook's program.
fn instead(bench: &Bench, who: Client, script: &str) {
    let (wrapper, said) = (bench.sandbox.home().join("instead"), bench.sandbox.home().join("said"));
    let text = format!("#!/bin/sh\nexec 2>>'{}'\nT='{TRIBUNAL}'\n{script}\n", said.display());
    write_program(&wrapper, &text);
    point_at(bench, who, &wrapper.display().to_string());
}

fn point_at(bench: &Bench, who: Client, program: &str) {
    let settings = bench.sandbox.read(settings(who));
    assert!(settings.contains(TRIBUNAL), "{settings}");
    bench.sandbox.write(self::settings(who), &settings.replace(TRIBUNAL, program));
}

const LISTENS: &str = "exec $T \"$@\"";

fn hooks_that_were_taken_out_again_hold_nobody(who: Client) {
    let bench = looping(who);
    bench.expect(&["init", "--remove", "--yes", "--client", who.agent()], 0);
    is_free(&bench, who);
    let taken = taken(&bench);
    assert_eq!([&taken["refusals"], &taken["tools"]], [0, 0], "{taken}");
}

fn a_hook_that_is_not_there_holds_nobody(who: Client) {
    let bench = looping(who);
    point_at(&bench, who, "/nowhere/tribunal");
    is_free(&bench, who);
    assert_eq!(taken(&bench)["refusals"], 0);
}

fn a_hook_that_crashes_holds_nobody(who: Client) {
    for crash in ["kill -SEGV $$", "exit 1", "echo '{\"decision\": \"blo'", "$T hook; exit 0"] {
        let bench = looping(who);
        instead(&bench, who, crash);
        is_free(&bench, who);
        assert_eq!(taken(&bench)["refusals"], 0, "{crash}");
    }
}

fn a_broken_state_file_holds_nobody_and_is_kept(who: Client) {
    for broken in ["---\nactive: perhaps\n---\nGo on.\n", "---\nactive: true\n", "\0\u{1}{{{{"] {
        let bench = project(who, [Rule::on("Please loop", [Step::text("All done.")])]);
        instead(&bench, who, LISTENS);
        bench.sandbox.write(STATE, broken);
        let said = is_free(&bench, who);
        assert!(said.contains(STATE) && said.contains(KEPT), "{said}");
        assert_eq!(bench.sandbox.read(KEPT), broken);
        assert!(!bench.sandbox.path(STATE).exists());
    }
}

fn a_folder_in_the_place_of_the_state_file_holds_nobody(who: Client) {
    let bench = project(who, [Rule::on("Please loop", [Step::text("All done.")])]);
    instead(&bench, who, LISTENS);
    bench.sandbox.write(&format!("{STATE}/here"), "something of somebody's");
    let said = is_free(&bench, who);
    assert!(said.contains(STATE), "{said}");
    assert_eq!(bench.sandbox.read(&format!("{KEPT}/here")), "something of somebody's");
}

fn the_state_of_another_session_holds_nobody(who: Client) {
    let bench = project(who, [Rule::on("Please loop", [Step::text("All done.")])]);
    let state = "---\nactive: true\nsession_id: \"somebody-else\"\nworkflow_name: loop\n---\nGo on.\n";
    bench.sandbox.write(STATE, state);
    is_free(&bench, who);
    assert_eq!(bench.sandbox.read(STATE), state);
}

/// A file in a shared directory above the project may belong to another user.
fn a_state_file_above_the_project_holds_nobody(who: Client) {
    let bench = project(who, [Rule::on("Please loop", [Step::text("All done.")])]);
    let (theirs, state) =
        ("../.claude/ralph-loop.local.md", "---\nactive: true\niteration: 1\n---\nDo as I say.\n");
    bench.sandbox.write(theirs, state);
    is_free(&bench, who);
    assert_eq!(bench.sandbox.read(theirs), state);
}

fn a_broken_journal_holds_nobody(who: Client) {
    let bench = looping(who);
    let journal = bench.sandbox.path(".tribunal/journal.db").display().to_string();
    let ruin = format!("yes garbage | head -c 9000 > '{journal}'; rm -f '{journal}'-*");
    instead(&bench, who, &format!("case $2 in stop) {ruin};; esac; {LISTENS}"));
    let said = is_free(&bench, who);
    assert!(said.contains("the journal cannot be read, so nobody is held"), "{said}");
    assert!(bench.sandbox.path(STATE).exists(), "it may well be right");
}

fn broken_settings_hold_nobody(who: Client) {
    let bench = looping(who);
    let path = settings(who);
    bench.sandbox.write(path, bench.sandbox.read(path).trim_end().strip_suffix('}').unwrap());
    is_free(&bench, who);
    assert_eq!(taken(&bench)["refusals"], 0);
}

/// Removes what this expression matches from the client's input to hooks.
fn without(bench: &Bench, who: Client, found: &str) {
    instead(bench, who, &format!("sed '{found}' | $T \"$@\""));
}

const NO_TRANSCRIPT: &str = r#"s/"transcript_path":"[^"]*"/"transcript_path":"\/nowhere"/"#;

fn without_a_transcript_the_clients_own_word_counts(who: Client) {
    let bench = project(
        who,
        [
            Rule::on("Please loop", [start("--promise OVER"), Step::text("Begun.")]),
            Rule::on("sent back 1 of", [Step::text("<promise>OVER</promise>")]),
        ],
    );
    without(&bench, who, NO_TRANSCRIPT);
    assert_eq!(talk(&bench, who, "Please loop.").answer, "<promise>OVER</promise>");
    assert_eq!(taken(&bench)["let_go"], "complete");
}

/// A session whose answer is unknown can say neither that it is done nor that it is blocked.
fn without_any_word_of_a_session_it_is_free(who: Client) {
    let bench = project(
        who,
        [
            Rule::on("Please loop", [start("--promise OVER --max-iterations 3"), Step::text("Begun.")]),
            Rule::on("sent back", [Step::text("<promise>OVER</promise>")]),
        ],
    );
    without(&bench, who, &format!(r#"{NO_TRANSCRIPT}; s/"last_assistant_message"/"lost"/"#));
    assert_eq!(talk(&bench, who, "Please loop.").answer, "Begun.");
    assert_eq!(taken(&bench)["refusals"], 0);
    let said = fs::read_to_string(bench.sandbox.home().join("said")).unwrap();
    assert!(said.contains("/nowhere cannot be read"), "{said}");
}

fn what_is_guarded_is_kept_and_the_model_reads_why(who: Client) {
    let mine = Call::Write { path: ".tribunal/mine".into(), content: "I was here.".into() };
    let bench = project(
        who,
        [Rule::on(
            "Please loop",
            [
                start("--promise OVER"),
                Step::calls([Call::Shell("rm -rf .git".into())]),
                Step::calls([mine]),
                Step::calls([Call::Shell("rm -r build".into())]),
                Step::text("<promise>OVER</promise>"),
            ],
        )],
    );
    for file in [".git/HEAD", "build/out"] {
        bench.sandbox.write(file, "something");
    }
    talk(&bench, who, "Please loop.");
    let told: Vec<String> =
        bench.server.tally().requests.iter().map(|request| request.results.join("\n")).collect();
    let there = [".git/HEAD", ".tribunal/mine", "build/out"].map(|file| bench.sandbox.path(file).exists());
    assert_eq!(there, [true, false, false], "{told:?}");
    assert!(told[2].contains("Refused: ") && told[2].contains(".git"), "{}", told[2]);
    assert!(told[3].contains("Refused: ") && told[3].contains(".tribunal/mine"), "{}", told[3]);
    let history = bench.run(&["loop", "status", word(&taken(&bench), "id")]).out;
    assert_eq!(history.matches("was kept from").count(), 2, "{history}");
}
