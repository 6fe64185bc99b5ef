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
    replay::{AgentScript, PACED_VARIABLE, ScriptOutputForm, ScriptPlayer, play_script},
};

use crate::messages::user_errors::UserError;

#[derive(Debug, clap::Args)]
pub(crate) struct PlayScriptArguments {
    script: PathBuf,
}

pub(crate) fn run(arguments: &PlayScriptArguments) -> Result<u8, UserError> {
    let script_path = arguments.script.display();
    let script_text = fs::read_to_string(&arguments.script)
        .map_err(|cause| UserError::usage(format!("{script_path} cannot be read: {cause}")))?;
    let script =
        AgentScript::parse(&script_text).map_err(|cause| UserError::usage(format!("{script_path}: {cause}")))?;
    // The prompt is read to its end even if the script ignores it, or the writing side could block.
    let mut prompt = String::new();
    stdin().read_to_string(&mut prompt)?;
    let mut stage = ScriptPlayer {
        task_key: &env::var(TASK_VARIABLE).unwrap_or_default(),
        prompt: &prompt,
        working_dir: &env::current_dir()?,
        is_paced: env::var(PACED_VARIABLE).is_ok_and(|value| value == "1"),
        output_form: ScriptOutputForm::JsonLines,
        stdout: &mut stdout(),
        stderr: &mut stderr(),
        wait_for: &|duration: Duration| std::thread::sleep(duration),
    };
    let exit_code = play_script(&script, &mut stage)?;
    // A code outside of 0 to 255 is a mistake in the script, reported as an internal software error (70).
    Ok(u8::try_from(exit_code.0).unwrap_or(70))
}
