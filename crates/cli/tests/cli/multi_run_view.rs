//! The live view of several runs, on a terminal that tmux provides.
#![cfg(target_os = "linux")]

use std::{
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    common::{Sandbox, TRIBUNAL},
    multi_run::{run_states, sandbox_with_waiting_agents},
    progress_display::TmuxServer,
};

/// How long a screen is waited for. Only a screen that never comes takes so long.
const MAX_SCREEN_WAIT: Duration = Duration::from_secs(600);

/// Captures the screen until it shows all of `expected_texts`.
fn wait_for_screen(tmux: &TmuxServer, expected_texts: &[&str]) -> String {
    let mut screen_text = String::new();
    let started_at = Instant::now();
    while started_at.elapsed() < MAX_SCREEN_WAIT {
        let mut command = Command::new("tmux");
        command.args(["-L", &tmux.0, "capture-pane", "-p", "-S", "-"]).env_remove("TMUX");
        screen_text = String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned();
        if expected_texts.iter().all(|expected_text| screen_text.contains(expected_text)) {
            return screen_text;
        }
    }
    panic!("{expected_texts:?} did not appear:\n{screen_text}");
}

/// Starts a command line in tmux; `None` if tmux is not installed.
fn start_in_tmux(sandbox: &Sandbox, session_name: &str, command_line: &str) -> Option<TmuxServer> {
    // The sandbox trusts the agent when it prepares a command of its own, even if that is never run.
    sandbox.tribunal_command(&["review"]);
    let script = format!(
        "HOME='{0}' XDG_STATE_HOME='{0}/state' XDG_CONFIG_HOME='{0}/config' TRIBUNAL_SANDBOX__WRITE='[\"{1}\"]'
         export HOME XDG_STATE_HOME XDG_CONFIG_HOME TRIBUNAL_SANDBOX__WRITE
         echo 'tmux keeps what is erased from the first row on, so this is there'
         {command_line}; echo \"exit code $?\"; tmux wait-for -S done; cat\n",
        sandbox.home_dir().display(),
        sandbox.path_of("..").canonicalize().unwrap().display()
    );
    sandbox.write_file("script.sh", &script);
    let project_dir = sandbox.root_dir().display().to_string();
    let tmux = TmuxServer(format!("tribunal-{session_name}-{}", std::process::id()));
    let has_started = tmux.run_tmux(&["new-session", "-d", "-x", "80", "-y", "24", "-c", &project_dir, "sh script.sh"]);
    has_started.then_some(tmux)
}

#[test]
fn all_runs_have_rows_in_one_view_and_a_key_stops_them() {
    let (sandbox, arrived, mut release) = sandbox_with_waiting_agents(&["one.md", "two.md", "three.md"]);
    let command_line = format!("{TRIBUNAL} review one.md two.md three.md --jobs 2");
    let Some(tmux) = start_in_tmux(&sandbox, "rows", &command_line) else {
        eprintln!("not held: tmux is not here or does not start");
        return;
    };
    arrived.read_lines(2);
    let screen_text = wait_for_screen(
        &tmux,
        &["▸ one.md", "▸ two.md", "○ three.md queued", "round 1 reviewing 0/1", "2 working, 1 queued", "s: stop all"],
    );
    assert_eq!(screen_text.matches("── 3 runs · summary ──").count(), 1, "{screen_text}");
    assert!(tmux.run_tmux(&["send-keys", "s"]));
    wait_for_screen(&tmux, &["stopping all runs after their current tasks"]);
    release.release_agents(2);
    assert!(tmux.run_tmux(&["wait-for", "done"]));
    let screen_text = wait_for_screen(&tmux, &["exit code 130"]);
    assert!(screen_text.contains("not started  three.md") && !screen_text.contains("── 3 runs"), "{screen_text}");
    assert_eq!(run_states(&sandbox), ["stopped", "stopped"]);
}
