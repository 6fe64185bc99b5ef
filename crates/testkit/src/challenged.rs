//! A sample journal with a disputed round: the first round of the recorded run, as a build with challengers would record it.

use tribunal_core::{
    brief::{Brief, Content, Disputed, Holds, Ruling},
    challenge::{Ruled, Voice, reason, rule},
    decision::Decision,
    effect::{AskAgent, AskOutcome, Effect, Reply},
    event::{Entry, Event},
    finding::{Cause, Dismissal, Finding, Severity, Status, Transition},
    ids::{AgentName, DecisionId, FindingId, Key},
    level::Role,
    limits::Usage,
    view::RunView,
};

use crate::{SAMPLE_JOURNAL, entries, samples};

/// The quote that refutes finding F2.
pub const COUNTER: &str = "SMS and telephone calls, for responders as well as for subscribers";

/// The journal up to the end of round 1. Of ten findings one was raised twice and one is ungrounded; of the others F2 is
/// refuted, F4 goes from medium to low, and for F5, which is critical, the user has to decide.
pub fn challenged() -> Vec<Entry> {
    let recorded = entries(SAMPLE_JOURNAL);
    let ends = |entry: &Entry| matches!(entry.event, Event::RoundEnded { .. });
    let at = recorded.iter().position(ends).unwrap_or_default();
    let mut told = Told { ask: asked(&recorded), all: recorded[..at].to_vec() };
    let disputed: Vec<Finding> =
        told.view().findings.into_values().filter(|f| f.status.is_open() && f.raisers.len() == 1).collect();
    // Two challengers disagree on F2 and F5, so a third one is asked about these.
    let third: Vec<Finding> =
        disputed.iter().filter(|f| [FindingId(2), FindingId(5)].contains(&f.id)).cloned().collect();
    told.ask("1/1", "first", &disputed);
    told.ask("2/1", "second", &disputed);
    told.answer("1/1", "first", &disputed);
    told.answer("2/1", "second", &disputed);
    told.ask("3/1", "third", &third);
    told.answer("3/1", "third", &third);
    disputed.iter().for_each(|finding| told.settle(finding));
    let counts = told.view().counts();
    told.note(Event::RoundEnded { round: 1, new: 8, dry: false, counts });
    told.all
}

/// A journal under construction.
struct Told {
    /// A recorded call of an agent, as a template for the others.
    ask: Event,
    all: Vec<Entry>,
}

/// Finds the first call of an agent in the recorded journal.
fn asked(recorded: &[Entry]) -> Event {
    let ask = |event: &&Event| matches!(event, Event::EffectStarted { effect: Effect::Ask(_), .. });
    recorded.iter().map(|entry| &entry.event).find(ask).cloned().unwrap_or(Event::Unknown)
}

fn key(name: &str) -> Key {
    Key::new(format!("round-1/challenge/{name}"))
}

/// What an agent says about a finding: verdict, note and counter-quote.
fn says(agent: &str, finding: FindingId) -> (Holds, &'static str, &'static str) {
    match (finding.0, agent) {
        (2, "first" | "third") => (Holds::Invalid, "the line under Out of Scope settles it", COUNTER),
        (4, _) => (Holds::Ambiguous, "a role may be named in another document", ""),
        (5, "second") => (Holds::Ambiguous, "it depends on who reads that mailbox", ""),
        (5, "third") => (Holds::Invalid, "the secret signs nothing yet", "An owner can create webhooks"),
        _ => (Holds::Valid, "", ""),
    }
}

impl Told {
    fn view(&self) -> RunView {
        RunView::of(&self.all)
    }

    fn note(&mut self, event: Event) {
        let Some(last) = self.all.last().cloned() else { return };
        let (seq, id) = (last.seq + 1, format!("challenged-{}", last.seq + 1));
        self.all.push(Entry { seq, id, event, ..last });
    }

    fn ask(&mut self, name: &str, by: &str, findings: &[Finding]) {
        let mut event = self.ask.clone();
        if let Event::EffectStarted { key: named, effect: Effect::Ask(AskAgent { task }), .. } = &mut event {
            *named = key(name);
            task.agent = AgentName::new(by);
            task.brief = Brief::new(Role::Challenger, task.brief.subject.clone(), 1);
            task.brief.disputed = findings.iter().map(Disputed::of).collect();
        }
        self.note(event);
    }

    fn answer(&mut self, name: &str, by: &str, findings: &[Finding]) {
        let ruling = |finding: &Finding| {
            let (holds, note, counter) = says(by, finding.id);
            Ruling { id: finding.id, holds, note: note.into(), counter: counter.into() }
        };
        let rulings: Vec<Ruling> = findings.iter().map(ruling).collect();
        let usage = Usage { input_tokens: 900, output_tokens: 100, ..Usage::default() };
        let mut reply = samples::rulings(Vec::new());
        if let Reply::Ask(AskOutcome::Answered(reply)) = &mut reply {
            reply.content = Content::Rulings { rulings };
            reply.usage = usage;
        }
        self.note(Event::EffectFinished { key: key(name), stretch: 1, reply });
        let (agent, findings) = (AgentName::new(by), findings.len() as u32);
        self.note(Event::ChallengerAnswered {
            key: key(name),
            agent,
            findings,
            usage,
            silent: Vec::new(),
            fault: None,
        });
    }

    fn settle(&mut self, finding: &Finding) {
        let id = finding.id;
        let agents: &[&str] =
            if matches!(id.0, 2 | 5) { &["first", "second", "third"] } else { &["first", "second"] };
        let voice = |agent: &&str| {
            let (holds, note, counter) = says(agent, id);
            Voice { agent: AgentName::new(*agent), holds, note: note.into(), counter: counter.into() }
        };
        let voices: Vec<Voice> = agents.iter().map(voice).collect();
        let ruled = rule(&voices);
        // Doubt lowers the severity of F4 by one step.
        let severity = if id.0 == 4 { Severity::Low } else { finding.severity };
        self.note(Event::FindingRuled { finding: id, ruled, severity, voices: voices.clone() });
        match ruled {
            Ruled::Valid | Ruled::Unheard | Ruled::Person => {}
            Ruled::Invalid => {
                let to = Status::Dismissed { why: Dismissal::Invalid };
                self.moved(id, Transition::new(to, Cause::Refuted, reason(&voices, Holds::Invalid)));
            }
            Ruled::Ambiguous if severity == Severity::Critical => {
                let decision = DecisionId::new("D1");
                let asked =
                    Decision::disputed(decision.clone(), id, format!("{id}: {}", finding.description));
                self.note(Event::DecisionPosted { decision: asked });
                let note = "challengers do not agree on something critical";
                self.moved(id, Transition::new(Status::Blocked { decision }, Cause::NoAgreement, note));
            }
            Ruled::Ambiguous => {
                let note = format!("in doubt, taken as {severity}; {}", reason(&voices, Holds::Ambiguous));
                self.moved(id, Transition::new(Status::Open, Cause::InDoubt, note));
            }
        }
    }

    fn moved(&mut self, finding: FindingId, transition: Transition) {
        self.note(Event::FindingMoved { finding, transition });
    }
}
