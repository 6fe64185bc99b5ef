//! `tribunal breaker [reset]`: shows the circuit breaker of this project's loops, and closes it.

use std::io::{Write, stdout};

use tribunal_engine::{ids::RunId, timestamp::Timestamp};
use tribunal_json::Serialize;
use tribunal_report::escape_line;
use tribunal_runner::Project;
use tribunal_store::{EntryBatch, Store};
use tribunal_workflows::{
    loop_run::breaker::{BreakerPhase, CircuitBreaker},
    runs::{
        records::{ProjectRecord, RecordKind},
        types::StoredRecord,
    },
};

use crate::{
    context::CommandContext,
    messages::{json_documents, user_errors::UserError},
};

#[derive(Debug, clap::Args)]
pub(crate) struct BreakerArguments {
    #[command(subcommand)]
    pub(super) action: Option<BreakerAction>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum BreakerAction {
    /// Close the circuit breaker, so that loops may run again at once
    Reset,
}

/// The breaker for JSON.
#[derive(Debug, Serialize)]
struct BreakerDocument {
    schema: &'static str,
    /// The run that moved it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    #[serde(flatten)]
    breaker: CircuitBreaker,
}

pub(crate) fn run(arguments: &BreakerArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    if matches!(arguments.action, Some(BreakerAction::Reset)) {
        reset_breaker(&project, context)?;
    }
    let stored = read_breaker(&project, context)?;
    let breaker = stored.as_ref().map(|(_, breaker)| breaker.clone()).unwrap_or_default();
    if context.wants_json {
        let run = stored.map(|(stored, _)| stored.run);
        let why = if breaker.phase == BreakerPhase::Open { breaker.describe_cause() } else { String::new() };
        json_documents::print_document(&BreakerDocument { schema: "tribunal.breaker/1", run, why, breaker })?;
        return Ok(0);
    }
    let mut output = stdout();
    match (breaker.phase, stored) {
        (BreakerPhase::Open, Some((stored, _))) => {
            writeln!(output, "open: {}", escape_line(&breaker.describe_cause()))?;
            let closes_at = Timestamp { wall_ms: breaker.closes_ms.unwrap_or_default(), awake_ms: 0 }.format_utc();
            writeln!(
                output,
                "  opened by {}; one iteration may try from {closes_at} UTC on",
                escape_line(stored.run.as_str())
            )?;
            writeln!(output, "  to let loops run at once: {} breaker reset", context.program_name())?;
        }
        (BreakerPhase::HalfOpen, _) => {
            writeln!(
                output,
                "half-open: {} iterations in a row changed nothing; the next one decides",
                breaker.idle_count
            )?;
        }
        (BreakerPhase::Closed | BreakerPhase::Open, _) => writeln!(output, "closed: loops may run")?,
    }
    Ok(0)
}

fn read_breaker(
    project: &Project,
    context: &CommandContext,
) -> Result<Option<(StoredRecord, CircuitBreaker)>, UserError> {
    let Some(store) = context.open_journal(project)? else { return Ok(None) };
    let records = store.read_records(RecordKind::CircuitBreaker, CircuitBreaker::record_key().as_str())?;
    Ok(records.into_iter().find_map(|stored| match &stored.record {
        ProjectRecord::CircuitBreaker(breaker) => {
            let breaker = CircuitBreaker::clone(breaker);
            Some((stored, breaker))
        }
        ProjectRecord::DismissedFinding(_) | ProjectRecord::LastReview(_) => None,
    }))
}

/// Removes the record. Nothing is written into the journal of the loop that opened the breaker: that run may be resumed, and a replay
/// accepts only what its workflow wrote. A loop reads the record when it is resumed.
fn reset_breaker(project: &Project, context: &CommandContext) -> Result<(), UserError> {
    if read_breaker(project, context)?.is_none() {
        return Ok(());
    }
    let removed_record = Some((RecordKind::CircuitBreaker, CircuitBreaker::record_key()));
    Store::open(&project.home_dir())?.append(EntryBatch { removed_record, ..EntryBatch::default() })?;
    Ok(())
}
