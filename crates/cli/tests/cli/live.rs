//! How much progress is shown in pipes and on a terminal, which tmux provides.

use std::process::Command;

use crate::common::{Sandbox, TRIBUNAL};

const FAST: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{say: reading the plan}, {findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}]
";

#[test]
fn a_pipe_gets_as_much_as_was_asked_for() {
    let shown = |mode: &str| {
        let sandbox = Sandbox::scripted(FAST);
        let ran = sandbox.run(&["review", "plan.md", "--progress", mode]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        sandbox.normal(&ran.err)
    };
    let silent = shown("silent");
    assert!(silent.starts_with("resolved · the goal is met"), "{silent}");
    let summary = shown("summary");
    assert!(summary.contains("  round 1: 1 new; 1 finding: 1 high to fix\n"), "{summary}");
    assert!(!summary.contains("fast is vague"), "{summary}");
    let streaming = shown("streaming");
    assert!(streaming.contains("fast is vague") && streaming.contains("· "), "{streaming}");
    assert!(!streaming.contains("round-1/freeze"), "{streaming}");
    assert!(shown("verbose").contains("  > started     round-1/freeze\n"));
}

#[test]
fn a_mode_that_nobody_knows_is_a_usage_error() {
    let sandbox = Sandbox::scripted(FAST);
    let ran = sandbox.run(&["review", "plan.md", "--progress", "loud"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("There are silent, summary, streaming, verbose."), "{}", ran.err);
    assert!(!sandbox.path(".tribunal").exists());
}

/// A private tmux server that is killed at the end of the test.
struct Tmux(String);

impl Tmux {
    fn run(&self, args: &[&str]) -> bool {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.0, "-f", "/dev/null"]).args(args).env_remove("TMUX");
        command.output().is_ok_and(|ran| ran.status.success())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// Asks the terminal for its cursor position. The terminal answers after it has drawn everything before, so no delay is
/// needed.
const DRAWN: &str =
    "stty -icanon -echo; printf '\\033[6n'; dd bs=32 count=1 2>/dev/null >/dev/null; stty icanon echo";

#[test]
fn on_a_terminal_the_scrollback_is_the_log_and_the_terminal_is_as_before() {
    let sandbox = Sandbox::scripted(FAST);
    let script = format!(
        "stty -a >before; {TRIBUNAL} review plan.md; echo $? >exit; stty -a >after
         {DRAWN}; tmux capture-pane -p -S - >live; clear; tmux clear-history
         {TRIBUNAL} log; {DRAWN}; tmux capture-pane -p -S - >log; tmux wait-for -S done; cat"
    );
    sandbox.write("script.sh", &script);
    let folder = sandbox.root().display().to_string();
    let tmux = Tmux(format!("tribunal-test-{}", std::process::id()));
    if !tmux.run(&["new-session", "-d", "-x", "100", "-y", "30", "-c", &folder, "sh script.sh"]) {
        eprintln!("not held: tmux is not here or does not start");
        return;
    }
    assert!(tmux.run(&["wait-for", "done"]));
    assert_eq!(sandbox.read("exit"), "0\n");
    assert_eq!(sandbox.read("before"), sandbox.read("after"));
    let live = sandbox.read("live");
    assert!(live.contains("fast is vague"), "{live}");
    assert_eq!(live, sandbox.read("log"));
}
