//! `tribunal log --prompts` and `--sent`: lists which agent was sent which text, what it answered, and which vendor's
//! model got it.

use std::{
    collections::BTreeSet,
    io::{Write, stdout},
};

use tribunal_core::ids::{Hash, RunId};
use tribunal_report::{
    Filter, Wanted,
    calls::{Call, by_vendor, calls},
    clean_block, escaped, tables,
};
use tribunal_store::{Store, StoreError};

use crate::{
    complaint::Complaint,
    context::Context,
    documents::{self, CallRow, Calls, Text, VendorRow},
};

pub(super) struct Wish {
    pub run: RunId,
    /// Whether answers are listed, too, and not only what was sent.
    pub answers: bool,
    pub wanted: Wanted,
}

pub(super) fn run(wish: &Wish, store: &Store, context: &Context) -> Result<u8, Complaint> {
    let entries = store.entries(&wish.run, 0)?;
    let mut filter = Filter::new(wish.wanted.clone());
    // The filter keeps state from entry to entry, so it has to see all of them in order.
    let wanted: BTreeSet<u64> =
        entries.iter().filter(|entry| filter.wants(entry)).map(|entry| entry.seq).collect();
    let mut calls = calls(&entries);
    calls.retain(|call| {
        // A call is listed if either its request or its reply passes the filter.
        wanted.contains(&call.asked) || call.answered.is_some_and(|seq| wanted.contains(&seq))
    });
    // A key selects few calls, so their texts are printed in full.
    let texts = wish.answers && wish.wanted.key.is_some();
    let bytes = |hash: &Hash| store.blob_bytes(hash).ok().flatten();
    let mut out = stdout().lock();
    if context.json {
        let rows: Result<Vec<CallRow>, StoreError> =
            calls.iter().map(|call| row(call, wish.answers, texts, store)).collect();
        let schema = if wish.answers { "tribunal.prompts/1" } else { "tribunal.sent/1" };
        let vendors = if wish.answers { Vec::new() } else { by_vendor(&calls, &bytes) };
        // Totals by vendor answer where data went, which is the question behind `--sent`.
        let vendors = vendors.into_iter().map(|(sent, _)| VendorRow {
            vendor: sent.vendor,
            prompts: sent.prompts,
            bytes: sent.bytes,
            usage: sent.usage,
        });
        // The rows are not needed for `--prompts`, where they stay empty.
        let vendors = vendors.collect();
        documents::print(&Calls { schema, run: wish.run.clone(), calls: rows?, vendors })?;
    } else if calls.is_empty() {
        writeln!(out, "run {} has no such calls of agents", escaped(wish.run.as_str()))?;
    } else if texts {
        for call in &calls {
            write_texts(&mut out, call, store)?;
        }
    } else if wish.answers {
        write!(out, "{}", tables::calls(&calls, &bytes))?;
    } else {
        write!(out, "{}", tables::sent(&calls, &bytes, &context.answers))?;
    }
    Ok(0)
}

/// Builds a call's row for the JSON output; with `with_answers` also the reply, with `with_texts` the texts
/// themselves.
pub(in crate::commands) fn row(
    call: &Call<'_>,
    answers: bool,
    texts: bool,
    store: &Store,
) -> Result<CallRow, StoreError> {
    let text = |hash: Option<&Hash>| -> Result<Option<Text>, StoreError> {
        let Some(hash) = hash else { return Ok(None) };
        let bytes = store.blob_bytes(hash)?;
        // A text may have been removed by `gc`; then only its hash is known.
        let text = if texts && bytes.is_some() { Some(read(store, hash)?) } else { None };
        Ok(Some(Text { hash: hash.clone(), bytes, text }))
    };
    Ok(CallRow {
        key: call.key.clone(),
        stretch: call.stretch,
        agent: call.task.agent.clone(),
        role: call.task.brief.role,
        driver: call.driver.clone(),
        provider: call.provider.clone(),
        model: call.model.clone(),
        prompt: text(call.prompt())?,
        answer: text(call.output().filter(|_| answers))?,
        elapsed_ms: call.elapsed_ms,
        usage: call.usage(),
    })
}

fn write_texts(out: &mut impl Write, call: &Call<'_>, store: &Store) -> Result<(), Complaint> {
    let (key, agent) = (escaped(call.key.as_str()), escaped(call.task.agent.as_str()));
    for (what, hash) in
        [(format!("sent to {agent}"), call.prompt()), (format!("printed by {agent}"), call.output())]
    {
        match hash {
            Some(hash) => {
                let text = read(store, hash)?;
                writeln!(
                    out,
                    "=== {key} · {what} · {} bytes · {}\n{}",
                    text.len(),
                    hash.short(),
                    clean_block(text.trim_end())
                )?;
            }
            None => writeln!(out, "=== {key} · {what}: nothing")?,
        }
    }
    Ok(())
}

pub(in crate::commands) fn read(store: &Store, hash: &Hash) -> Result<String, StoreError> {
    store.blob(hash).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
