//! Writes every entry of a journal as one line: number, time, kind, subject and description.
//!
//! This is for users who want to know what really happened; [`crate::LineReporter`] tells the story instead. Events of a
//! workflow are described by the reporter of its kind.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use tribunal_engine::{
    effect::{AwaitReset, PostOutcome, Restore, RestoreOutcome, Sleep, WaitForUser},
    ids::Key,
    timestamp::Timestamp,
};
use tribunal_workflows::{
    runs::{
        effect::{
            AskAgent, AskOutcome, Effect, Freeze, FreezeOutcome, Land, LandOutcome, LandedChange, Reply, TakeIn,
            WriteFile, WriteOutcome,
        },
        kinds::WorkflowEvent,
        types::{ChildNews, JournalEntry, PostDecision, ReadRecords, RunChild, RunEvent, StartChild, WriteRecords},
    },
    session::SessionRecord,
    tasks::brief::{AgentReply, AnswerContent},
};

use crate::{
    Reporter,
    child_runs::ChildResult,
    clean_block, development_text, kind_table, phrases,
    run_text::{describe_ending, describe_run, describe_spending},
    session::describe_session_event,
    style::{Screen, TextStyle},
};

/// Writes one line for every journal entry.
#[derive(Debug)]
pub struct VerboseReporter<W> {
    writer: W,
    screen: Screen,
    /// The awake time at which the effects under way were requested, by segment and key.
    started_effects: BTreeMap<(u32, Key), u64>,
}

impl<W: Write> VerboseReporter<W> {
    pub fn new(writer: W, screen: Screen) -> VerboseReporter<W> {
        VerboseReporter { writer, screen, started_effects: BTreeMap::new() }
    }

    /// Returns how long an effect took, once it ended.
    fn effect_duration(&mut self, journal_entry: &JournalEntry) -> Option<u64> {
        match &journal_entry.event {
            RunEvent::EffectStarted { key: effect_key, segment, .. } => {
                self.started_effects.insert((*segment, effect_key.clone()), journal_entry.at.awake_ms);
                None
            }
            RunEvent::EffectFinished { key: effect_key, segment, .. } => {
                let started_ms = self.started_effects.remove(&(*segment, effect_key.clone()))?;
                Some(journal_entry.at.awake_ms.saturating_sub(started_ms))
            }
            _ => None,
        }
    }
}

impl<W: Write> Reporter for VerboseReporter<W> {
    fn report_entry(&mut self, journal_entry: &JournalEntry) -> io::Result<()> {
        // The duration has to be taken for every entry, even if its line does not show one.
        let elapsed_ms = self.effect_duration(journal_entry);
        let event = &journal_entry.event;
        // Numbers, times and kinds are padded, so that subjects line up.
        let line_head = format!(
            "{:>5}  {:>9}  {:<21}",
            journal_entry.seq,
            phrases::format_moment(journal_entry.at.awake_ms),
            event.kind_name()
        );
        let subject_text = event.subject_name();
        let description = match event {
            RunEvent::EffectFinished { reply: effect_reply, .. } => describe_reply(effect_reply, elapsed_ms),
            other_event => describe_event(other_event),
        };
        let text_parts: Vec<&str> = [subject_text.as_str(), description.as_str()]
            .into_iter()
            .filter(|text_part| !text_part.is_empty())
            .collect();
        let fitted_text = self.screen.fit_text(line_head.chars().count() + 1, &text_parts.join(": "));
        let whole_line = format!("{line_head} {fitted_text}");
        writeln!(self.writer, "{}", self.screen.paint(event_style(event), whole_line.trim_end()))?;
        let full_output = match event {
            RunEvent::Workflow(event) => kind_table::find_output(event),
            _ => None,
        };
        // Output of a command is shown in full and not cut like other lines.
        if let Some(output) = full_output {
            for output_line in clean_block(output.trim_end()).lines() {
                writeln!(self.writer, "       | {output_line}")?;
            }
        }
        Ok(())
    }

    fn note_past_entry(&mut self, journal_entry: &JournalEntry) {
        self.effect_duration(journal_entry);
    }
}

/// The style of a line: only failures, refusals and warnings stand out, and the bookkeeping of effects is dimmed.
fn event_style(event: &RunEvent) -> TextStyle {
    match event {
        RunEvent::Workflow(event) if kind_table::is_problem(event) => TextStyle::Failure,
        RunEvent::EffectFinished { reply: effect_reply, .. } if effect_reply.fault().is_some() => TextStyle::Failure,
        RunEvent::EffectFinished {
            reply: Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }),
            ..
        } => TextStyle::Failure,
        RunEvent::Warned { .. } | RunEvent::WordIgnored { .. } | RunEvent::Unknown(_) => TextStyle::Warning,
        RunEvent::EffectStarted { .. } | RunEvent::EffectFinished { .. } | RunEvent::Boundary { .. } => TextStyle::Dim,
        _ => TextStyle::Plain,
    }
}

/// Describes what an entry says beyond its kind and its subject.
fn describe_event(run_event: &RunEvent) -> String {
    match run_event {
        RunEvent::RunStarted { version, build, order, parent, .. } => {
            let parent_text = parent.as_ref().map(|parent| format!(", child {} of {}", parent.name, parent.run));
            let parent_text = parent_text.unwrap_or_default();
            format!("{} {version} of {} by {build}{parent_text}", order.kind_name(), order.title())
        }
        RunEvent::RunResumed { life: start_number } => format!("process {start_number}"),
        RunEvent::EffectStarted { effect, .. } => describe_effect(effect),
        RunEvent::RunParked(summary) | RunEvent::RunFinished(summary) => {
            let outcome_word = summary.outcome.map_or("stopped", |outcome| outcome.as_str());
            format!("{outcome_word}, {} · {}", describe_ending(summary), describe_spending(summary))
        }
        RunEvent::ChildStarted { name, child, .. } => format!("{name}, run {child}"),
        RunEvent::ChildReturned(returned) => ChildResult::from_outcome(&returned.outcome).text,
        RunEvent::ChildUsage { used, .. } => phrases::describe_usage(used.tokens, used.cost, used.notional),
        RunEvent::DecisionPosted { decision } => format!("{} ({})", decision.question, decision.owner),
        RunEvent::DecisionAnswered { answer, .. } => format!("{} {}", answer.choice, answer.note),
        RunEvent::Warned { text: warning_text } | RunEvent::WordIgnored { text: warning_text } => warning_text.clone(),
        RunEvent::Workflow(WorkflowEvent::Session(SessionRecord::Session(session_event))) => {
            describe_session_event(session_event)
        }
        RunEvent::Workflow(event) => kind_table::describe_event(event),
        // These are fully described by kind and subject; the reply of an effect is described with its duration.
        RunEvent::SettingsChanged { .. }
        | RunEvent::EffectFinished { .. }
        | RunEvent::Boundary { .. }
        | RunEvent::Patched { .. }
        | RunEvent::Unknown(_) => String::new(),
    }
}

/// Describes an effect that was asked for.
fn describe_effect(effect: &Effect) -> String {
    match effect {
        Effect::Freeze(Freeze { subject }) => format!("snapshot {}", subject.title()),
        Effect::Ask(AskAgent { task: agent_task, .. }) => {
            format!("ask {} as {}", agent_task.agent, agent_task.worker_name())
        }
        Effect::TakeIn(TakeIn { before: previous_files, .. }) => {
            format!("check what was changed in {}", phrases::format_count(previous_files.len() as u32, "file"))
        }
        Effect::Land(Land { by: fixer_key, preview: true, .. }) => format!("look at the patch of {fixer_key}"),
        Effect::Land(Land { by: fixer_key, .. }) => format!("apply the patch of {fixer_key}"),
        Effect::Restore(Restore { stray }) => format!("restore {}", stray.path),
        Effect::Write(WriteFile { text: file_text, .. }) => {
            format!("write {} bytes", phrases::group_thousands(file_text.len() as u64))
        }
        Effect::Post(PostDecision { decision }) => format!("ask {}", decision.id),
        Effect::Inbox(_) => "check the inbox".into(),
        Effect::Wait(WaitForUser { ending }) => format!("wait for the user ({})", ending.detail),
        Effect::Sleep(Sleep { ms: sleep_ms }) => format!("sleep {sleep_ms} ms"),
        Effect::AwaitReset(AwaitReset { agent, until_ms, .. }) => {
            let until_stamp = Timestamp { wall_ms: *until_ms, awake_ms: 0 };
            format!("wait for {agent} until {} UTC", until_stamp.format_utc())
        }
        Effect::ReadRecords(ReadRecords { kind, .. }) => format!("read project records ({kind})"),
        Effect::WriteRecords(WriteRecords { changes }) => {
            format!("change {}", phrases::format_count(changes.len() as u32, "project record"))
        }
        Effect::RunChild(RunChild { name, order, .. }) => format!("run child {name}: {}", describe_run(order)),
        Effect::StartChild(StartChild { child: RunChild { name, order, .. } }) => {
            format!("start child {name}: {}", describe_run(order))
        }
        Effect::AwaitChild(_) => "wait for a child".into(),
        _ => development_text::describe_request(effect).unwrap_or_default(),
    }
}

/// Describes the reply to an effect, with its duration and usage.
fn describe_reply(effect_reply: &Reply, elapsed_ms: Option<u64>) -> String {
    // A failed call has used tokens, too.
    let usage = match effect_reply {
        Reply::Ask(AskOutcome::Answered(answer)) => Some(&answer.usage),
        Reply::Ask(AskOutcome::Failed(failed_task)) => Some(&failed_task.usage),
        _ => None,
    };
    let result_text = match effect_reply.fault() {
        Some(fault) => fault.detail.clone(),
        None => describe_success(effect_reply),
    };
    // The duration is unknown if the start of the effect was not seen.
    let elapsed_text = elapsed_ms.map(|elapsed_ms| format!(" · {elapsed_ms} ms")).unwrap_or_default();
    format!("{result_text}{elapsed_text}{}", usage.map(phrases::describe_call_usage).unwrap_or_default())
}

fn describe_hunks(change: &LandedChange) -> String {
    let hunk_count =
        change.hunks.len() + change.files.iter().map(|changed_file| changed_file.hunks.len()).sum::<usize>();
    phrases::format_count(hunk_count as u32, "hunk")
}

/// Describes the result of an effect that did not fail.
fn describe_success(effect_reply: &Reply) -> String {
    match effect_reply {
        Reply::Freeze(FreezeOutcome::Frozen(frozen_text)) => {
            format!("{} bytes", phrases::group_thousands(frozen_text.text.len() as u64))
        }
        Reply::Ask(AskOutcome::Answered(answer)) => describe_answer(answer),
        Reply::Ask(AskOutcome::Postponed(postponed_call)) => format!("postponed: {}", postponed_call.why),
        // The hunks of a document are in the landing itself, those of a change in its files.
        Reply::Land(LandOutcome::Landed(landed)) | Reply::TakeIn(LandOutcome::Landed(landed)) => {
            format!("applied, {}", describe_hunks(landed))
        }
        Reply::Land(LandOutcome::Previewed(change)) | Reply::TakeIn(LandOutcome::Previewed(change)) => {
            format!("would apply, {}", describe_hunks(change))
        }
        Reply::Land(LandOutcome::Refused { why: reason }) | Reply::TakeIn(LandOutcome::Refused { why: reason }) => {
            format!("rejected, {}", phrases::describe_refusal(reason))
        }
        Reply::Restore(RestoreOutcome::Restored { parked }) => {
            let describe_copy = |file_path: &String| format!("restored, previous version saved as {file_path}");
            parked.as_ref().map_or("restored".into(), describe_copy)
        }
        Reply::Write(WriteOutcome::Written { path: file_path, .. }) => file_path.clone(),
        Reply::Write(WriteOutcome::Edited { requests }) => {
            format!("edited by the user, {}", phrases::format_count(requests.len() as u32, "request"))
        }
        Reply::Post(PostOutcome::Posted) => "posted".into(),
        Reply::Inbox(inbox) | Reply::Wait(inbox) | Reply::AwaitChild(ChildNews::Word(inbox)) => {
            phrases::format_count(inbox.requests.len() as u32, "request")
        }
        Reply::Sleep(_) | Reply::AwaitReset(_) => "slept".into(),
        Reply::ReadRecords(list) => phrases::format_count(list.records.len() as u32, "record"),
        Reply::WriteRecords(_) => "written".into(),
        Reply::RunChild(outcome) => ChildResult::from_outcome(outcome).text,
        Reply::StartChild(started) => format!("run {}", started.run),
        Reply::AwaitChild(ChildNews::Returned(returned)) => format!("{} is back", returned.name),
        // Failures are described by their fault before this function is called.
        Reply::Freeze(FreezeOutcome::Failed { .. })
        | Reply::Ask(AskOutcome::Failed(_))
        | Reply::Land(LandOutcome::Failed { .. })
        | Reply::TakeIn(LandOutcome::Failed { .. })
        | Reply::Restore(RestoreOutcome::Failed { .. })
        | Reply::Write(WriteOutcome::Failed { .. })
        | Reply::Post(PostOutcome::Failed { .. }) => "failed".into(),
        _ => development_text::describe_reply(effect_reply).unwrap_or_else(|| "failed".into()),
    }
}

/// Describes an agent's answer by what it contains.
fn describe_answer(agent_reply: &AgentReply) -> String {
    let content_text = match &agent_reply.content {
        AnswerContent::Findings { raised: raised_findings } => {
            phrases::format_count(raised_findings.len() as u32, "finding")
        }
        AnswerContent::Fixes { claims, .. } => phrases::format_count(claims.len() as u32, "fix claim"),
        AnswerContent::Rulings { rulings, .. } => phrases::format_count(rulings.len() as u32, "verdict"),
        AnswerContent::Status(report) => match report.status {
            Some(status) => format!("status {status}"),
            None => "a status block".into(),
        },
        AnswerContent::Question(_) => "a question".into(),
        AnswerContent::Text { text } => format!("{} characters of text", text.chars().count()),
        AnswerContent::Turn(report) => match report.status.as_ref().and_then(|status| status.status) {
            Some(status) => format!("a turn, status {status}"),
            None => "a turn".into(),
        },
        AnswerContent::Unreadable { message } => format!("unreadable: {message}"),
    };
    match agent_reply.remarks.len() {
        0 => content_text,
        remark_count => format!("{content_text}, {}", phrases::format_count(remark_count as u32, "remark")),
    }
}
