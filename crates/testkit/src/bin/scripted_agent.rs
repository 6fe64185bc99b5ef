//! An agent that plays a script: `scripted-agent SCRIPT` reads the prompt from standard input and answers in plain text, as any
//! command line agent would. The environment names the task, as for every agent that Tribunal starts.
//!
//! `TRIBUNAL_CALLS=FILE` appends the name of the task to a file, so that a test can count real calls.

use std::{
    env, fs,
    io::{Read, Write, stderr, stdin, stdout},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use tribunal_agents::{
    driver::TASK_VARIABLE,
    replay::{AgentScript, ScriptOutputForm, ScriptPlayer, play_script},
};
use tribunal_testkit::append_line;

fn main() -> ExitCode {
    match run_script() {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            let _ = writeln!(stderr(), "scripted-agent: {problem}");
            ExitCode::from(64)
        }
    }
}

fn run_script() -> Result<u8, Box<dyn std::error::Error>> {
    let script_path = env::args().nth(1).ok_or("usage: scripted-agent SCRIPT")?;
    let script =
        AgentScript::parse(&fs::read_to_string(&script_path).map_err(|cause| format!("{script_path}: {cause}"))?)?;
    let task_name = env::var(TASK_VARIABLE).unwrap_or_default();
    if let Ok(calls_path) = env::var("TRIBUNAL_CALLS") {
        append_line(Path::new(&calls_path), &task_name)?;
    }
    let mut prompt = String::new();
    stdin().read_to_string(&mut prompt)?;
    let play_result = play_script(
        &script,
        &mut ScriptPlayer {
            task_key: &task_name,
            prompt: &prompt,
            working_dir: &env::current_dir()?,
            is_paced: false,
            output_form: ScriptOutputForm::PlainText,
            stdout: &mut stdout(),
            stderr: &mut stderr(),
            wait_for: &|pause: Duration| std::thread::sleep(pause),
        },
    )?;
    Ok(u8::try_from(play_result.0).unwrap_or(70))
}
