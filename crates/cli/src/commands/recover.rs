//! `tribunal recover`: shows what is left after damage to the journal, exports it, and rebuilds the journal.

use std::{io::Write, path::PathBuf};

use tribunal_engine::ids::RunId;
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    housekeeping::recovery::{KeptCopies, RecoveryReport, export_copies, rebuild_runs, survey_project},
};
use tribunal_store::{InspectedRun, JournalInspection, RebuildOutcome};

use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, RecoveredRun, RecoveryDocument},
        user_errors::{EXIT_ENVIRONMENT, UserError},
    },
    settings::{SettingSources, resolve_reviews_dir},
    terminal::wrapped_output::{wrapped_stderr, wrapped_stdout},
};

#[derive(Debug, clap::Args)]
pub(crate) struct RecoverArguments {
    /// Copy everything that is left to a new directory
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Make a new journal of what can be read; the damaged one is kept beside it
    #[arg(long)]
    rebuild: bool,
}

pub(crate) fn run(arguments: &RecoverArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let reviews_dir = resolve_reviews_dir(project.root(), &SettingSources::from_environment())
        .unwrap_or_else(|_| ".tribunal/reviews".to_string());
    let Some(report) = survey_project(&project, &reviews_dir)? else {
        return Err(UserError::usage("this project has no runs yet").with_step("start one: `tribunal review FILE`"));
    };
    let mut document = build_document(&report);
    if !context.wants_json {
        print_report(&report, &project)?;
    }
    if let Some(export_dir) = &arguments.export {
        let export_dir = context.resolve_path(export_dir);
        document.exported_files = Some(export_copies(&project, &report, &export_dir)?);
        document.export_dir = Some(export_dir.display().to_string());
    }
    let rebuilt = match arguments.rebuild && report.journal.is_damaged() {
        true => Some(rebuild_runs(&project, &report)?),
        false => None,
    };
    document.damaged_copy = rebuilt.as_ref().map(|rebuilt| rebuilt.damaged_copy.display().to_string());
    if context.wants_json {
        json_documents::print_document(&document)?;
    } else {
        print_outcome(&document, rebuilt.as_ref())?;
        print_next_steps(&report.journal, arguments, context)?;
    }
    let is_still_damaged = report.journal.is_damaged() && rebuilt.is_none();
    Ok(if is_still_damaged && arguments.export.is_none() { EXIT_ENVIRONMENT } else { 0 })
}

fn build_document(report: &RecoveryReport) -> RecoveryDocument {
    let to_row = |run: &InspectedRun| RecoveredRun {
        run: run.run_id.clone(),
        good_entries: run.good_entries(),
        last_good_ms: run.last_good.map(|good_entry| good_entry.wall_ms),
        damage: run.damage.as_ref().map(ToString::to_string),
    };
    RecoveryDocument {
        schema: "tribunal.recover/1",
        damaged: report.journal.is_damaged(),
        problem: report.journal.file_problem.clone(),
        runs: report.journal.runs.iter().map(to_row).collect(),
        originals: report
            .copies
            .iter()
            .flat_map(|(run_id, kept)| {
                kept.originals.iter().map(move |file| format!(".tribunal/originals/{run_id}/{file}"))
            })
            .collect(),
        refs: report.copies.values().flat_map(|kept| kept.work_refs.clone()).collect(),
        trackers: report.trackers.clone(),
        export_dir: None,
        exported_files: None,
        damaged_copy: None,
    }
}

fn print_report(report: &RecoveryReport, project: &Project) -> Result<(), UserError> {
    let mut output = wrapped_stdout();
    let journal = &report.journal;
    let shown_path = journal.path.strip_prefix(project.root()).unwrap_or(&journal.path).display().to_string();
    let shown_path = escape_line(&shown_path);
    match (&journal.file_problem, journal.is_damaged()) {
        (Some(problem), _) => writeln!(output, "{shown_path} is damaged: {}", escape_line(problem))?,
        (None, true) => writeln!(output, "{shown_path} is damaged")?,
        (None, false) => {
            let entry_count: u64 = journal.runs.iter().map(InspectedRun::good_entries).sum();
            writeln!(
                output,
                "{shown_path} is intact: {}, {}",
                count(journal.runs.len(), "run", "runs"),
                count(usize::try_from(entry_count).unwrap_or(usize::MAX), "entry", "entries")
            )?;
        }
    }
    for run in &journal.runs {
        let run_id = escape_line(run.run_id.as_str());
        match &run.damage {
            None => {
                let entries = usize::try_from(run.good_entries()).unwrap_or(usize::MAX);
                writeln!(output, "  {run_id}: {} can be read", count(entries, "entry", "entries"))?;
            }
            Some(damaged_run) => {
                writeln!(output, "  {}", escape_line(&damaged_run.to_string()))?;
                match run.last_good {
                    Some(good_entry) => writeln!(
                        output,
                        "    entries 1 to {} can be read; the last one is from {}",
                        good_entry.seq,
                        format_time(good_entry.wall_ms)
                    )?,
                    None => writeln!(output, "    no entry can be read")?,
                }
            }
        }
        if let Some(kept) = report.copies.get(&run.run_id) {
            print_copies(&mut output, &run.run_id, kept)?;
        }
    }
    let unknown_runs = report.copies.iter().filter(|(run_id, _)| journal.runs.iter().all(|run| run.run_id != **run_id));
    for (run_id, kept) in unknown_runs {
        writeln!(output, "  {}: not in the journal", escape_line(run_id.as_str()))?;
        print_copies(&mut output, run_id, kept)?;
    }
    if !report.trackers.is_empty() {
        writeln!(output, "  trackers: {}", escape_line(&report.trackers.join(", ")))?;
    }
    Ok(())
}

/// Says what a run has outside the journal.
fn print_copies(output: &mut impl Write, run_id: &RunId, kept: &KeptCopies) -> Result<(), UserError> {
    let run_id = escape_line(run_id.as_str());
    let mut lines = Vec::new();
    if !kept.originals.is_empty() {
        let files = count(kept.originals.len(), "file", "files");
        lines.push(format!("{files} from before the run: .tribunal/originals/{run_id}"));
    }
    if kept.checkpoint_files > 0 {
        lines.push(format!("checkpoints of its landings: .tribunal/checkpoints/{run_id}"));
    }
    if kept.parked_files > 0 {
        lines.push(format!("files that an undo replaced: .tribunal/parked/{run_id}"));
    }
    if let Some(branch_name) = &kept.landings_branch {
        lines.push(format!("its landings: git --git-dir=.tribunal/landings.git log -p {branch_name}"));
    }
    for work_ref in &kept.work_refs {
        lines.push(format!("commits of its agents: git log {work_ref}"));
    }
    for line in lines {
        writeln!(output, "    {}", escape_line(&line))?;
    }
    Ok(())
}

fn print_outcome(document: &RecoveryDocument, rebuilt: Option<&RebuildOutcome>) -> Result<(), UserError> {
    let mut output = wrapped_stdout();
    if let (Some(export_dir), Some(file_count)) = (&document.export_dir, document.exported_files) {
        writeln!(output, "\nexported {} to {}", count(file_count, "file", "files"), escape_line(export_dir))?;
    }
    if let Some(rebuilt) = rebuilt {
        let closed_count = rebuilt.runs.iter().filter(|run| run.damage.is_some() && run.last_good.is_some()).count();
        let lost_count = rebuilt.runs.iter().filter(|run| run.last_good.is_none()).count();
        let entry_count: u64 = rebuilt.runs.iter().map(InspectedRun::good_entries).sum();
        writeln!(output, "\nrebuilt the journal: {entry_count} entries were kept")?;
        if closed_count > 0 {
            let closed_runs = count(closed_count, "run lost entries and has", "runs lost entries and have");
            writeln!(output, "  {closed_runs} ended as failed; start a new one for the same files")?;
        }
        if lost_count > 0 {
            writeln!(output, "  {} lost completely", count(lost_count, "run is", "runs are"))?;
        }
        if rebuilt.lost_texts > 0 {
            let lost_texts = usize::try_from(rebuilt.lost_texts).unwrap_or(usize::MAX);
            writeln!(output, "  {} of prompts and answers lost", count(lost_texts, "text is", "texts are"))?;
        }
        writeln!(
            output,
            "  the damaged files are kept in {}",
            escape_line(&rebuilt.damaged_copy.display().to_string())
        )?;
    }
    Ok(())
}

fn print_next_steps(
    journal: &JournalInspection,
    arguments: &RecoverArguments,
    context: &CommandContext,
) -> Result<(), UserError> {
    if !journal.is_damaged() || arguments.rebuild {
        return Ok(());
    }
    let program_name = context.program_name();
    let mut output = wrapped_stderr();
    let mut label = "next:";
    if arguments.export.is_none() {
        writeln!(
            output,
            "\n{label} {program_name} recover --export DIR  (copy everything that is left to a directory)"
        )?;
        label = "     ";
    } else {
        writeln!(output)?;
    }
    writeln!(output, "{label} {program_name} recover --rebuild     (make a new journal of what can be read)")?;
    Ok(())
}

fn count(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// Formats a time in the user's time zone: `2026-11-17 08:12:13`.
fn format_time(wall_ms: u64) -> String {
    let timestamp = jiff::Timestamp::from_millisecond(i64::try_from(wall_ms).unwrap_or(i64::MAX)).unwrap_or_default();
    timestamp.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
