//! `tribunal play-script FILE`: the process behind the `replay` driver. It is hidden, because users reach it through
//! settings.

use std::{
    env, fs,
    io::{Read, stderr, stdin, stdout},
    path::PathBuf,
    time::Duration,
};

use tribunal_agents::{
    driver::TASK_VARIABLE,
    replay::{Form, PACED_VARIABLE, Script, Stage, play},
};

use crate::complaint::Complaint;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    script: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8, Complaint> {
    let path = arguments.script.display();
    let text = fs::read_to_string(&arguments.script)
        .map_err(|cause| Complaint::usage(format!("{path} cannot be read: {cause}")))?;
    let script = Script::parse(&text).map_err(|cause| Complaint::usage(format!("{path}: {cause}")))?;
    // The prompt is read to its end even if the script ignores it, or the writing side could block.
    let mut prompt = String::new();
    stdin().read_to_string(&mut prompt)?;
    let mut stage = Stage {
        task: &env::var(TASK_VARIABLE).unwrap_or_default(),
        prompt: &prompt,
        folder: &env::current_dir()?,
        paced: env::var(PACED_VARIABLE).is_ok_and(|value| value == "1"),
        form: Form::Lines,
        out: &mut stdout(),
        err: &mut stderr(),
        wait: &|time: Duration| std::thread::sleep(time),
    };
    let ended = play(&script, &mut stage)?;
    // A code outside of 0 to 255 is a mistake in the script, reported as an internal software error (70).
    Ok(u8::try_from(ended.0).unwrap_or(70))
}
