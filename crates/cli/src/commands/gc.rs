//! `tribunal gc`: frees disk space in `.tribunal`.

use std::{
    io::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_engine::ids::RunId;
use tribunal_report::escape_line;
use tribunal_runner::housekeeping::gc::{GcOptions, GcReport, RemovedItem, collect_garbage};
use tribunal_store::Store;

use crate::{
    context::{self, CommandContext},
    messages::{
        json_documents::{self, GarbageDocument, RemovedPath},
        user_errors::UserError,
    },
    settings::{SettingSources, find_clones_root},
    terminal::wrapped_output::{wrapped_stderr, wrapped_stdout},
};

const DAY_MS: u64 = 86_400_000;
/// At most this many of the removed runs are named; a long list would bury the totals.
const MAX_NAMED_RUNS: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct GcArguments {
    /// Also remove resolved and cancelled runs, with their journals, originals and checkpoints
    #[arg(long)]
    runs: bool,
    /// With --runs: keep runs that ended in the last N days
    #[arg(long, value_name = "N", default_value_t = 30)]
    keep_days: u64,
    /// Also shrink a large journal file; runs that start meanwhile have to wait and may give up
    #[arg(long)]
    compact: bool,
    /// Show what would be removed without removing anything
    #[arg(long)]
    pub(super) dry_run: bool,
}

pub(crate) fn run(arguments: &GcArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    // A project without a store has nothing to collect, and `gc` must not create a store.
    let collected = if Store::exists(&project.home_dir()) {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        // Without `--runs` the cutoff is not used: whole runs are removed only on request.
        let cutoff_ms = now_ms.saturating_sub(arguments.keep_days.saturating_mul(DAY_MS));
        let gc_options = GcOptions {
            clones_root: find_clones_root(project.root(), &SettingSources::from_environment()),
            temporary_root: Some(std::env::temp_dir()),
            user_dirs: context::find_user_dirs(),
            now_ms,
            runs_before_ms: arguments.runs.then_some(cutoff_ms),
            compact: arguments.compact,
            dry_run: arguments.dry_run,
        };
        collect_garbage(&project, &gc_options)?
    } else {
        GcReport::default()
    };
    if context.wants_json {
        json_documents::print_document(&build_document(&collected, arguments.dry_run))?;
    } else {
        print_collected(&collected, arguments.dry_run)?;
        if arguments.runs {
            print_kept_runs(&collected, arguments.keep_days)?;
        }
    }
    Ok(0)
}

/// Says which runs stay, and why: a user who asked for runs to be removed may have expected more.
fn print_kept_runs(collected: &GcReport, keep_days: u64) -> Result<(), UserError> {
    let count_runs = |runs: &[RunId]| match runs.len() {
        1 => "1 run".to_string(),
        several => format!("{several} runs"),
    };
    if !collected.recent_runs.is_empty() {
        let recent_runs = count_runs(&collected.recent_runs);
        writeln!(
            wrapped_stderr(),
            "note: kept {recent_runs} that ended in the last {keep_days} days (see --keep-days)"
        )?;
    }
    if !collected.unfinished_runs.is_empty() {
        let unfinished_runs = count_runs(&collected.unfinished_runs);
        writeln!(
            wrapped_stderr(),
            "note: kept {unfinished_runs} that can still be resumed; to drop one: `tribunal discard RUN`"
        )?;
    }
    Ok(())
}

fn build_document(collected: &GcReport, dry_run: bool) -> GarbageDocument {
    let to_removed_rows = |items: &[RemovedItem]| -> Vec<RemovedPath> {
        items
            .iter()
            .map(|item| RemovedPath { path: item.relative_path.display().to_string(), bytes: item.bytes })
            .collect()
    };
    GarbageDocument {
        schema: "tribunal.gc/1",
        dry_run,
        bytes: collected.freed_bytes(),
        copies: to_removed_rows(&collected.workspaces),
        temporary: to_removed_rows(&collected.temporary_files),
        // Checkpoints are texts of the user's files, too; the document does not tell them apart.
        originals: to_removed_rows(&[&*collected.originals, &*collected.checkpoints].concat()),
        runs: collected.removed_runs.clone(),
        blobs: collected.journal_sweep.blobs,
        journal_bytes_before: collected.journal_sweep.file_before,
        journal_bytes_after: collected.journal_sweep.file_after,
        live: collected.live_runs.clone(),
        left: collected.leftovers.clone(),
    }
}

fn print_collected(collected: &GcReport, dry_run: bool) -> Result<(), UserError> {
    let mut output = wrapped_stdout();
    let journal = &collected.journal_sweep;
    let total_bytes = |items: &[RemovedItem]| items.iter().map(|item| item.bytes).sum::<u64>();
    let verb = if dry_run { "would remove" } else { "removed" };
    // Kinds of which nothing was removed get no line.
    let mut print_line = |count: usize, noun: CountedNoun, bytes: u64| match count {
        0 => Ok(()),
        1 => writeln!(output, "{verb} 1 {} ({})", noun.singular, format_size(bytes)),
        several => writeln!(output, "{verb} {several} {} ({})", noun.plural, format_size(bytes)),
    };
    print_line(collected.workspaces.len(), COPY_DIRS, total_bytes(&collected.workspaces))?;
    print_line(collected.temporary_files.len(), TEMPORARY_FILES, total_bytes(&collected.temporary_files))?;
    print_line(usize::try_from(journal.blobs).unwrap_or(usize::MAX), UNREFERENCED_TEXTS, journal.blob_bytes)?;
    // Originals and checkpoints are removed with their run, so their size counts towards it.
    let text_bytes = total_bytes(&collected.originals) + total_bytes(&collected.checkpoints);
    print_line(collected.removed_runs.len(), REMOVED_RUNS, journal.entry_bytes + text_bytes)?;
    if !collected.removed_runs.is_empty() {
        let run_names: Vec<&str> = collected.removed_runs.iter().map(RunId::as_str).take(MAX_NAMED_RUNS).collect();
        let unnamed_count = collected.removed_runs.len() - run_names.len();
        let unnamed_text = if unnamed_count > 0 { format!(" and {unnamed_count} more") } else { String::new() };
        writeln!(output, "  {}{unnamed_text}", escape_line(&run_names.join(" ")))?;
    }
    // A dry run cannot say how small the journal's file will be: the space is given back by the removal itself.
    match (collected.freed_bytes(), dry_run) {
        (0, _) => writeln!(output, "nothing to remove")?,
        (bytes, true) => writeln!(output, "{} in total; nothing was removed", format_size(bytes))?,
        (bytes, false) => {
            writeln!(
                output,
                "{} in total; the journal is now {}",
                format_size(bytes),
                format_size(journal.file_after)
            )?;
        }
    }
    for leftover in &collected.leftovers {
        writeln!(wrapped_stderr(), "warning: could not remove {}", escape_line(leftover))?;
    }
    // The file cannot be truncated under a run that writes to it.
    if let (Some(live_run), false) = (collected.live_runs.first(), dry_run) {
        let live_run = escape_line(live_run.as_str());
        writeln!(
            wrapped_stderr(),
            "note: run {live_run} is in progress; to shrink the journal file, run `tribunal gc` again when it has ended"
        )?;
    }
    // The user has to ask for compaction, because it locks the journal for a while.
    if let Some(empty_bytes) = collected.deferred_bytes {
        writeln!(
            wrapped_stderr(),
            "note: {} of the journal file are unused; reclaim them with `tribunal gc --compact` (takes a while, and no \
             run can start meanwhile)",
            format_size(empty_bytes)
        )?;
    }
    Ok(())
}

/// The name of what is removed, in singular and plural.
#[derive(Clone, Copy)]
struct CountedNoun {
    singular: &'static str,
    plural: &'static str,
}

const COPY_DIRS: CountedNoun = CountedNoun { singular: "workspace directory", plural: "workspace directories" };
const TEMPORARY_FILES: CountedNoun = CountedNoun { singular: "temporary file", plural: "temporary files" };
const UNREFERENCED_TEXTS: CountedNoun = CountedNoun { singular: "unreferenced text", plural: "unreferenced texts" };
const REMOVED_RUNS: CountedNoun = CountedNoun { singular: "run", plural: "runs" };

/// Formats a size: `512 bytes`, `4.0 KB`, `1.2 MB`.
fn format_size(bytes: u64) -> String {
    let in_units = |unit_bytes: u64| bytes as f64 / unit_bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} KB", in_units(1_000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", in_units(1_000_000)),
        _ => format!("{:.1} GB", in_units(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        assert_eq!(
            [0, 999, 4_000, 1_234_567, 5_000_000_000].map(format_size),
            ["0 bytes", "999 bytes", "4.0 KB", "1.2 MB", "5.0 GB"]
        );
    }
}
