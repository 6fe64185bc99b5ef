//! Writes every entry of a journal as one line: number, time, kind, subject and description.
//!
//! This is for users who want to know what really happened; [`crate::LineReporter`] tells the story instead.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use tribunal_core::{
    brief::{AgentReply, Content},
    effect::{
        AskAgent, AskOutcome, AwaitReset, Effect, Freeze, FreezeOutcome, Land, LandOutcome, PostDecision,
        PostOutcome, Reply, Restore, RestoreOutcome, Sleep, TakeIn, WaitForUser, WriteFile, WriteOutcome,
    },
    event::{Entry, Event},
    ids::Key,
    limits::Usage,
    stamp::Stamp,
};

use crate::{
    Reporter, session,
    style::{Screen, Style},
    words::{self, ids},
};

/// Writes one line for every journal entry.
#[derive(Debug)]
pub struct Verbose<W> {
    out: W,
    screen: Screen,
    /// Awake time at which the effects under way were asked, by stretch and key.
    asked: BTreeMap<(u32, Key), u64>,
}

impl<W: Write> Verbose<W> {
    pub fn new(out: W, screen: Screen) -> Verbose<W> {
        Verbose { out, screen, asked: BTreeMap::new() }
    }

    /// Returns how long an effect took, once it ended.
    fn took(&mut self, entry: &Entry) -> Option<u64> {
        match &entry.event {
            Event::EffectStarted { key, stretch, .. } => {
                self.asked.insert((*stretch, key.clone()), entry.at.awake_ms);
                None
            }
            Event::EffectFinished { key, stretch, .. } => {
                let since = self.asked.remove(&(*stretch, key.clone()))?;
                Some(entry.at.awake_ms.saturating_sub(since))
            }
            _ => None,
        }
    }
}

impl<W: Write> Reporter for Verbose<W> {
    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        // The duration has to be taken for every entry, even if its line does not show one.
        let took = self.took(entry);
        let event = &entry.event;
        // Numbers, times and kinds are padded, so that subjects line up.
        let head = format!("{:>5}  {:>9}  {:<21}", entry.seq, words::moment(entry.at.awake_ms), event.kind());
        let about = event.about();
        let said = match event {
            Event::EffectFinished { reply, .. } => replied(reply, took),
            other => says(other),
        };
        let parts: Vec<&str> =
            [about.as_str(), said.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
        // Subject and description are joined only if both are there.
        let text = self.screen.fit(head.chars().count() + 1, &parts.join(": "));
        // Only failures, refusals and warnings stand out; the bookkeeping of effects is dimmed.
        let style = match event {
            Event::SeatIncomplete { .. } | Event::FixerFailed { .. } | Event::PatchRefused { .. } => {
                Style::Bad
            }
            Event::ChallengerAnswered { fault: Some(_), .. } => Style::Bad,
            Event::EffectFinished { reply, .. } if reply.fault().is_some() => Style::Bad,
            Event::EffectFinished {
                reply: Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }),
                ..
            } => Style::Bad,
            Event::Warned { .. } | Event::Unknown => Style::Warn,
            Event::EffectStarted { .. } | Event::EffectFinished { .. } | Event::Boundary { .. } => Style::Dim,
            _ => Style::Plain,
        };
        let line = format!("{head} {text}");
        writeln!(self.out, "{}", self.screen.paint(style, line.trim_end()))
    }

    fn past(&mut self, entry: &Entry) {
        self.took(entry);
    }
}

/// Describes what an entry says beyond its kind and its subject.
fn says(event: &Event) -> String {
    match event {
        Event::RunStarted { workflow, version, build, settings } => {
            format!("{workflow} {version} of {} by {build}", settings.subject.title())
        }
        Event::RunResumed { life } => format!("start {life}"),
        Event::EffectStarted { effect, .. } => asked(effect),
        Event::RunParked(summary) | Event::RunFinished(summary) => {
            let word = summary.outcome.map_or("stopped", |outcome| outcome.as_str());
            format!("{word} · {} · {}", summary.detail, words::spent(summary))
        }
        Event::LevelChosen { level, why, .. } => format!("{level}: {why}"),
        Event::RoundStarted { of, .. } => format!("of at most {of}"),
        Event::SeatAnswered { agent, raised, usage, .. } => {
            format!("{agent} raised {raised}{}", spent(usage))
        }
        Event::SeatIncomplete { fault, .. } | Event::FixerFailed { fault, .. } => fault.detail.clone(),
        Event::ChallengerAnswered { agent, findings, usage, fault, .. } => match fault {
            Some(fault) => fault.detail.clone(),
            None => format!("{agent} on {}{}", words::count(*findings, "finding"), spent(usage)),
        },
        // `dry` is repeated here because the count alone does not say whether the goal accepts it.
        Event::RoundEnded { new, dry, counts, .. } => {
            format!("{new} new, {}{}", words::tally(counts), if *dry { ", dry" } else { "" })
        }
        Event::ConfidenceCalculated { confidence, .. } => words::confidence(confidence),
        Event::Session(event) => session::says(event),
        other => says_of_findings(other),
    }
}

/// Describes events about findings, patches, decisions and files.
fn says_of_findings(event: &Event) -> String {
    match event {
        Event::FindingRaised { finding } => format!("{}: {}", finding.severity, finding.description),
        Event::FindingJoined { severity, raiser, .. } => format!("{severity}, also by {}", raiser.role),
        Event::FindingMoved { transition, .. } => format!("{}: {}", transition.to.word(), transition.note),
        Event::FindingRuled { ruled, severity, voices, .. } => {
            let said = voices.iter().map(|voice| format!("{} {}", voice.agent, voice.holds));
            format!("{ruled}, {severity}: {}", said.collect::<Vec<_>>().join(", "))
        }
        Event::FixersDealt { hands, .. } => {
            // A bar separates the fixers.
            let hands: Vec<String> = hands.iter().map(|hand| ids(hand)).collect();
            hands.join(" | ")
        }
        Event::PatchLanded { findings, lines, .. } => {
            format!("{} ({})", ids(findings), words::count(*lines, "line"))
        }
        Event::PatchRefused { findings, why, .. } => format!("{}: {}", ids(findings), words::refused(why)),
        Event::DecisionPosted { decision } => format!("for {}: {}", decision.owner, decision.question),
        Event::DecisionAnswered { answer, .. } => format!("{} {}", answer.choice, answer.note),
        Event::FileWritten { path, .. } => path.clone(),
        Event::Warned { text } => text.clone(),
        // Events without a text of their own are fully described by kind and subject.
        _ => String::new(),
    }
}

/// Describes an effect that was asked for.
fn asked(effect: &Effect) -> String {
    match effect {
        Effect::Freeze(Freeze { subject }) => format!("freeze {}", subject.title()),
        Effect::Ask(AskAgent { task }) => format!("ask {} as {}", task.agent, task.brief.role),
        Effect::TakeIn(TakeIn { before, .. }) => {
            format!("look at what was changed in {}", words::count(before.len() as u32, "file"))
        }
        Effect::Land(Land { by, .. }) => format!("land what {by} made"),
        Effect::Restore(Restore { stray }) => format!("put {} back", stray.path),
        Effect::Write(WriteFile { text, .. }) => {
            format!("write {} bytes", words::thousands(text.len() as u64))
        }
        Effect::Post(PostDecision { decision }) => format!("post {}", decision.id),
        Effect::Inbox(_) => "look into the inbox".into(),
        Effect::Wait(WaitForUser { ending }) => format!("wait: {}", ending.detail),
        Effect::Sleep(Sleep { ms }) => format!("sleep {ms} ms"),
        Effect::AwaitReset(AwaitReset { agent, until_ms, .. }) => {
            let until = Stamp { wall_ms: *until_ms, awake_ms: 0 };
            format!("wait for {agent} until {} UTC", until.utc())
        }
    }
}

/// Describes the reply to an effect, with its duration and usage.
fn replied(reply: &Reply, took: Option<u64>) -> String {
    // A failed call has used tokens, too.
    let usage = match reply {
        Reply::Ask(AskOutcome::Answered(reply)) => Some(&reply.usage),
        Reply::Ask(AskOutcome::Failed(failed)) => Some(&failed.usage),
        _ => None,
    };
    let what = match reply.fault() {
        Some(fault) => fault.detail.clone(),
        None => done(reply),
    };
    // The duration is unknown if the start of the effect was not seen.
    let took = took.map(|ms| format!(" · {ms} ms")).unwrap_or_default();
    format!("{what}{took}{}", usage.map(spent).unwrap_or_default())
}

/// Describes the result of an effect that did not fail.
fn done(reply: &Reply) -> String {
    match reply {
        Reply::Freeze(FreezeOutcome::Frozen(frozen)) => {
            format!("{} bytes", words::thousands(frozen.text.len() as u64))
        }
        Reply::Ask(AskOutcome::Answered(reply)) => answered(reply),
        // A landing counts hunks of the main file and of all other files separately.
        Reply::Land(LandOutcome::Landed(landed)) | Reply::TakeIn(LandOutcome::Landed(landed)) => {
            let hunks = landed.hunks.len() + landed.files.iter().map(|file| file.hunks.len()).sum::<usize>();
            format!("landed, {}", words::count(hunks as u32, "hunk"))
        }
        Reply::Land(LandOutcome::Refused { why }) | Reply::TakeIn(LandOutcome::Refused { why }) => {
            format!("not landed: {}", words::refused(why))
        }
        Reply::Restore(RestoreOutcome::Restored { parked }) => {
            parked.as_ref().map_or("put back".into(), |path| format!("put back, parked as {path}"))
        }
        Reply::Write(WriteOutcome::Written { path, .. }) => path.clone(),
        Reply::Write(WriteOutcome::Edited { requests }) => {
            format!("edited: {}", words::count(requests.len() as u32, "request"))
        }
        Reply::Post(PostOutcome::Posted) => "posted".into(),
        Reply::Inbox(said) | Reply::Wait(said) => words::count(said.requests.len() as u32, "request"),
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
fn answered(reply: &AgentReply) -> String {
    let what = match &reply.content {
        Content::Findings { raised } => words::count(raised.len() as u32, "finding"),
        Content::Fixes { claims } => words::count(claims.len() as u32, "claim"),
        Content::Rulings { rulings } => words::count(rulings.len() as u32, "verdict"),
        Content::Unreadable { message } => format!("unreadable: {message}"),
    };
    match reply.remarks.len() {
        0 => what,
        many => format!("{what}, {}", words::count(many as u32, "remark")),
    }
}

/// Describes the usage of one call, or nothing if the agent reported none.
fn spent(usage: &Usage) -> String {
    if *usage == Usage::default() {
        return String::new();
    }
    let estimated = if usage.estimated { "about " } else { "" };
    let cost = usage.cost.map(|cost| format!(" · {cost} in cost")).unwrap_or_default();
    format!(" · {estimated}{} tokens{cost}", words::thousands(usage.weighted()))
}
