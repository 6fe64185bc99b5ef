//! A run with every entry of its journal, one line each: number, time, kind, what it is about, what it says.
//!
//! For people who want to know what really happened; [`crate::Lines`] tells the story instead.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use tribunal_core::{
    brief::{AgentReply, Content},
    effect::{Effect, Reply},
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
            Event::EffectFinished { reply: Reply::Failed { .. } | Reply::NotLanded { .. }, .. } => Style::Bad,
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
        Event::FindingMoved { to, note, .. } => format!("{}: {note}", to.word()),
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
        Event::FileWritten { path } => path.clone(),
        Event::Warned { text } => text.clone(),
        _ => String::new(),
    }
}

fn asked(effect: &Effect) -> String {
    match effect {
        Effect::Freeze { subject } => format!("freeze {}", subject.title()),
        Effect::Ask { task } => format!("ask {} as {}", task.agent, task.brief.role),
        Effect::TakeIn { before, .. } => {
            format!("look at what was changed in {}", words::count(before.len() as u32, "file"))
        }
        Effect::Land { by, .. } => format!("land what {by} made"),
        Effect::Restore { stray } => format!("put {} back", stray.path),
        Effect::Write { text, .. } => format!("write {} bytes", words::thousands(text.len() as u64)),
        Effect::Post { decision } => format!("post {}", decision.id),
        Effect::Inbox => "look into the inbox".into(),
        Effect::Wait { ending } => format!("wait: {}", ending.detail),
        Effect::Sleep { ms } => format!("sleep {ms} ms"),
        Effect::AwaitReset { agent, until_ms, .. } => {
            let until = Stamp { wall_ms: *until_ms, awake_ms: 0 };
            format!("wait for {agent} until {} UTC", until.utc())
        }
    }
}

fn replied(reply: &Reply, took: Option<u64>) -> String {
    let (what, usage) = match reply {
        Reply::Frozen { text, .. } => (format!("{} bytes", words::thousands(text.len() as u64)), None),
        Reply::Agent(reply) => (answered(reply), Some(&reply.usage)),
        Reply::Failed { fault, usage, .. } => (fault.detail.clone(), Some(usage)),
        Reply::Landed { hunks, files, .. } => {
            let hunks = hunks.len() + files.iter().map(|file| file.hunks.len()).sum::<usize>();
            (format!("landed, {}", words::count(hunks as u32, "hunk")), None)
        }
        Reply::NotLanded { why } => (format!("not landed: {}", words::refused(why)), None),
        Reply::Written { path, .. } => (path.clone(), None),
        Reply::Restored { parked } => {
            (parked.as_ref().map_or("put back".into(), |path| format!("put back, parked as {path}")), None)
        }
        Reply::Posted => ("posted".into(), None),
        Reply::Requests { requests } => (words::count(requests.len() as u32, "request"), None),
        Reply::Slept => ("slept".into(), None),
    };
    let took = took.map(|ms| format!(" · {ms} ms")).unwrap_or_default();
    format!("{what}{took}{}", usage.map(spent).unwrap_or_default())
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
