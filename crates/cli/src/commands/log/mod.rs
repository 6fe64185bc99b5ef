//! `tribunal log [RUN]`: draws a run from its journal as it looked live; in part, in full, or while it goes on.
//!
//! What was sent to agents and what they answered is in [`agent_calls`].

pub(super) mod agent_calls;

use std::{
    io::{Write, stderr, stdout},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tribunal_engine::{
    ids::{FindingId, RunId},
    timestamp,
};
use tribunal_report::{
    DisplayMode, EntryFilter, JsonReporter, LineReporter, LogQuery, Reporter, VerboseReporter, escape_line,
};
use tribunal_runner::{Project, session::loop_runs::is_run_active};
use tribunal_store::Store;
use tribunal_workflows::runs::{
    run_kind::RunDriver,
    types::{JournalEntry, RunEvent},
};

use crate::{
    context::{CommandContext, read_order},
    messages::user_errors::UserError,
    settings::nearest_name,
};

/// The pause between two reads of a journal that is still being written.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(crate) struct LogArguments {
    /// Run to show (default: the last one)
    run: Option<String>,
    /// Show only this round and its fix iterations
    #[arg(long, value_name = "N")]
    round: Option<u32>,
    /// Show only what concerns this finding, e.g. F3
    #[arg(long, value_name = "ID")]
    finding: Option<String>,
    /// Show only entries of this kind, one line each; can be repeated
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Show only effects whose key contains PART, one line each; with --prompts, also print the texts
    #[arg(long, value_name = "PART")]
    key: Option<String>,
    /// Show only problems: faults, refusals and warnings
    #[arg(long)]
    warnings: bool,
    /// Show only entries since WHEN: an age (90s, 10m, 2h, 3d) or a UTC time such as 2026-11-15T01:29
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Show every entry, one line each: effects with key, time, tokens and cost
    #[arg(long, short)]
    verbose: bool,
    /// Keep printing new entries until the run ends
    #[arg(long, short)]
    follow: bool,
    /// List the prompts sent to agents and their answers; with --key, print the texts
    #[arg(long, conflicts_with_all = ["follow", "verbose", "sent"])]
    prompts: bool,
    /// List which text was sent to which agent
    #[arg(long, conflicts_with_all = ["follow", "verbose"])]
    sent: bool,
}

pub(crate) fn run(arguments: &LogArguments, context: &CommandContext) -> Result<u8, UserError> {
    // The filter is built first, so that a misspelt option is reported before anything is opened.
    let entry_filter = arguments.to_filter(now_ms())?;
    let project = context.current_project();
    let (store, run_id) = context.find_requested_run(&project, arguments.run.as_deref())?;
    if arguments.prompts || arguments.sent {
        return agent_calls::run(
            &agent_calls::AgentCallQuery { run_id, with_answers: arguments.prompts, entry_filter },
            &store,
            context,
        );
    }
    let mut log_printer = LogPrinter {
        reporter: arguments.build_reporter(context),
        filter: EntryFilter::new(entry_filter),
        drawn_count: 0,
        last_entry: None,
    };
    log_printer.print_entries(&store.read_entries(&run_id, 0)?)?;
    if arguments.follow {
        let order = read_order(&store, &run_id)?;
        let is_loop = order.is_some_and(|order| order.run_driver() == RunDriver::Session);
        FollowedJournal { store: &store, project: &project, run_id: &run_id, is_loop }.follow(&mut log_printer)?;
    }
    // An empty result is no error, but on a terminal it would look as if the command had done nothing.
    if log_printer.drawn_count == 0 && !context.wants_json {
        let run_id = escape_line(run_id.as_str());
        let program_name = context.program_name();
        writeln!(
            stderr(),
            "note: no matching entries in {run_id}; show all with `{program_name} log {run_id} --verbose`"
        )?;
    }
    Ok(0)
}

impl LogArguments {
    fn to_filter(&self, now_ms: u64) -> Result<LogQuery, UserError> {
        let finding_id = self.finding.as_ref().map(|typed_value| {
            FindingId::parse(typed_value).ok_or_else(|| {
                UserError::usage(format!("`{typed_value}` is not a finding ID"))
                    .with_reason("Finding IDs look like F1, F2, F3.")
                    .with_step("list the findings: `tribunal findings`")
            })
        });
        let since_ms = self.since.as_ref().map(|typed_value| {
            parse_since(typed_value, now_ms).ok_or_else(|| {
                UserError::usage(format!("invalid time `{typed_value}` for `--since`"))
                    .with_reason("Expected an age (90s, 10m, 2h, 3d) or a UTC time (2026-11-15, 2026-11-15T01:29).")
                    .with_step("for example: `tribunal log --since 10m`")
            })
        });
        // Kinds are checked against the schema: an unknown one would silently match nothing.
        for entry_kind in &self.kind {
            check_kind(entry_kind)?;
        }
        Ok(LogQuery {
            round_number: self.round,
            finding_id: finding_id.transpose()?,
            event_kinds: self.kind.clone(),
            key_part: self.key.clone(),
            only_problems: self.warnings,
            since_ms: since_ms.transpose()?,
        })
    }

    fn build_reporter(&self, context: &CommandContext) -> Box<dyn Reporter> {
        let screen = context.answer_screen.clone();
        if context.wants_json {
            Box::new(JsonReporter::new(stdout()))
        } else if self.verbose || !self.kind.is_empty() || self.key.is_some() {
            // The narrative has no line for most kinds of entries, least of all for effects.
            Box::new(VerboseReporter::new(stdout(), screen))
        } else {
            Box::new(LineReporter::new(stdout(), screen, DisplayMode::default()))
        }
    }
}

struct LogPrinter {
    reporter: Box<dyn Reporter>,
    filter: EntryFilter,
    drawn_count: usize,
    last_entry: Option<JournalEntry>,
}

impl LogPrinter {
    fn print_entries(&mut self, entries: &[JournalEntry]) -> Result<(), UserError> {
        for journal_entry in entries {
            // Filtered entries still reach the reporter, since later lines depend on what happened before.
            if self.filter.matches_entry(journal_entry) {
                self.drawn_count += 1;
                self.reporter.report_entry(journal_entry)?;
            } else {
                self.reporter.note_past_entry(journal_entry);
            }
        }
        if let Some(newest_entry) = entries.last() {
            self.last_entry = Some(newest_entry.clone());
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        let last_event = self.last_entry.as_ref().map(|journal_entry| &journal_entry.event);
        matches!(last_event, Some(RunEvent::RunParked(_) | RunEvent::RunFinished(_)))
    }
}

/// A journal that may still be written.
struct FollowedJournal<'a> {
    store: &'a Store,
    project: &'a Project,
    run_id: &'a RunId,
    is_loop: bool,
}

impl FollowedJournal<'_> {
    /// Reads on until the run has ended, or nothing works on it any more.
    fn follow(&self, log_printer: &mut LogPrinter) -> Result<(), UserError> {
        while !log_printer.has_ended() {
            // Liveness is checked before reading: a process that ends in between has written its last entry by then.
            let was_live = is_run_active(self.project, self.run_id);
            let last_seq = log_printer.last_entry.as_ref().map_or(0, |journal_entry| journal_entry.seq);
            let new_entries = self.store.read_entries(self.run_id, last_seq)?;
            log_printer.print_entries(&new_entries)?;
            // Everything is read, and there is no final entry.
            if !was_live && new_entries.is_empty() && !log_printer.has_ended() {
                writeln!(stderr(), "warning: {}", self.describe_missing_end())?;
                return Ok(());
            }
            if new_entries.is_empty() {
                // The database gives no notification, so the journal is polled.
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    fn describe_missing_end(&self) -> String {
        let run_id = escape_line(self.run_id.as_str());
        match self.is_loop {
            false => format!("run {run_id} crashed; resume it with `tribunal resume {run_id}`"),
            // Deleting the state file is a way to let a session go, so nothing crashed.
            true => format!("{run_id} is no longer active: its state file is missing or unreadable"),
        }
    }
}

fn check_kind(kind_name: &str) -> Result<(), UserError> {
    let known_names = RunEvent::all_kind_names();
    if known_names.contains(&kind_name) {
        return Ok(());
    }
    let user_error = UserError::usage(format!("unknown entry kind `{kind_name}`"))
        .with_reason(format!("Known kinds: {}.", known_names.join(", ")));
    Err(match nearest_name(kind_name, &known_names) {
        Some(suggestion) => user_error.with_step(format!("did you mean `{suggestion}`?")),
        None => user_error.with_step("list all kinds: `tribunal schema event`"),
    })
}

fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Parses a duration ago, or a point in time.
fn parse_since(typed_time: &str, now_ms: u64) -> Option<u64> {
    let unit_start = typed_time.find(|character: char| !character.is_ascii_digit())?;
    // Text that is no duration with a unit may be a point in time.
    let unit_ms = match &typed_time[unit_start..] {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return timestamp::parse_wall_ms(typed_time),
    };
    let unit_count: u64 = typed_time[..unit_start].parse().ok()?;
    Some(now_ms.saturating_sub(unit_count.saturating_mul(unit_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::user_errors::SuggestedStep;

    #[test]
    fn since_is_a_duration_ago_or_a_point_in_time() {
        let current_ms = 1_794_706_165_000;
        assert_eq!(parse_since("25s", current_ms), Some(current_ms - 25_000));
        assert_eq!(parse_since("2h", current_ms), Some(current_ms - 7_200_000));
        assert_eq!(parse_since("2026-11-15T01:29:25", current_ms), Some(current_ms));
        for nonsense in ["", "h", "10", "10 minutes", "yesterday", "-5m"] {
            assert_eq!(parse_since(nonsense, current_ms), None, "{nonsense}");
        }
    }

    #[test]
    fn every_kind_is_accepted_and_a_misspelt_one_gets_a_suggestion() {
        let known_kinds = RunEvent::all_kind_names();
        assert!(known_kinds.len() > 20, "{known_kinds:?}");
        for journal_entry in tribunal_testkit::parse_entries(tribunal_testkit::SAMPLE_JOURNAL) {
            check_kind(journal_entry.event.kind_name()).unwrap();
        }
        assert_eq!(
            check_kind("warnd").unwrap_err().steps,
            [SuggestedStep::Instruction("did you mean `warned`?".into())]
        );
    }
}
