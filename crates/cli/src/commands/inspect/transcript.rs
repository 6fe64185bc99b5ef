//! `tribunal inspect transcript RUN KEY`: shows what an agent printed, what was read from it, and what went wrong.

use std::io::Write;

use tribunal_engine::ids::RunId;
use tribunal_report::{
    calls::{AgentCall, collect_calls},
    clean_block, escape_line,
};
use tribunal_store::{Store, StoreError};
use tribunal_workflows::runs::effect::{AskOutcome, FailedTask, Reply};

use super::{InspectedAnswer, print_answer};
use crate::{
    commands::log::agent_calls::{build_call_row, read_blob_text},
    context::CommandContext,
    messages::{
        json_documents::{self, CallTranscript, TranscriptsDocument},
        user_errors::UserError,
    },
    settings::nearest_name,
    terminal::wrapped_output::wrapped_stdout,
};

#[derive(Debug, clap::Args)]
pub(crate) struct InspectTranscriptArguments {
    /// Run to inspect
    run: String,
    /// Key of the agent call, or a part of it
    #[arg(required_unless_present = "named")]
    key: Option<String>,
    /// Same as the argument KEY
    #[arg(long = "key", value_name = "KEY", conflicts_with = "key")]
    named: Option<String>,
}

pub(crate) fn run(arguments: &InspectTranscriptArguments, context: &CommandContext) -> Result<u8, UserError> {
    // The key can be given by position or as `--key`; clap allows only one of them.
    let typed_key = arguments.key.as_ref().or(arguments.named.as_ref()).map_or("", String::as_str);
    let project = context.current_project();
    let (store, run_id) = context.find_requested_run(&project, Some(&arguments.run))?;
    let journal_entries = store.read_entries(&run_id, 0)?;
    let agent_calls = find_calls(collect_calls(&journal_entries), typed_key, &run_id)?;
    if context.wants_json {
        let transcripts: Result<Vec<CallTranscript>, StoreError> =
            agent_calls.iter().map(|agent_call| build_transcript(agent_call, &store)).collect();
        json_documents::print_document(&TranscriptsDocument {
            schema: "tribunal.transcript/1",
            run: run_id,
            calls: transcripts?,
        })?;
        return Ok(0);
    }
    let mut output = wrapped_stdout();
    for agent_call in &agent_calls {
        write_call(&mut output, agent_call, &store)?;
    }
    Ok(0)
}

/// Finds the calls with exactly this key, of which there may be several in later segments, else those whose key
/// contains it.
fn find_calls<'a>(
    all_calls: Vec<AgentCall<'a>>,
    typed_key: &str,
    run_id: &RunId,
) -> Result<Vec<AgentCall<'a>>, UserError> {
    let calls_where = |key_matches: &dyn Fn(&str) -> bool| -> Vec<AgentCall<'a>> {
        all_calls.iter().filter(|agent_call| key_matches(agent_call.effect_key.as_str())).cloned().collect()
    };
    let exact_matches = calls_where(&|call_key| call_key == typed_key);
    // Parts are tried only if nothing matches exactly, so that a full key never selects its own extensions.
    let matching_calls =
        if exact_matches.is_empty() { calls_where(&|call_key| call_key.contains(typed_key)) } else { exact_matches };
    if !matching_calls.is_empty() {
        return Ok(matching_calls);
    }
    let known_keys: Vec<&str> = all_calls.iter().map(|agent_call| agent_call.effect_key.as_str()).collect();
    let mut user_error = UserError::usage(format!("no agent call in run {run_id} has the key `{typed_key}`"));
    if let Some(suggestion) = nearest_name(typed_key, &known_keys) {
        user_error = user_error.with_step(format!("did you mean `{suggestion}`?"));
    }
    Err(user_error.with_step(format!("list all calls: `tribunal log {run_id} --prompts`")))
}

fn build_transcript(agent_call: &AgentCall<'_>, store: &Store) -> Result<CallTranscript, StoreError> {
    let call_row = build_call_row(agent_call, true, true, store)?;
    Ok(match agent_call.reply {
        Some(Reply::Ask(AskOutcome::Answered(reply))) => CallTranscript {
            call: call_row,
            fault: None,
            read: Some(reply.content.clone()),
            remarks: reply.remarks.clone(),
            patch: reply.patch.clone(),
        },
        Some(Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. }))) => {
            CallTranscript { call: call_row, fault: Some(fault.clone()), read: None, remarks: Vec::new(), patch: None }
        }
        // A call without a reply is under way, or its run was interrupted.
        _ => CallTranscript { call: call_row, fault: None, read: None, remarks: Vec::new(), patch: None },
    })
}

fn write_call(writer: &mut impl Write, agent_call: &AgentCall<'_>, store: &Store) -> Result<(), UserError> {
    let usage = agent_call.usage();
    // Some agents report no usage; it is then estimated from the sizes of prompt and output.
    let estimate_prefix = if usage.estimated { "about " } else { "" };
    let cost_text = usage.cost.map(|cost| format!(", ${cost}")).unwrap_or_default();
    let agent_task = agent_call.agent_task;
    writeln!(
        writer,
        "{}: {} ({}) as {} · {} ms",
        escape_line(agent_call.effect_key.as_str()),
        escape_line(agent_task.agent.as_str()),
        escape_line(&agent_call.driver_name),
        agent_task.worker_name(),
        agent_call.elapsed_ms
    )?;
    writeln!(
        writer,
        "used {estimate_prefix}{} tokens in, {} out, {} cached{cost_text}",
        usage.input_tokens, usage.output_tokens, usage.cached_tokens
    )?;
    match agent_call.reply {
        None => writeln!(writer, "not answered yet")?,
        Some(Reply::Ask(AskOutcome::Answered(agent_reply))) => {
            // The parser's view comes first and the raw output last: the former is what the run acted upon.
            write!(writer, "parsed as ")?;
            let parsed_answer = InspectedAnswer {
                content: &agent_reply.content,
                minutes: &agent_reply.minutes,
                remarks: &agent_reply.remarks,
            };
            print_answer(writer, &parsed_answer)?;
            if let Some(patch) = &agent_reply.patch {
                writeln!(
                    writer,
                    "changed {}:\n{}",
                    escape_line(&patch.files.join(", ")),
                    clean_block(read_blob_text(store, &patch.diff)?.trim_end())
                )?;
            }
        }
        Some(Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. }))) => {
            writeln!(writer, "failed: {}", clean_block(&fault.to_string()))?
        }
        Some(_) => {}
    }
    match agent_call.output_hash() {
        Some(output) => writeln!(writer, "printed:\n{}", clean_block(read_blob_text(store, output)?.trim_end()))?,
        None => writeln!(writer, "no output was recorded")?,
    }
    Ok(())
}
