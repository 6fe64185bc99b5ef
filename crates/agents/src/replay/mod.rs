//! The `replay` driver: an agent that plays a script, in a real process and in the workspace it is given.
//!
//! [`script`] is the format that users write, [`player`] plays it. The programs around it (`tribunal play-script`,
//! and the test kit's `scripted-agent`) only connect input and output. No model is involved, and reports that show
//! such output say so.

mod player;
mod script;

use std::collections::BTreeMap;

use tribunal_engine::limits::AgentUsage;
use tribunal_json::{Deserialize, Serialize};

pub use player::{ScriptExit, ScriptOutputForm, ScriptPlayer, play_script};
pub use script::{AgentScript, FixEntry, RuleEntry, ScriptError, ScriptStep, TaskEntry};

use crate::driver::{
    launch_request::{AgentLaunch, LaunchEnv, LaunchRequest},
    process_output::DecodedOutput,
};

/// The hidden subcommand of our own program that plays a script.
pub const PLAY_COMMAND: &str = "play-script";
/// Set to `1` if the script's waits are really waited.
pub const PACED_VARIABLE: &str = "TRIBUNAL_PACED";

/// One line of a scripted agent's output, in the form that the `replay` driver reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplayLine {
    Progress { text: String },
    Text { text: String },
    Usage { usage: AgentUsage },
}

/// Builds the launch of our own program, which plays the script.
pub(crate) fn build_launch(
    script_path: &str,
    is_paced: bool,
    launch_request: LaunchRequest<'_>,
    launch_env: &LaunchEnv,
) -> AgentLaunch {
    AgentLaunch {
        program: launch_env.own_program.clone().into_os_string(),
        args: vec![PLAY_COMMAND.into(), launch_env.project_root.join(script_path).into_os_string()],
        env: BTreeMap::from([(PACED_VARIABLE.to_string(), u8::from(is_paced).to_string())]),
        stdin_text: launch_request.prompt,
        ..AgentLaunch::default()
    }
}

/// Decodes the output. Lines of another form are text: an agent may print anything.
pub fn decode_output(agent_stdout: &str) -> DecodedOutput {
    let mut decoded_output = DecodedOutput::default();
    for output_line in agent_stdout.lines() {
        match serde_json::from_str::<ReplayLine>(output_line) {
            // Progress was shown while the agent ran and is no part of the answer.
            Ok(ReplayLine::Progress { .. }) => {}
            Ok(ReplayLine::Text { text: answer_part }) => push_line(&mut decoded_output.answer_text, &answer_part),
            Ok(ReplayLine::Usage { usage }) => decoded_output.usage = usage,
            Err(_) => push_line(&mut decoded_output.answer_text, output_line),
        }
    }
    decoded_output.did_work = !agent_stdout.is_empty();
    decoded_output
}

fn push_line(answer_text: &mut String, added_line: &str) {
    answer_text.push_str(added_line);
    if !added_line.ends_with('\n') {
        answer_text.push('\n');
    }
}
