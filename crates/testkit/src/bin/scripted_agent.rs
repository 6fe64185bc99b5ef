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
    replay::{Form, Script, Stage, play},
};
use tribunal_testkit::append_line;

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            let _ = writeln!(stderr(), "scripted-agent: {problem}");
            ExitCode::from(64)
        }
    }
}

fn run() -> Result<u8, Box<dyn std::error::Error>> {
    let path = env::args().nth(1).ok_or("usage: scripted-agent SCRIPT")?;
    let script = Script::parse(&fs::read_to_string(&path).map_err(|cause| format!("{path}: {cause}"))?)?;
    let task = env::var(TASK_VARIABLE).unwrap_or_default();
    if let Ok(calls) = env::var("TRIBUNAL_CALLS") {
        append_line(Path::new(&calls), &task)?;
    }
    let mut prompt = String::new();
    stdin().read_to_string(&mut prompt)?;
    let ended = play(
        &script,
        &mut Stage {
            task: &task,
            prompt: &prompt,
            folder: &env::current_dir()?,
            paced: false,
            form: Form::Plain,
            out: &mut stdout(),
            err: &mut stderr(),
            wait: &|time: Duration| std::thread::sleep(time),
        },
    )?;
    Ok(u8::try_from(ended.0).unwrap_or(70))
}
