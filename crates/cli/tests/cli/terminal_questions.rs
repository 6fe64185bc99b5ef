//! Questions that are asked on the terminal: decisions where a run stops, and trust before one starts. `script` provides the
//! terminal.

use std::{
    io::{Read, Write, stderr},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::common::{FIXING_SCRIPT, Sandbox, TRIBUNAL};

const BLOCKED_SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, blocked: how fast must it be}]
";
const PATCH_PROMPT: &str = "Apply this patch? [y/n/d/q] ";
const TRUST_PROMPT: &str = "Trust them in this project? [y/n/d/q] ";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// A command on a terminal of its own.
struct TerminalSession {
    child: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
    /// Everything that was written, and how much of it a test has looked at.
    written_text: String,
    seen_bytes: usize,
}

impl TerminalSession {
    /// Starts tribunal with these arguments. Returns `None` where no terminal can be made.
    fn start(sandbox: &Sandbox, arguments: &str) -> Option<TerminalSession> {
        if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
            let _ = stderr().write_all(b"not held: `script` is not here\n");
            return None;
        }
        // A question that never comes must fail the test and not hang it.
        let command_line = format!("stty cols 150 rows 40; exec {TRIBUNAL} {arguments}");
        let mut child = sandbox
            .isolated_command("timeout")
            .args(["--foreground", "600", "script", "-qec", &command_line, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (keyboard, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Some(TerminalSession { child, keyboard, screen, written_text: String::new(), seen_bytes: 0 })
    }

    /// Waits until this text is written after what was waited for before.
    fn wait_for(&mut self, expected_text: &str) -> &mut TerminalSession {
        loop {
            if let Some(position) = self.written_text[self.seen_bytes..].find(expected_text) {
                self.seen_bytes += position + expected_text.len();
                return self;
            }
            let mut chunk = [0; 4096];
            let length = self.screen.read(&mut chunk).unwrap();
            assert!(length > 0, "`{expected_text}` was not written: {}", self.written_text);
            self.written_text.push_str(&String::from_utf8_lossy(&chunk[..length]));
        }
    }

    fn type_text(&mut self, typed_text: &str) -> &mut TerminalSession {
        self.keyboard.write_all(typed_text.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
        self
    }

    /// Waits for the end. Returns the exit code and everything that was written.
    fn finish(mut self) -> (Option<i32>, String) {
        // The keyboard stays open: closing it would be one more Ctrl-D.
        let mut last_bytes = Vec::new();
        self.screen.read_to_end(&mut last_bytes).unwrap();
        self.written_text.push_str(&String::from_utf8_lossy(&last_bytes));
        (self.child.wait().unwrap().code(), self.written_text)
    }
}

/// What was reviewed before is reviewed again only if the user wants that.
#[test]
fn a_review_of_the_same_text_asks_first() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{findings: []}]}]\n");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(0));
    let prompt = "[R] review, [C] continue without a review: ";
    let Some(mut session) = TerminalSession::start(&sandbox, "review plan.md") else { return };
    session.wait_for("plan.md was reviewed before, in ").wait_for("confidence ").wait_for("recommended: minimal (");
    session.wait_for(prompt).type_text("maybe\n").wait_for("type r or c").wait_for(prompt).type_text("c\n");
    let (exit_code, screen) = session.finish();
    assert_eq!(exit_code, Some(0), "{screen}");
    assert!(screen.contains("cancelled: you continued without a review"), "{screen}");
    let runs = sandbox.run_json(&["status"]);
    assert_eq!(runs["runs"][0]["last"]["reason"], "skipped", "{runs}");
    let Some(mut session) = TerminalSession::start(&sandbox, "review plan.md") else { return };
    session.wait_for(prompt).type_text("\n").wait_for("round 1 of");
    assert_eq!(session.finish().0, Some(0));
    let Some(mut session) = TerminalSession::start(&sandbox, "review plan.md") else { return };
    session.wait_for(prompt).type_text(CTRL_D);
    assert_eq!(session.finish().0, Some(130));
    // A level is an answer already.
    let Some(session) = TerminalSession::start(&sandbox, "review plan.md --level minimal") else { return };
    let (exit_code, screen) = session.finish();
    assert!(exit_code == Some(0) && !screen.contains(prompt), "{screen}");
}

fn approving_session(sandbox: &Sandbox) -> Option<TerminalSession> {
    TerminalSession::start(sandbox, "review plan.md --approve each")
}

#[test]
fn a_patch_is_shown_and_approved_where_the_run_stopped() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    let Some(mut session) = approving_session(&sandbox) else { return };
    session.wait_for("It fixes F1 and changes plan.md").wait_for(PATCH_PROMPT).type_text("d\n");
    session.wait_for("-It shall be fast.").wait_for("+It answers in 200 ms.");
    // A line that is not an answer is explained and asked about again.
    session.wait_for(PATCH_PROMPT).type_text("\n").wait_for("show the diff").wait_for(PATCH_PROMPT).type_text("y\n");
    let (exit_code, written_text) = session.finish();
    assert_eq!(exit_code, Some(0), "{written_text}");
    assert!(sandbox.read_file("plan.md").contains("200 ms"));
    assert_eq!(sandbox.run_ids().len(), 1, "the same run was resumed");
}

#[test]
fn a_rejection_takes_a_note_and_the_same_patch_is_recognized() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    let Some(mut session) = approving_session(&sandbox) else { return };
    session.wait_for(PATCH_PROMPT).type_text("n\n");
    session.wait_for("Note for the fixer (press Enter for none): ").type_text("say for whom\n");
    session.wait_for("the same patch as in D1, which you rejected").wait_for(PATCH_PROMPT).type_text("q\n");
    let (exit_code, written_text) = session.finish();
    assert_eq!(exit_code, Some(3), "{written_text}");
    assert!(sandbox.read_file("plan.md").contains("It shall be fast."));
    let journal = sandbox.run_events(&["log", &sandbox.last_run_id()]);
    let is_brief = |entry: &&serde_json::Value| entry["kind"] == "effect_started" && entry["effect"]["effect"] == "ask";
    let last_brief = journal.iter().rfind(is_brief).unwrap();
    assert_eq!(last_brief["effect"]["task"]["brief"]["said"][0], "say for whom");
    let page = sandbox.read_file(&format!(".tribunal/awaiting-human/{}.D2.yaml", sandbox.last_run_id()));
    assert!(page.contains("the same patch as in D1, which you rejected"), "{page}");
}

#[test]
fn quitting_leaves_the_question_and_resuming_asks_it_again() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    for typed_text in ["q\n", CTRL_C, CTRL_D] {
        let arguments = if sandbox.run_ids().is_empty() { "review plan.md --approve each" } else { "resume" };
        let Some(mut session) = TerminalSession::start(&sandbox, arguments) else { return };
        session.wait_for(PATCH_PROMPT).type_text(typed_text);
        let (exit_code, written_text) = session.finish();
        assert_eq!(exit_code, Some(3), "{typed_text:?}: {written_text}");
        assert!(written_text.contains("is waiting for you; to continue: `tribunal resume plan-"), "{written_text}");
        assert_eq!(sandbox.run_json(&["decisions"])["decisions"][0]["answered"], false, "{typed_text:?}");
    }
    let Some(mut session) = TerminalSession::start(&sandbox, "resume --progress summary") else { return };
    session.wait_for(PATCH_PROMPT).type_text("y\n");
    let (exit_code, written_text) = session.finish();
    assert_eq!(exit_code, Some(0), "{written_text}");
    assert!(sandbox.read_file("plan.md").contains("200 ms"));
}

#[test]
fn other_decisions_are_answered_by_number() {
    let sandbox = Sandbox::with_script(BLOCKED_SCRIPT);
    let Some(mut session) = TerminalSession::start(&sandbox, "review plan.md") else { return };
    session.wait_for("2  dismiss  not an issue").wait_for("Your answer? [1-3/q] ").type_text("2\n");
    session.wait_for("Reason (press Enter for none): ").type_text("we know\n");
    let (exit_code, written_text) = session.finish();
    assert_eq!(exit_code, Some(0), "{written_text}");
    let findings = sandbox.run_json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "dismissed");
    assert!(findings.to_string().contains("we know"), "{findings}");
}

#[test]
fn several_runs_are_asked_about_one_after_the_other_until_the_user_quits() {
    let sandbox = Sandbox::with_script(BLOCKED_SCRIPT);
    for file_name in ["second.md", "third.md"] {
        sandbox.write_file(file_name, &sandbox.read_file("plan.md"));
    }
    let Some(mut session) = TerminalSession::start(&sandbox, "review plan.md second.md third.md") else { return };
    session.wait_for("Your answer? [1-3/q] ").type_text("3\n");
    session.wait_for("Reason (press Enter for none): ").type_text("\n");
    session.wait_for("Your answer? [1-3/q] ").type_text("q\n");
    let (exit_code, written_text) = session.finish();
    assert_eq!(exit_code, Some(3), "{written_text}");
    assert_eq!(sandbox.run_json(&["decisions"])["decisions"].as_array().unwrap().len(), 2);
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    let output = sandbox.run_tribunal(&["review", "plan.md", "--approve", "each"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(!output.stderr.contains("[y/n/d/q]") && output.stderr.contains(".D1 ANSWER"), "{}", output.stderr);
}

/// A project whose agent creates a trace file when it runs, and that has a check. Nothing is trusted yet.
fn untrusted_project() -> Sandbox {
    let sandbox = Sandbox::with_script("").without_trust();
    sandbox.write_file(
        "tribunal.yaml",
        "tier: 0\nagents: {use: [mine], mine: {driver: command, argv: [sh, -c, \"touch $HOME/trace; echo 'findings: []'\"]}}\n\
         verify: [\"true\"]\ntasks: {required_issues: 0, retry_after: 0}\n",
    );
    std::fs::create_dir_all(sandbox.home_dir()).unwrap();
    sandbox
}

#[test]
fn trusted_commands_run_at_once_after_their_details_were_shown() {
    let sandbox = untrusted_project();
    let Some(mut session) = TerminalSession::start(&sandbox, "review plan.md") else { return };
    session.wait_for("agent `mine`: sh -c").wait_for(TRUST_PROMPT).type_text("d\n");
    session.wait_for("program: sh").wait_for("argument 2: touch $HOME/trace").wait_for("shell: true");
    session.wait_for(TRUST_PROMPT).type_text("y\n");
    let (exit_code, written_text) = session.finish();
    assert_eq!(exit_code, Some(0), "{written_text}");
    assert!(sandbox.home_dir().join("trace").exists());
}

#[test]
fn commands_that_are_not_trusted_do_not_run() {
    let sandbox = untrusted_project();
    for typed_text in ["n\n", "q\n", CTRL_D] {
        let Some(mut session) = TerminalSession::start(&sandbox, "review plan.md") else { return };
        session.wait_for(TRUST_PROMPT).type_text(typed_text);
        let (exit_code, written_text) = session.finish();
        assert_eq!(exit_code, Some(2), "{typed_text:?}: {written_text}");
        assert!(written_text.contains("the project's commands are not trusted"), "{written_text}");
        assert!(!sandbox.home_dir().join("trace").exists() && !sandbox.path_of(".tribunal").exists());
    }
    let Some(mut session) = TerminalSession::start(&sandbox, "trust") else { return };
    // A line that is neither yes nor no is asked about again.
    session.wait_for(TRUST_PROMPT).type_text("maybe\n").wait_for(TRUST_PROMPT).type_text("n\n");
    let (exit_code, written_text) = session.finish();
    assert_eq!(exit_code, Some(3), "{written_text}");
    assert!(written_text.contains("note: nothing was trusted"), "{written_text}");
}
