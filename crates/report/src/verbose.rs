//! A run with every entry of its journal, one line each: number, time, kind, what it is about, what it says.
//!
//! For people who want to know what really happened; [`crate::Lines`] tells the story instead.

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

#[derive(Debug)]
pub struct Verbose<W> {
    out: W,
    screen: Screen,
    /// When effects that are under way were asked, in awake time.
    asked: BTreeMap<(u32, Key), u64>,
}

impl<W: Write> Verbose<W> {
    pub fn new(out: W, screen: Screen) -> Verbose<W> {
        Verbose { out, screen, asked: BTreeMap::new() }
    }

    /// How long an effect took, once it ended.
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
        let took = self.took(entry);
        let event = &entry.event;
        let head = format!("{:>5}  {:>9}  {:<21}", entry.seq, words::moment(entry.at.awake_ms), event.kind());
        let about = event.about();
        let said = match event {
            Event::EffectFinished { reply, .. } => replied(reply, took),
            other => says(other),
        };
        let parts: Vec<&str> =
            [about.as_str(), said.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
        let text = self.screen.fit(head.chars().count() + 1, &parts.join(": "));
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

/// What an entry says beyond its kind and what it is about.
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
        Event::RoundEnded { new, dry, counts, .. } => {
            format!("{new} new, {}{}", words::tally(counts), if *dry { ", dry" } else { "" })
        }
        Event::ConfidenceCalculated { confidence, .. } => words::confidence(confidence),
        Event::Session(event) => session::says(event),
        other => says_of_findings(other),
    }
}

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
        _ => String::new(),
    }
}

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

fn replied(reply: &Reply, took: Option<u64>) -> String {
    let usage = match reply {
        Reply::Ask(AskOutcome::Answered(reply)) => Some(&reply.usage),
        Reply::Ask(AskOutcome::Failed(failed)) => Some(&failed.usage),
        _ => None,
    };
    let what = match reply.fault() {
        Some(fault) => fault.detail.clone(),
        None => done(reply),
    };
    let took = took.map(|ms| format!(" · {ms} ms")).unwrap_or_default();
    format!("{what}{took}{}", usage.map(spent).unwrap_or_default())
}

/// What came of an effect that did not fail.
fn done(reply: &Reply) -> String {
    match reply {
        Reply::Freeze(FreezeOutcome::Frozen(frozen)) => {
            format!("{} bytes", words::thousands(frozen.text.len() as u64))
        }
        Reply::Ask(AskOutcome::Answered(reply)) => answered(reply),
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
        // Told with its fault.
        Reply::Freeze(FreezeOutcome::Failed { .. })
        | Reply::Ask(AskOutcome::Failed(_))
        | Reply::Land(LandOutcome::Failed { .. })
        | Reply::TakeIn(LandOutcome::Failed { .. })
        | Reply::Restore(RestoreOutcome::Failed { .. })
        | Reply::Write(WriteOutcome::Failed { .. })
        | Reply::Post(PostOutcome::Failed { .. }) => "failed".into(),
    }
}

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

fn spent(usage: &Usage) -> String {
    if *usage == Usage::default() {
        return String::new();
    }
    let estimated = if usage.estimated { "about " } else { "" };
    let cost = usage.cost.map(|cost| format!(" · {cost} in cost")).unwrap_or_default();
    format!(" · {estimated}{} tokens{cost}", words::thousands(usage.weighted()))
}
