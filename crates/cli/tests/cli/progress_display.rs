//! How much progress is shown in pipes and on a terminal, which tmux provides.

use std::process::Command;

use crate::common::{Sandbox, TRIBUNAL, without_sandbox_lines};

const FIXING_SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{say: reading the plan}, {findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}]
";

#[test]
fn the_progress_mode_decides_how_much_a_pipe_gets() {
    let progress_in = |progress_mode: &str| {
        let sandbox = Sandbox::with_script(FIXING_SCRIPT);
        let output = sandbox.run_tribunal(&["review", "plan.md", "--progress", progress_mode]);
        assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
        sandbox.normalize_output(&output.stderr)
    };
    assert_eq!(progress_in("silent"), "");
    let summary = progress_in("summary");
    assert!(summary.contains("  round 1: 1 new finding, 1 to fix (1 high)\n"), "{summary}");
    assert!(!summary.contains("fast is vague"), "{summary}");
    let streaming = progress_in("streaming");
    assert!(streaming.contains("fast is vague") && streaming.contains("· "), "{streaming}");
    assert!(!streaming.contains("round-1/freeze"), "{streaming}");
    assert!(progress_in("verbose").contains("  > started     round-1/freeze\n"));
}

#[test]
fn an_unknown_progress_mode_is_a_usage_error() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    let output = sandbox.run_tribunal(&["review", "plan.md", "--progress", "loud"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("(one of silent, summary, streaming, verbose)"), "{}", output.stderr);
    assert!(!sandbox.path_of(".tribunal").exists());
}

/// A private tmux server that is killed at the end of the test.
pub struct TmuxServer(pub String);

impl TmuxServer {
    pub fn run_tmux(&self, args: &[&str]) -> bool {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.0, "-f", "/dev/null"]).args(args).env_remove("TMUX");
        command.output().is_ok_and(|output| output.status.success())
    }
}

impl Drop for TmuxServer {
    fn drop(&mut self) {
        self.run_tmux(&["kill-server"]);
    }
}

/// Asks the terminal for its cursor position. The terminal answers after it has drawn everything before, so no delay is
/// needed.
const WAIT_UNTIL_DRAWN: &str =
    "stty -icanon -echo; printf '\\033[6n'; dd bs=32 count=1 2>/dev/null >/dev/null; stty icanon echo";

#[test]
fn on_a_terminal_the_scrollback_equals_the_log_and_the_terminal_is_restored() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    let script = format!(
        "stty -a >before; {TRIBUNAL} review plan.md; echo $? >exit; stty -a >after
         {WAIT_UNTIL_DRAWN}; tmux capture-pane -p -S - >live; clear; tmux clear-history
         {TRIBUNAL} log; {WAIT_UNTIL_DRAWN}; tmux capture-pane -p -S - >log; tmux wait-for -S done; cat"
    );
    sandbox.write_file("script.sh", &script);
    let project_dir = sandbox.root_dir().display().to_string();
    let tmux = TmuxServer(format!("tribunal-test-{}", std::process::id()));
    if !tmux.run_tmux(&["new-session", "-d", "-x", "100", "-y", "30", "-c", &project_dir, "sh script.sh"]) {
        eprintln!("not held: tmux is not here or does not start");
        return;
    }
    assert!(tmux.run_tmux(&["wait-for", "done"]));
    assert_eq!(sandbox.read_file("exit"), "0\n");
    assert_eq!(sandbox.read_file("before"), sandbox.read_file("after"));
    let live_screen = sandbox.read_file("live");
    assert!(live_screen.contains("fast is vague"), "{live_screen}");
    // What the kernel enforces is said before the run, and is not part of its log.
    let shown_run = without_sandbox_lines(&live_screen);
    assert_eq!(shown_run.trim_end(), sandbox.read_file("log").trim_end());
}
