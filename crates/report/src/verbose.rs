//! Writes every entry of a journal as one line: number, time, kind, subject and description.
//!
//! This is for users who want to know what really happened; [`crate::LineReporter`] tells the story instead.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use tribunal_core::{
    engine::{
        effect::{
            AskAgent, AskOutcome, AwaitReset, Effect, Freeze, FreezeOutcome, Land, LandOutcome, PostDecision,
            PostOutcome, Reply, Restore, RestoreOutcome, Sleep, TakeIn, WaitForUser, WriteFile, WriteOutcome,
        },
        event::{JournalEntry, RunEvent},
        files::PatchRefusal,
        ids::Key,
        limits::AgentUsage,
        timestamp::Timestamp,
    },
    tasks::brief::{AgentReply, AnswerContent},
};

use crate::{
    Reporter, clean_block,
    phrases::{self, join_ids},
    session_text,
    style::{Screen, TextStyle},
};

/// Writes one line for every journal entry.
#[derive(Debug)]
pub struct VerboseReporter<W> {
    writer: W,
    screen: Screen,
    /// The awake time at which the effects under way were requested, by stretch and key.
    started_effects: BTreeMap<(u32, Key), u64>,
}

impl<W: Write> VerboseReporter<W> {
    pub fn new(writer: W, screen: Screen) -> VerboseReporter<W> {
        VerboseReporter { writer, screen, started_effects: BTreeMap::new() }
    }

    /// Returns how long an effect took, once it ended.
    fn effect_duration(&mut self, journal_entry: &JournalEntry) -> Option<u64> {
        match &journal_entry.event {
            RunEvent::EffectStarted { key: effect_key, stretch, .. } => {
                self.started_effects.insert((*stretch, effect_key.clone()), journal_entry.at.awake_ms);
                None
            }
            RunEvent::EffectFinished { key: effect_key, stretch, .. } => {
                let started_ms = self.started_effects.remove(&(*stretch, effect_key.clone()))?;
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
        // Only failures, refusals and warnings stand out; the bookkeeping of effects is dimmed.
        let line_style = match event {
            RunEvent::SeatIncomplete { .. } | RunEvent::FixerFailed { .. } | RunEvent::PatchRefused { .. } => {
                TextStyle::Failure
            }
            RunEvent::ChallengerAnswered { fault: Some(_), .. } => TextStyle::Failure,
            RunEvent::EffectFinished { reply: effect_reply, .. } if effect_reply.fault().is_some() => {
                TextStyle::Failure
            }
            RunEvent::EffectFinished {
                reply: Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }),
                ..
            } => TextStyle::Failure,
            RunEvent::Warned { .. } | RunEvent::Unknown => TextStyle::Warning,
            RunEvent::EffectStarted { .. } | RunEvent::EffectFinished { .. } | RunEvent::Boundary { .. } => {
                TextStyle::Dim
            }
            _ => TextStyle::Plain,
        };
        let whole_line = format!("{line_head} {fitted_text}");
        writeln!(self.writer, "{}", self.screen.paint(line_style, whole_line.trim_end()))?;
        // What a check printed says why it failed, so it is shown in full and not cut like other lines.
        if let RunEvent::PatchRefused { why: PatchRefusal::Check { output, .. }, .. } = event {
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

/// Describes what an entry says beyond its kind and its subject.
fn describe_event(run_event: &RunEvent) -> String {
    match run_event {
        RunEvent::RunStarted { workflow, version, build, settings, .. } => {
            format!("{workflow} {version} of {} by {build}", settings.subject.title())
        }
        RunEvent::RunResumed { life: start_number } => format!("process {start_number}"),
        RunEvent::EffectStarted { effect, .. } => describe_effect(effect),
        RunEvent::RunParked(summary) | RunEvent::RunFinished(summary) => {
            let outcome_word = summary.outcome.map_or("stopped", |outcome| outcome.as_str());
            format!("{outcome_word}, {} · {}", phrases::describe_ending(summary), phrases::describe_spending(summary))
        }
        RunEvent::LevelChosen { level, why: reason, .. } => format!("{level}: {reason}"),
        RunEvent::RoundStarted { of: max_rounds, .. } => format!("of at most {max_rounds}"),
        RunEvent::SeatAnswered { agent: agent_name, raised: raised_count, usage, .. } => {
            format!("{}, {agent_name}{}", phrases::describe_raised(*raised_count), describe_call_usage(usage))
        }
        RunEvent::SeatIncomplete { fault, .. } | RunEvent::FixerFailed { fault, .. } => fault.detail.clone(),
        RunEvent::ChallengerAnswered { agent: agent_name, findings: finding_count, usage, fault, .. } => match fault {
            Some(fault) => fault.detail.clone(),
            None => format!(
                "{agent_name} on {}{}",
                phrases::format_count(*finding_count, "finding"),
                describe_call_usage(usage)
            ),
        },
        RunEvent::RoundEnded { new: new_findings, dry: is_dry, counts, .. } => {
            let round_text = phrases::describe_round(*new_findings, *is_dry, counts);
            format!("{round_text} · {}", phrases::describe_counts(counts))
        }
        RunEvent::ConfidenceCalculated { confidence, .. } => phrases::describe_confidence(confidence),
        RunEvent::Session(session_event) => session_text::describe_session_event(session_event),
        other_event => describe_finding_event(other_event),
    }
}

/// Describes events about findings, patches, decisions and files.
fn describe_finding_event(run_event: &RunEvent) -> String {
    match run_event {
        RunEvent::FindingRaised { finding } => format!("{}: {}", finding.severity, finding.description),
        RunEvent::FindingJoined { severity, raiser, .. } => format!("{severity}, also by {}", raiser.role),
        RunEvent::FindingMoved { transition, .. } => {
            format!("{}: {}", transition.to.as_str(), transition.note)
        }
        RunEvent::FindingRuled { ruled, severity, voices, .. } => {
            let voice_texts = voices.iter().map(|voice| format!("{} {}", voice.agent, voice.holds));
            format!("{ruled}, {severity}: {}", voice_texts.collect::<Vec<_>>().join(", "))
        }
        RunEvent::FixersDealt { hands, .. } => {
            // A bar separates the fixers.
            let hand_texts: Vec<String> = hands.iter().map(|fixer_findings| join_ids(fixer_findings)).collect();
            hand_texts.join(" | ")
        }
        RunEvent::PatchLanded { findings: finding_ids, lines: line_count, .. } => {
            format!("{} ({})", join_ids(finding_ids), phrases::format_count(*line_count, "line"))
        }
        RunEvent::PatchRefused { findings: finding_ids, why: PatchRefusal::Check { command, .. }, .. } => {
            format!("{}: check `{command}` failed", join_ids(finding_ids))
        }
        RunEvent::PatchRefused { findings: finding_ids, why: reason, .. } => {
            format!("{}: {}", join_ids(finding_ids), phrases::describe_refusal(reason))
        }
        RunEvent::DecisionPosted { decision } => format!("{} ({})", decision.question, decision.owner),
        RunEvent::DecisionAnswered { answer, .. } => format!("{} {}", answer.choice, answer.note),
        RunEvent::FileWritten { path: file_path, .. } => file_path.clone(),
        RunEvent::Warned { text: warning_text } => warning_text.clone(),
        // Events without a text of their own are fully described by kind and subject.
        _ => String::new(),
    }
}

/// Describes an effect that was asked for.
fn describe_effect(effect: &Effect) -> String {
    match effect {
        Effect::Freeze(Freeze { subject }) => format!("snapshot {}", subject.title()),
        Effect::Ask(AskAgent { task: agent_task }) => {
            format!("ask {} as {}", agent_task.agent, agent_task.brief.role)
        }
        Effect::TakeIn(TakeIn { before: previous_files, .. }) => {
            format!("check what was changed in {}", phrases::format_count(previous_files.len() as u32, "file"))
        }
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
    format!("{result_text}{elapsed_text}{}", usage.map(describe_call_usage).unwrap_or_default())
}

/// Describes the result of an effect that did not fail.
fn describe_success(effect_reply: &Reply) -> String {
    match effect_reply {
        Reply::Freeze(FreezeOutcome::Frozen(frozen_text)) => {
            format!("{} bytes", phrases::group_thousands(frozen_text.text.len() as u64))
        }
        Reply::Ask(AskOutcome::Answered(answer)) => describe_answer(answer),
        // The hunks of a document are in the landing itself, those of a change in its files.
        Reply::Land(LandOutcome::Landed(landed)) | Reply::TakeIn(LandOutcome::Landed(landed)) => {
            let hunk_count =
                landed.hunks.len() + landed.files.iter().map(|changed_file| changed_file.hunks.len()).sum::<usize>();
            format!("applied, {}", phrases::format_count(hunk_count as u32, "hunk"))
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
        Reply::Inbox(inbox) | Reply::Wait(inbox) => phrases::format_count(inbox.requests.len() as u32, "request"),
        Reply::Sleep(_) | Reply::AwaitReset(_) => "slept".into(),
        // Failures are described by their fault before this function is called.
        Reply::Freeze(FreezeOutcome::Failed { .. })
        | Reply::Ask(AskOutcome::Failed(_))
        | Reply::Land(LandOutcome::Failed { .. })
        | Reply::TakeIn(LandOutcome::Failed { .. })
        | Reply::Restore(RestoreOutcome::Failed { .. })
        | Reply::Write(WriteOutcome::Failed { .. })
        | Reply::Post(PostOutcome::Failed { .. }) => "failed".into(),
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
        AnswerContent::Unreadable { message } => format!("unreadable: {message}"),
    };
    match agent_reply.remarks.len() {
        0 => content_text,
        remark_count => format!("{content_text}, {}", phrases::format_count(remark_count as u32, "remark")),
    }
}

/// Describes the usage of one call, or nothing if the agent reported none.
fn describe_call_usage(usage: &AgentUsage) -> String {
    if *usage == AgentUsage::default() {
        return String::new();
    }
    let estimate_prefix = if usage.estimated { "about " } else { "" };
    let cost_text = usage.cost.map(|cost| format!(" · {}", phrases::format_cost(cost))).unwrap_or_default();
    format!(" · {estimate_prefix}{} tokens{cost_text}", phrases::group_thousands(usage.weighted_tokens()))
}
