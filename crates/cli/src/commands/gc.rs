//! `tribunal gc`: frees disk space in `.tribunal`.

use std::{
    io::{Write, stderr, stdout},
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_core::ids::RunId;
use tribunal_report::escaped;
use tribunal_runner::gc::{Collected, Item, Wish, collect};
use tribunal_store::Store;

use crate::{
    complaint::Complaint,
    context::Context,
    documents::{self, Garbage, Removed},
};

const DAY_MS: u64 = 86_400_000;
/// At most this many of the removed runs are named; a long list would bury the totals.
const NAMED: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Also remove whole runs that came to a good end, with their journals, originals and checkpoints
    #[arg(long)]
    runs: bool,
    /// With --runs: keep those that ended in the last so many days
    #[arg(long, value_name = "N", default_value_t = 30)]
    keep_days: u64,
    /// Also make a long journal's file shorter; runs that start meanwhile wait, and may give up
    #[arg(long)]
    compact: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    // A project without a store has nothing to collect, and `gc` must not create a store.
    let collected = if Store::exists(&project.home()) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        // Without `--runs` the cutoff is not used: whole runs are removed only on request.
        let before = now.saturating_sub(arguments.keep_days.saturating_mul(DAY_MS));
        let wish = Wish {
            runs_before_ms: arguments.runs.then_some(before),
            compact: arguments.compact,
            dry: arguments.dry_run,
        };
        collect(&project, &wish)?
    } else {
        Collected::default()
    };
    if context.json {
        documents::print(&document(&collected, arguments.dry_run))?;
    } else {
        write_out(&collected, arguments.dry_run)?;
    }
    Ok(0)
}

fn document(collected: &Collected, dry_run: bool) -> Garbage {
    let removed = |items: &[Item]| -> Vec<Removed> {
        items
            .iter()
            .map(|item| Removed { path: item.path.display().to_string(), bytes: item.bytes })
            .collect()
    };
    Garbage {
        schema: "tribunal.gc/1",
        dry_run,
        bytes: collected.bytes(),
        copies: removed(&collected.copies),
        temporary: removed(&collected.temporary),
        // Checkpoints are texts of the user's files, too; the document does not tell them apart.
        originals: removed(&[&*collected.originals, &*collected.checkpoints].concat()),
        runs: collected.runs.clone(),
        blobs: collected.journal.blobs,
        journal_bytes_before: collected.journal.file_before,
        journal_bytes_after: collected.journal.file_after,
        live: collected.live.clone(),
        left: collected.left.clone(),
    }
}

fn write_out(collected: &Collected, dry_run: bool) -> Result<(), Complaint> {
    let mut out = stdout().lock();
    let journal = &collected.journal;
    let sum = |items: &[Item]| items.iter().map(|item| item.bytes).sum::<u64>();
    let verb = if dry_run { "would remove" } else { "removed" };
    // Kinds of which nothing was removed get no line.
    let mut line = |count: usize, what: Noun, bytes: u64| match count {
        0 => Ok(()),
        1 => writeln!(out, "{verb} 1 {} ({})", what.one, size(bytes)),
        many => writeln!(out, "{verb} {many} {} ({})", what.many, size(bytes)),
    };
    line(collected.copies.len(), COPIES, sum(&collected.copies))?;
    line(collected.temporary.len(), TEMPORARY, sum(&collected.temporary))?;
    line(usize::try_from(journal.blobs).unwrap_or(usize::MAX), TEXTS, journal.blob_bytes)?;
    // Originals and checkpoints are removed with their run, so their size counts towards it.
    let texts = sum(&collected.originals) + sum(&collected.checkpoints);
    line(collected.runs.len(), RUNS, journal.entry_bytes + texts)?;
    if !collected.runs.is_empty() {
        let names: Vec<&str> = collected.runs.iter().map(RunId::as_str).take(NAMED).collect();
        let more = collected.runs.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        writeln!(out, "  {}{more}", escaped(&names.join(" ")))?;
    }
    // A dry run cannot say how small the journal's file will be: the space is given back by the removal itself.
    match (collected.bytes(), dry_run) {
        (0, _) => writeln!(out, "nothing to remove")?,
        (bytes, true) => writeln!(out, "{} in all; nothing was removed", size(bytes))?,
        (bytes, false) => {
            writeln!(out, "{} in all; the journal has {} now", size(bytes), size(journal.file_after))?;
        }
    }
    for left in &collected.left {
        writeln!(stderr(), "[W] could not be removed: {}", escaped(left))?;
    }
    // The file cannot be truncated under a run that writes to it.
    if let (Some(run), false) = (collected.live.first(), dry_run) {
        let run = escaped(run.as_str());
        writeln!(
            stderr(),
            "[i] run {run} goes on: the journal's file gets smaller once it has ended: tribunal gc"
        )?;
    }
    // The user has to ask for compaction, because it locks the journal for a while.
    if let Some(empty) = collected.put_off {
        writeln!(
            stderr(),
            "[i] {} of the journal's file are empty; giving them back takes a while, in which no run can start: \
             tribunal gc --compact",
            size(empty)
        )?;
    }
    Ok(())
}

/// The name of what is removed, in singular and plural.
#[derive(Clone, Copy)]
struct Noun {
    one: &'static str,
    many: &'static str,
}

const COPIES: Noun = Noun { one: "folder of copies", many: "folders of copies" };
const TEMPORARY: Noun = Noun { one: "temporary file", many: "temporary files" };
const TEXTS: Noun = Noun { one: "text that nothing refers to", many: "texts that nothing refers to" };
const RUNS: Noun = Noun { one: "run", many: "runs" };

/// Formats a size: `512 bytes`, `4.0 KB`, `1.2 MB`.
fn size(bytes: u64) -> String {
    let scaled = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} KB", scaled(1_000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", scaled(1_000_000)),
        _ => format!("{:.1} GB", scaled(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        assert_eq!(
            [0, 999, 4_000, 1_234_567, 5_000_000_000].map(size),
            ["0 bytes", "999 bytes", "4.0 KB", "1.2 MB", "5.0 GB"]
        );
    }
}
