//! `tribunal log --prompts` and `--sent`: lists which agent was sent which text, what it answered, and which vendor's
//! model got it.

use std::{
    collections::BTreeSet,
    io::{Write, stdout},
};

use tribunal_engine::ids::{Hash, RunId};
use tribunal_report::{
    EntryFilter, LogQuery,
    calls::{AgentCall, collect_calls, group_by_vendor},
    clean_block, escape_line, tables,
};
use tribunal_store::{Store, StoreError};

use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, CallRow, CallsDocument, StoredText, VendorRow},
        user_errors::UserError,
    },
};

pub(super) struct AgentCallQuery {
    pub run_id: RunId,
    /// Whether answers are listed, too, and not only what was sent.
    pub with_answers: bool,
    pub entry_filter: LogQuery,
}

pub(super) fn run(query: &AgentCallQuery, store: &Store, context: &CommandContext) -> Result<u8, UserError> {
    let journal_entries = store.read_entries(&query.run_id, 0)?;
    let mut filter = EntryFilter::new(query.entry_filter.clone());
    // The filter keeps state from entry to entry, so it has to see all of them in order.
    let wanted_seqs: BTreeSet<u64> = journal_entries
        .iter()
        .filter(|journal_entry| filter.matches_entry(journal_entry))
        .map(|journal_entry| journal_entry.seq)
        .collect();
    let mut agent_calls = collect_calls(&journal_entries);
    agent_calls.retain(|agent_call| {
        // A call is listed if either its request or its reply passes the filter.
        wanted_seqs.contains(&agent_call.asked_seq)
            || agent_call.answered_seq.is_some_and(|seq| wanted_seqs.contains(&seq))
    });
    // A key selects few calls, so their texts are printed in full.
    let with_texts = query.with_answers && query.entry_filter.key_part.is_some();
    let blob_size = |hash: &Hash| store.blob_size(hash).ok().flatten();
    let mut output = stdout().lock();
    if context.wants_json {
        let rows: Result<Vec<CallRow>, StoreError> = agent_calls
            .iter()
            .map(|agent_call| build_call_row(agent_call, query.with_answers, with_texts, store))
            .collect();
        let schema = if query.with_answers { "tribunal.prompts/1" } else { "tribunal.sent/1" };
        let vendors = if query.with_answers { Vec::new() } else { group_by_vendor(&agent_calls, &blob_size) };
        // Totals by vendor answer where data went, which is the question behind `--sent`.
        let vendors = vendors.into_iter().map(|(vendor_usage, _)| VendorRow {
            vendor: vendor_usage.vendor_name,
            endpoint: vendor_usage.endpoint,
            prompts: vendor_usage.prompt_count,
            bytes: vendor_usage.prompt_bytes,
            usage: vendor_usage.usage,
        });
        let vendors = vendors.collect();
        json_documents::print_document(&CallsDocument { schema, run: query.run_id.clone(), calls: rows?, vendors })?;
    } else if agent_calls.is_empty() {
        writeln!(output, "no matching agent calls in run {}", escape_line(query.run_id.as_str()))?;
    } else if with_texts {
        for agent_call in &agent_calls {
            write_texts(&mut output, agent_call, store)?;
        }
    } else if query.with_answers {
        write!(output, "{}", tables::render_calls(&agent_calls, &blob_size, &context.answer_screen))?;
    } else {
        write!(output, "{}", tables::render_sent_texts(&agent_calls, &blob_size, &context.answer_screen))?;
    }
    Ok(0)
}

/// Builds a call's row for the JSON output; with `with_answers` also the reply, with `with_texts` the texts
/// themselves.
pub(in crate::commands) fn build_call_row(
    agent_call: &AgentCall<'_>,
    with_answers: bool,
    with_texts: bool,
    store: &Store,
) -> Result<CallRow, StoreError> {
    let load_text = |blob_hash: Option<&Hash>| -> Result<Option<StoredText>, StoreError> {
        let Some(blob_hash) = blob_hash else { return Ok(None) };
        let bytes = store.blob_size(blob_hash)?;
        // Of a text that the store does not have only the hash is shown.
        let text = if with_texts && bytes.is_some() { Some(read_blob_text(store, blob_hash)?) } else { None };
        Ok(Some(StoredText { hash: blob_hash.clone(), bytes, text }))
    };
    Ok(CallRow {
        key: agent_call.effect_key.clone(),
        segment: agent_call.segment,
        agent: agent_call.agent_task.agent.clone(),
        job: agent_call.agent_task.job,
        role: agent_call.agent_task.brief.as_review().map(|review_brief| review_brief.role),
        driver: agent_call.driver_name.clone(),
        provider: agent_call.provider_name.clone(),
        model: agent_call.model_name.clone(),
        prompt: load_text(agent_call.prompt_hash())?,
        answer: load_text(agent_call.output_hash().filter(|_| with_answers))?,
        elapsed_ms: agent_call.elapsed_ms,
        usage: agent_call.usage(),
    })
}

fn write_texts(writer: &mut impl Write, agent_call: &AgentCall<'_>, store: &Store) -> Result<(), UserError> {
    let (call_key, agent_name) =
        (escape_line(agent_call.effect_key.as_str()), escape_line(agent_call.agent_task.agent.as_str()));
    for (heading, blob_hash) in [
        (format!("sent to {agent_name}"), agent_call.prompt_hash()),
        (format!("printed by {agent_name}"), agent_call.output_hash()),
    ] {
        match blob_hash {
            Some(blob_hash) => {
                let blob_text = read_blob_text(store, blob_hash)?;
                writeln!(
                    writer,
                    "=== {call_key} · {heading} · {} bytes · {}\n{}",
                    blob_text.len(),
                    blob_hash.short_hex(),
                    clean_block(blob_text.trim_end())
                )?;
            }
            None => writeln!(writer, "=== {call_key} · {heading}: nothing")?,
        }
    }
    Ok(())
}

pub(in crate::commands) fn read_blob_text(store: &Store, blob_hash: &Hash) -> Result<String, StoreError> {
    store.read_blob(blob_hash).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
