//! `tribunal diff [RUN] [FINDING]`: shows what a run changed, or what repaired one finding.

use std::io::{self, Write, stderr, stdout};

use tribunal_core::ids::{FindingId, RunId};
use tribunal_report::{Screen, Style, clean_block, escaped};
use tribunal_runner::{
    landings::{Diff, FileDiff, Landing, Landings, What},
    undo::listed,
};
use tribunal_store::Store;

use crate::{
    complaint::Complaint,
    context::Context,
    documents::{self, ChangedFile, Changes, Landed},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run, or RUN.F3; else the last run
    run: Option<String>,
    /// Only what repaired this finding
    finding: Option<String>,
    /// Only how much: lines, and which change repaired what
    #[arg(long)]
    stat: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let (said, mut finding) = arguments.run.as_deref().map_or((None, None), split);
    // A finding in an argument of its own takes precedence over one that is part of `RUN.F3`.
    if let Some(named) = &arguments.finding {
        let known = FindingId::parse(named);
        finding = Some(known.ok_or_else(|| Complaint::usage(format!("`{named}` is no finding such as F3")))?);
    }
    let (store, run) = context.run_meant(&project, said)?;
    let landings = Landings::read(&project, &store, &run)?;
    let wanted = landings.of(finding)?;
    let diff = landings.diff(finding)?;
    if context.json {
        let diff = diff.unwrap_or_default();
        // `path` is there for consumers that expect a single file; a change over several files has no such path.
        let only = if let [file] = diff.files.as_slice() { Some(file.path.as_str()) } else { None };
        documents::print(&Changes {
            schema: "tribunal.diff/1",
            finding,
            path: landings.path().or(only).map(String::from),
            landings: wanted.into_iter().map(landed).collect(),
            lines_added: diff.added(),
            lines_removed: diff.removed(),
            diff: diff.text(),
            files: diff.files.iter().map(changed).collect(),
            run,
        })?;
        return Ok(0);
    }
    // No diff is not an error: the run may have landed nothing, or everything was undone.
    let Some(diff) = diff else {
        writeln!(stderr(), "[i] {}", escaped(&nothing(&run, finding, &wanted)))?;
        return Ok(0);
    };
    let mut out = stdout().lock();
    if arguments.stat {
        write_stat(&mut out, &diff, &wanted)?;
    } else {
        write_diff(&mut out, &context.answers, &diff.text())?;
    }
    // A text between two landings can include edits of other programs, which cannot be told apart on the same lines.
    if diff.mixed {
        writeln!(
            stderr(),
            "[i] somebody else changed the same lines between two changes; that is shown, too"
        )?;
    }
    Ok(0)
}

/// Writes one line per file, then one line per landed change.
fn write_stat(out: &mut dyn Write, diff: &Diff, landings: &[&Landing]) -> io::Result<()> {
    for file in &diff.files {
        let (path, changes) = (escaped(&file.path), counted(file.landings, "change"));
        let what = match file.what {
            What::Changed => "",
            What::Made => " (made)",
            What::Deleted => " (deleted)",
        };
        let added = counted(file.added as usize, "line");
        writeln!(out, "{path}{what}: {added} added, {} removed, by {changes}", file.removed)?;
    }
    for landing in landings {
        let undone = if landing.undone { " (taken back)" } else { "" };
        // A landing whose claims were not borne out has repaired nothing.
        let findings = if landing.findings.is_empty() { "nothing".into() } else { listed(&landing.findings) };
        writeln!(out, "  {} repaired {findings}{undone}", escaped(landing.by().as_str()))?;
    }
    Ok(())
}

/// Says why there is nothing to show or to undo.
pub(super) fn nothing(run: &RunId, finding: Option<FindingId>, landings: &[&Landing]) -> String {
    match (finding, landings.is_empty()) {
        (None, true) => format!("run {run} has landed nothing"),
        (Some(finding), true) => format!("run {run} has landed nothing that repaired {finding}"),
        (None, false) => format!("all that run {run} had landed was taken back"),
        (Some(finding), false) => format!("what repaired {finding} was taken back"),
    }
}

/// Splits `RUN.F3` into run and finding; a bare `F3` is a finding without a run.
pub(super) fn split(said: &str) -> (Option<&str>, Option<FindingId>) {
    if let Some(finding) = FindingId::parse(said) {
        return (None, Some(finding));
    }
    // Only the last part is tried as a finding; any other text is left to the lookup of runs.
    match said.rsplit_once('.').map(|(run, finding)| (run, FindingId::parse(finding))) {
        Some((run, Some(finding))) => (Some(run), Some(finding)),
        _ => (Some(said), None),
    }
}

/// Formats a count with its noun: `1 change`, `2 changes`.
pub(super) fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

pub(super) fn landed(landing: &Landing) -> Landed {
    Landed { by: landing.by().clone(), findings: landing.findings.clone(), undone: landing.undone }
}

pub(super) fn changed(file: &FileDiff) -> ChangedFile {
    ChangedFile {
        path: file.path.clone(),
        what: match file.what {
            What::Changed => "changed",
            What::Made => "made",
            What::Deleted => "deleted",
        },
        lines_added: file.added,
        lines_removed: file.removed,
        diff: file.text.clone(),
        parked: None,
    }
}

/// Writes a diff byte for byte into a pipe, where `patch` may read it. On a terminal it is coloured, and control
/// characters are made harmless.
pub(super) fn write_diff(out: &mut dyn Write, screen: &Screen, text: &str) -> io::Result<()> {
    if !screen.colour && screen.width.is_none() {
        return out.write_all(text.as_bytes());
    }
    let mut in_hunk = false;
    let mut lines = text.split('\n').filter(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        // A `--- ` line may also be a removed line of the hunk; only with `+++ ` behind it does it start the next
        // file.
        let is_header = line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ "));
        in_hunk &= !is_header && !line.starts_with("diff --git ");
        in_hunk |= line.starts_with("@@");
        let style = match line.chars().next() {
            _ if !in_hunk => Style::Bold,
            Some('@') => Style::Dim,
            Some('+') => Style::Good,
            Some('-') => Style::Bad,
            _ => Style::Plain,
        };
        writeln!(out, "{}", screen.paint(style, &clean_block(line.trim_end_matches('\r'))))?;
    }
    Ok(())
}

/// Finds the run of a finding that was named without one: the only run that repaired such a finding and has not
/// undone it.
pub(super) fn run_of(
    store: &Store,
    project: &tribunal_runner::Project,
    finding: FindingId,
) -> Result<RunId, Complaint> {
    let mut fitting = Vec::new();
    for run in store.runs()? {
        let landings = Landings::read(project, store, &run)?;
        // Every run counts its findings from F1, so a bare id is often ambiguous.
        if landings.all.iter().any(|landing| !landing.undone && landing.findings.contains(&finding)) {
            fitting.push(run);
        }
    }
    match fitting.as_slice() {
        [run] => Ok(run.clone()),
        [] => Err(Complaint::usage(format!("no run has repaired a finding {finding}")).todo("tribunal runs")),
        [first, ..] => {
            let names: Vec<String> = fitting.iter().map(|run| format!("{run}.{finding}")).collect();
            Err(Complaint::usage(format!("`{finding}` fits several findings: {}", names.join(", ")))
                .todo(format!("name the run too: tribunal undo {first}.{finding}")))
        }
    }
}
