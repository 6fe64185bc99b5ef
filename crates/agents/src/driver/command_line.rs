//! Drives any command line: the prompt goes to its standard input, and its standard output is the answer.

use std::ffi::OsString;

use super::{
    launch_request::{AgentLaunch, LaunchRequest},
    process_output::{DecodedOutput, FinishedProcess},
};

pub(super) fn build_launch(argv: &[String], launch_request: LaunchRequest<'_>) -> AgentLaunch {
    let mut command_words = argv.iter().map(OsString::from);
    let program = command_words.next().unwrap_or_default();
    AgentLaunch { program, args: command_words.collect(), stdin_text: launch_request.prompt, ..AgentLaunch::default() }
}

pub(super) fn decode_output(finished_process: &FinishedProcess<'_>) -> DecodedOutput {
    // There is no other sign of work: a command that printed anything has at least begun to answer.
    let did_work = !finished_process.stdout.is_empty();
    DecodedOutput { answer_text: finished_process.stdout.to_string(), did_work, ..DecodedOutput::default() }
}
