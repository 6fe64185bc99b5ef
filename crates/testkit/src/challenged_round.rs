//! A sample journal with a disputed round: the first round of the recorded run, as a build with challengers would record it.

use tribunal_engine::{
    ids::{AgentName, DecisionId, FindingId, Key},
    limits::AgentUsage,
};
use tribunal_workflows::{
    findings::{
        agent_role::AgentRole,
        finding::{DismissalReason, Finding, FindingStatus, Severity, StatusTransition, TransitionCause},
    },
    review::{
        challenge_rules::{ChallengeResult, ChallengerVoice, decide_result, describe_voices},
        event::ReviewEvent,
        questions,
    },
    runs::{
        effect::{AskAgent, AskOutcome, Effect, Reply},
        types::{JournalEntry, RunEvent, find_event},
        view::RunView,
    },
    tasks::{
        brief::{AnswerContent, FindingToChallenge, ReviewBrief},
        claims::{ChallengeVerdict, ChallengerRuling},
        purpose::TaskPurpose,
    },
};

use crate::{SAMPLE_JOURNAL, parse_entries, samples};

/// The quote that refutes finding F2.
pub const COUNTER_QUOTE: &str = "SMS and telephone calls, for responders as well as for subscribers";

/// The journal up to the end of round 1. Of ten findings one was raised twice and one is ungrounded; of the others F2 is
/// refuted, F4 goes from medium to low, and for F5, which is critical, the user has to decide.
pub fn challenged_journal() -> Vec<JournalEntry> {
    let recorded = parse_entries(SAMPLE_JOURNAL);
    let is_round_end =
        |entry: &JournalEntry| matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::RoundEnded { .. }));
    let end_index = recorded.iter().position(is_round_end).unwrap_or_default();
    let mut builder =
        ChallengeJournal { sample_ask: find_sample_ask(&recorded), entries: recorded[..end_index].to_vec() };
    let disputed: Vec<Finding> = builder
        .current_view()
        .all_findings()
        .filter(|candidate| candidate.status.is_open() && candidate.raisers.len() == 1)
        .cloned()
        .collect();
    // Two challengers disagree on F2 and F5, so a third one is asked about these.
    let third_opinion: Vec<Finding> =
        disputed.iter().filter(|candidate| [FindingId(2), FindingId(5)].contains(&candidate.id)).cloned().collect();
    builder.record_ask("1/1", "first", &disputed);
    builder.record_ask("2/1", "second", &disputed);
    builder.record_answer("1/1", "first", &disputed);
    builder.record_answer("2/1", "second", &disputed);
    builder.record_ask("3/1", "third", &third_opinion);
    builder.record_answer("3/1", "third", &third_opinion);
    disputed.iter().for_each(|finding| builder.record_ruling(finding));
    let counts = builder.current_view().finding_counts();
    builder.record_review(ReviewEvent::RoundEnded { round: 1, new: 8, dry: false, counts, unbelieved: 0 });
    builder.entries
}

/// A journal under construction.
struct ChallengeJournal {
    /// A recorded call of an agent, as a template for the others.
    sample_ask: RunEvent,
    entries: Vec<JournalEntry>,
}

/// Finds the first call of an agent in the recorded journal. It panics if there is none.
fn find_sample_ask(recorded: &[JournalEntry]) -> RunEvent {
    let is_ask = |event: &&RunEvent| matches!(event, RunEvent::EffectStarted { effect: Effect::Ask(_), .. });
    match recorded.iter().map(|entry| &entry.event).find(is_ask) {
        Some(event) => event.clone(),
        None => panic!("the recorded journal calls no agent"),
    }
}

fn challenge_key(challenge_name: &str) -> Key {
    Key::new(format!("round-1/challenge/{challenge_name}"))
}

/// What an agent says about a finding: verdict, note and counter-quote.
fn scripted_ruling(agent: &str, finding: FindingId) -> (ChallengeVerdict, &'static str, &'static str) {
    match (finding.0, agent) {
        (2, "first" | "third") => (ChallengeVerdict::Invalid, "the line under Out of Scope settles it", COUNTER_QUOTE),
        (4, _) => (ChallengeVerdict::Ambiguous, "a role may be named in another document", ""),
        (5, "second") => (ChallengeVerdict::Ambiguous, "it depends on who reads that mailbox", ""),
        (5, "third") => (ChallengeVerdict::Invalid, "the secret signs nothing yet", "An owner can create webhooks"),
        _ => (ChallengeVerdict::Valid, "", ""),
    }
}

impl ChallengeJournal {
    fn current_view(&self) -> RunView {
        RunView::from_entries(&self.entries)
    }

    fn record_event(&mut self, event: RunEvent) {
        let Some(last_entry) = self.entries.last().cloned() else { return };
        let (seq, id) = (last_entry.seq + 1, format!("challenged-{}", last_entry.seq + 1));
        self.entries.push(JournalEntry { seq, id, event, ..last_entry });
    }

    fn record_review(&mut self, event: ReviewEvent) {
        self.record_event(RunEvent::from_workflow(event));
    }

    fn record_ask(&mut self, challenge_name: &str, agent_name: &str, findings: &[Finding]) {
        let mut event = self.sample_ask.clone();
        if let RunEvent::EffectStarted { key: event_key, effect: Effect::Ask(AskAgent { task, .. }), .. } = &mut event
            && let Some(sample_brief) = task.brief.as_review()
        {
            *event_key = challenge_key(challenge_name);
            task.agent = AgentName::new(agent_name);
            let mut brief = ReviewBrief::new(AgentRole::Challenger, sample_brief.subject.clone(), 1);
            brief.disputed = findings.iter().map(FindingToChallenge::from_finding).collect();
            TaskPurpose { job: task.job, expects: task.expects } = AgentRole::Challenger.task_purpose();
            task.brief = brief.into();
        }
        self.record_event(event);
    }

    fn record_answer(&mut self, challenge_name: &str, agent_name: &str, findings: &[Finding]) {
        let ruling = |finding: &Finding| {
            let (holds, note, counter) = scripted_ruling(agent_name, finding.id);
            ChallengerRuling { id: finding.id, holds, note: note.into(), counter: counter.into() }
        };
        let rulings: Vec<ChallengerRuling> = findings.iter().map(ruling).collect();
        let usage = AgentUsage { input_tokens: 900, output_tokens: 100, ..AgentUsage::default() };
        let mut reply = samples::rulings_reply(Vec::new());
        if let Reply::Ask(AskOutcome::Answered(reply)) = &mut reply {
            reply.content = AnswerContent::Rulings { rulings, parts: Vec::new(), unknown: Vec::new() };
            reply.usage = usage;
        }
        self.record_event(RunEvent::EffectFinished { key: challenge_key(challenge_name), segment: 1, reply });
        let (agent, finding_count) = (AgentName::new(agent_name), findings.len() as u32);
        self.record_review(ReviewEvent::ChallengerAnswered {
            key: challenge_key(challenge_name),
            agent,
            findings: finding_count,
            usage,
            silent: Vec::new(),
            fault: None,
        });
    }

    fn record_ruling(&mut self, finding: &Finding) {
        let finding_id = finding.id;
        let agents: &[&str] =
            if matches!(finding_id.0, 2 | 5) { &["first", "second", "third"] } else { &["first", "second"] };
        let voice = |agent: &&str| {
            let (holds, note, counter) = scripted_ruling(agent, finding_id);
            ChallengerVoice {
                agent: AgentName::new(*agent),
                provider: String::new(),
                holds,
                note: note.into(),
                counter: counter.into(),
            }
        };
        let voices: Vec<ChallengerVoice> = agents.iter().map(voice).collect();
        let ruled = decide_result(&voices, finding.severity);
        // Doubt lowers the severity of F4 by one step.
        let severity = if finding_id.0 == 4 { Severity::Low } else { finding.severity };
        self.record_review(ReviewEvent::FindingRuled { finding: finding_id, ruled, severity, voices: voices.clone() });
        match ruled {
            ChallengeResult::Valid | ChallengeResult::Unheard | ChallengeResult::Person => {}
            ChallengeResult::Invalid => {
                let dismissed = FindingStatus::Dismissed { why: DismissalReason::Invalid };
                self.record_move(
                    finding_id,
                    StatusTransition::new(
                        dismissed,
                        TransitionCause::Refuted,
                        describe_voices(&voices, ChallengeVerdict::Invalid),
                    ),
                );
            }
            ChallengeResult::Ambiguous if severity == Severity::Critical => {
                let decision = DecisionId::new("D1");
                let disputed_decision = questions::ask_about_disputed_finding(
                    decision.clone(),
                    finding_id,
                    format!("{finding_id}: {}", finding.description),
                );
                self.record_event(RunEvent::DecisionPosted { decision: disputed_decision });
                let note = "challengers could not settle this critical finding";
                self.record_move(
                    finding_id,
                    StatusTransition::new(FindingStatus::Blocked { decision }, TransitionCause::NoAgreement, note),
                );
            }
            ChallengeResult::Ambiguous => {
                let doubt_text = describe_voices(&voices, ChallengeVerdict::Ambiguous);
                let note = format!("in doubt, counted as {severity}; {doubt_text}");
                self.record_move(
                    finding_id,
                    StatusTransition::new(FindingStatus::Open, TransitionCause::InDoubt, note),
                );
            }
        }
    }

    fn record_move(&mut self, finding: FindingId, transition: StatusTransition) {
        self.record_review(ReviewEvent::FindingMoved { finding, transition });
    }
}
