//! `tribunal log [RUN]`: draws a run from its journal as it looked live; in part, in full, or while it goes on.
//!
//! What was sent to agents and what they answered is in [`agent_calls`].

pub(super) mod sent;

use std::{
    io::{Write, stderr, stdout},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use schemars::schema_for;
use tribunal_core::{
    event::{Entry, Event},
    ids::{FindingId, RunId},
    stamp,
};
use tribunal_report::{Filter, JsonLines, Lines, Mode, Reporter, Verbose, Wanted, escaped};
use tribunal_runner::{Project, Runner};
use tribunal_store::Store;

use crate::{complaint::Complaint, context::Context, settings::nearest};

/// The pause between two reads of a journal that is still being written.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one
    run: Option<String>,
    /// Only this round, with its fix iterations
    #[arg(long, value_name = "N")]
    round: Option<u32>,
    /// Only what concerns this finding, for instance F3
    #[arg(long, value_name = "ID")]
    finding: Option<String>,
    /// Only entries of this kind, one line each; may be given several times
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only effects whose key contains this, one line each; with --prompts also the texts themselves
    #[arg(long, value_name = "PART")]
    key: Option<String>,
    /// Only what went wrong: faults, refusals, warnings
    #[arg(long)]
    warnings: bool,
    /// Only what was recorded since: 90s, 10m, 2h, 3d ago, or a time in UTC such as 2026-11-15T01:29
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Every entry, one line each: effects with their keys, time, tokens and cost
    #[arg(long, short)]
    verbose: bool,
    /// Go on while the run goes on, and end with it
    #[arg(long, short)]
    follow: bool,
    /// List what agents were sent and what they answered; the texts themselves with --key
    #[arg(long, conflicts_with_all = ["follow", "verbose", "sent"])]
    prompts: bool,
    /// List which agent was sent which text
    #[arg(long, conflicts_with_all = ["follow", "verbose"])]
    sent: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    // The filter is built first, so that a misspelt option is reported before anything is opened.
    let wanted = arguments.wanted(now_ms())?;
    let project = context.project();
    let (store, run) = context.run_meant(&project, arguments.run.as_deref())?;
    if arguments.prompts || arguments.sent {
        return sent::run(&sent::Wish { run, answers: arguments.prompts, wanted }, &store, context);
    }
    let mut log =
        Log { reporter: arguments.reporter(context), filter: Filter::new(wanted), drawn: 0, last: None };
    log.read(&store.entries(&run, 0)?)?;
    if arguments.follow {
        follow(&mut log, &store, &project, &run)?;
    }
    // An empty result is no error, but on a terminal it would look as if the command had done nothing.
    if log.drawn == 0 && !context.json {
        let run = escaped(run.as_str());
        writeln!(stderr(), "[i] run {run} has no such entries; all of them: tribunal log {run} --verbose")?;
    }
    Ok(0)
}

impl Arguments {
    fn wanted(&self, now_ms: u64) -> Result<Wanted, Complaint> {
        let finding = self.finding.as_ref().map(|said| {
            FindingId::parse(said).ok_or_else(|| {
                Complaint::usage(format!("`{said}` is no finding"))
                    .why("Findings are called F1, F2, F3, …")
                    .todo("tribunal findings")
            })
        });
        let since = self.since.as_ref().map(|said| {
            since(said, now_ms).ok_or_else(|| {
                Complaint::usage(format!("`{said}` is no time"))
                    .why("A time is a while ago (90s, 10m, 2h, 3d) or a moment in UTC (2026-11-15, 2026-11-15T01:29).")
                    .todo("for instance: tribunal log --since 10m")
            })
        });
        // Kinds are checked against the schema: an unknown one would silently match nothing.
        for kind in &self.kind {
            known_kind(kind)?;
        }
        Ok(Wanted {
            round: self.round,
            finding: finding.transpose()?,
            kinds: self.kind.clone(),
            key: self.key.clone(),
            warnings: self.warnings,
            since_ms: since.transpose()?,
        })
    }

    fn reporter(&self, context: &Context) -> Box<dyn Reporter> {
        let screen = context.answers.clone();
        if context.json {
            Box::new(JsonLines::new(stdout()))
        } else if self.verbose || !self.kind.is_empty() || self.key.is_some() {
            // The narrative has no line for most kinds of entries, least of all for effects.
            Box::new(Verbose::new(stdout(), screen))
        } else {
            Box::new(Lines::new(stdout(), screen, Mode::default()))
        }
    }
}

struct Log {
    reporter: Box<dyn Reporter>,
    filter: Filter,
    drawn: usize,
    last: Option<Entry>,
}

impl Log {
    fn read(&mut self, entries: &[Entry]) -> Result<(), Complaint> {
        for entry in entries {
            // Filtered entries still reach the reporter, since later lines depend on what happened before.
            if self.filter.wants(entry) {
                self.drawn += 1;
                self.reporter.entry(entry)?;
            } else {
                self.reporter.past(entry);
            }
        }
        if let Some(last) = entries.last() {
            self.last = Some(last.clone());
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        let last = self.last.as_ref().map(|entry| &entry.event);
        matches!(last, Some(Event::RunParked(_) | Event::RunFinished(_)))
    }
}

/// Reads on until the run has ended or its process is gone.
fn follow(log: &mut Log, store: &Store, project: &Project, run: &RunId) -> Result<(), Complaint> {
    while !log.has_ended() {
        // Liveness is checked before reading: a process that ends in between has written its last entry by then.
        let live = Runner::is_live(project, run);
        let after = log.last.as_ref().map_or(0, |entry| entry.seq);
        let entries = store.entries(run, after)?;
        log.read(&entries)?;
        // The process is gone, everything is read, and there is no final entry: the run died.
        if !live && entries.is_empty() && !log.has_ended() {
            let run = escaped(run.as_str());
            writeln!(stderr(), "[W] run {run} died; to go on with it: tribunal resume {run}")?;
            return Ok(());
        }
        if entries.is_empty() {
            // The database gives no notification, so the journal is polled.
            std::thread::sleep(LOOK_AGAIN);
        }
    }
    Ok(())
}

fn known_kind(kind: &str) -> Result<(), Complaint> {
    let kinds = kinds();
    let names: Vec<&str> = kinds.iter().map(String::as_str).collect();
    if names.contains(&kind) {
        return Ok(());
    }
    let complaint = Complaint::usage(format!("there are no entries of the kind `{kind}`"))
        .why(format!("There are {}.", names.join(", ")));
    Err(match nearest(kind, &names) {
        Some(near) => complaint.todo(format!("did you mean `{near}`?")),
        None => complaint.todo("tribunal schema event"),
    })
}

/// Lists every kind of entry from the schema, so that a new kind is known here at once.
fn kinds() -> Vec<String> {
    let schema = schema_for!(Event).to_value();
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    variants
        .iter()
        .filter_map(|variant| variant["properties"]["kind"]["const"].as_str().map(String::from))
        .collect()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Parses a duration ago, or a point in time.
fn since(said: &str, now_ms: u64) -> Option<u64> {
    let digits = said.find(|c: char| !c.is_ascii_digit())?;
    // Text that is no duration with a unit may be a point in time.
    let unit = match &said[digits..] {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return stamp::wall_ms(said),
    };
    let ago: u64 = said[..digits].parse().ok()?;
    Some(now_ms.saturating_sub(ago.saturating_mul(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complaint::NextStep;

    #[test]
    fn a_time_is_a_while_ago_or_a_moment() {
        let now = 1_794_706_165_000;
        assert_eq!(since("25s", now), Some(now - 25_000));
        assert_eq!(since("2h", now), Some(now - 7_200_000));
        assert_eq!(since("2026-11-15T01:29:25", now), Some(now));
        for nonsense in ["", "h", "10", "10 minutes", "yesterday", "-5m"] {
            assert_eq!(since(nonsense, now), None, "{nonsense}");
        }
    }

    #[test]
    fn every_kind_is_known_and_a_slip_is_pointed_out() {
        let kinds = kinds();
        assert!(kinds.len() > 20, "{kinds:?}");
        for entry in tribunal_testkit::entries(tribunal_testkit::SAMPLE_JOURNAL) {
            known_kind(entry.event.kind()).unwrap();
        }
        assert_eq!(known_kind("warnd").unwrap_err().todo, [NextStep::Do("did you mean `warned`?".into())]);
    }
}
