//! `tribunal inspect transcript RUN KEY`: shows what an agent printed, what was read from it, and what went wrong.

use std::io::{Write, stdout};

use tribunal_core::{
    effect::{AskOutcome, FailedTask, Reply},
    ids::RunId,
};
use tribunal_report::{
    calls::{Call, calls},
    clean_block, escaped,
};
use tribunal_store::{Store, StoreError};

use super::{AnswerRead, show};
use crate::{
    commands::log::sent::{read, row},
    complaint::Complaint,
    context::Context,
    documents::{self, Transcript, Transcripts},
    settings::nearest,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The key of the call, or a part of it
    #[arg(required_unless_present = "named")]
    key: Option<String>,
    /// The same, by name
    #[arg(long = "key", value_name = "KEY", conflicts_with = "key")]
    named: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    // The key can be given by position or as `--key`; clap allows only one of them.
    let said = arguments.key.as_ref().or(arguments.named.as_ref()).map_or("", String::as_str);
    let project = context.project();
    let (store, run) = context.run_meant(&project, Some(&arguments.run))?;
    let entries = store.entries(&run, 0)?;
    let calls = meant(calls(&entries), said, &run)?;
    if context.json {
        let calls: Result<Vec<Transcript>, StoreError> =
            calls.iter().map(|call| transcript(call, &store)).collect();
        documents::print(&Transcripts { schema: "tribunal.transcript/1", run, calls: calls? })?;
        return Ok(0);
    }
    let mut out = stdout().lock();
    for call in &calls {
        write_call(&mut out, call, &store)?;
    }
    Ok(0)
}

/// Finds the calls with exactly this key, of which there may be several in later stretches, else those whose key
/// contains it.
fn meant<'a>(calls: Vec<Call<'a>>, said: &str, run: &RunId) -> Result<Vec<Call<'a>>, Complaint> {
    let with = |fits: &dyn Fn(&str) -> bool| -> Vec<Call<'a>> {
        calls.iter().filter(|call| fits(call.key.as_str())).cloned().collect()
    };
    let exact = with(&|key| key == said);
    // Parts are tried only if nothing matches exactly, so that a full key never selects its own extensions.
    let found = if exact.is_empty() { with(&|key| key.contains(said)) } else { exact };
    if !found.is_empty() {
        return Ok(found);
    }
    let known: Vec<&str> = calls.iter().map(|call| call.key.as_str()).collect();
    let mut complaint = Complaint::usage(format!("run {run} has no call of an agent with the key `{said}`"));
    if let Some(near) = nearest(said, &known) {
        complaint = complaint.todo(format!("did you mean `{near}`?"));
    }
    Err(complaint.todo(format!("see all of them: tribunal log {run} --prompts")))
}

fn transcript(call: &Call<'_>, store: &Store) -> Result<Transcript, StoreError> {
    let call_row = row(call, true, true, store)?;
    Ok(match call.reply {
        Some(Reply::Ask(AskOutcome::Answered(reply))) => Transcript {
            call: call_row,
            fault: None,
            read: Some(reply.content.clone()),
            remarks: reply.remarks.clone(),
            patch: reply.patch.clone(),
        },
        Some(Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. }))) => Transcript {
            call: call_row,
            fault: Some(fault.clone()),
            read: None,
            remarks: Vec::new(),
            patch: None,
        },
        // A call without a reply is under way, or its run was interrupted.
        _ => Transcript { call: call_row, fault: None, read: None, remarks: Vec::new(), patch: None },
    })
}

fn write_call(out: &mut impl Write, call: &Call<'_>, store: &Store) -> Result<(), Complaint> {
    let usage = call.usage();
    // Some agents report no usage; it is then estimated from the sizes of prompt and output.
    let about = if usage.estimated { "about " } else { "" };
    let cost = usage.cost.map(|cost| format!(", {cost} in cost")).unwrap_or_default();
    let task = call.task;
    writeln!(
        out,
        "{}: {} ({}) as {} · after {} ms",
        escaped(call.key.as_str()),
        escaped(task.agent.as_str()),
        escaped(&call.driver),
        task.brief.role,
        call.elapsed_ms
    )?;
    writeln!(
        out,
        "used {about}{} tokens in, {} out, {} from the cache{cost}",
        usage.input_tokens, usage.output_tokens, usage.cached_tokens
    )?;
    match call.reply {
        None => writeln!(out, "not answered yet")?,
        Some(Reply::Ask(AskOutcome::Answered(reply))) => {
            // The parser's view comes first and the raw output last: the former is what the run acted upon.
            write!(out, "read as ")?;
            let answer =
                AnswerRead { content: &reply.content, minutes: &reply.minutes, remarks: &reply.remarks };
            show(out, &answer)?;
            if let Some(patch) = &reply.patch {
                writeln!(
                    out,
                    "changed {}:\n{}",
                    escaped(&patch.files.join(", ")),
                    clean_block(read(store, &patch.diff)?.trim_end())
                )?;
            }
        }
        Some(Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. }))) => {
            writeln!(out, "failed: {}", clean_block(&fault.to_string()))?
        }
        Some(_) => {}
    }
    match call.output() {
        Some(output) => writeln!(out, "printed:\n{}", clean_block(read(store, output)?.trim_end()))?,
        None => writeln!(out, "printed nothing that was kept")?,
    }
    Ok(())
}
