//! Describes the events of a review in one line each, for the verbose log.

use tribunal_engine::files::PatchRefusal;
use tribunal_workflows::review::event::ReviewEvent;

use super::phrases::{self, join_ids};
use crate::{
    development_text::describe_checks,
    phrases::{describe_call_usage, describe_refusal, format_count},
};

/// Describes what an event says beyond its kind and its subject.
pub(super) fn describe_event(event: &ReviewEvent) -> String {
    match event {
        ReviewEvent::LevelChosen { level, why: reason, .. } => format!("{level}: {reason}"),
        ReviewEvent::RoundStarted { of: max_rounds, .. } => format!("of at most {max_rounds}"),
        ReviewEvent::SeatAnswered { agent: agent_name, raised: raised_count, usage, .. } => {
            format!("{}, {agent_name}{}", phrases::describe_raised(*raised_count), describe_call_usage(usage))
        }
        ReviewEvent::SeatIncomplete { fault, .. } | ReviewEvent::FixerFailed { fault, .. } => fault.detail.clone(),
        ReviewEvent::ChallengerAnswered { fault: Some(fault), .. } => fault.detail.clone(),
        ReviewEvent::ChallengerAnswered { agent: agent_name, findings: finding_count, usage, .. } => {
            format!("{agent_name} on {}{}", format_count(*finding_count, "finding"), describe_call_usage(usage))
        }
        ReviewEvent::JudgeAnswered { fault: Some(fault), .. } => fault.detail.clone(),
        ReviewEvent::JudgeAnswered { agent: agent_name, usage, .. } => {
            format!("{agent_name}: {}{}", phrases::describe_judgement(event), describe_call_usage(usage))
        }
        ReviewEvent::RoundEnded { new: new_findings, dry: is_dry, counts, unbelieved, .. } => {
            let round_text = phrases::describe_round(phrases::RoundNumbers {
                new_findings: *new_findings,
                is_dry: *is_dry,
                unbelieved: *unbelieved,
                counts,
            });
            format!("{round_text} · {}", phrases::describe_counts(counts))
        }
        ReviewEvent::ConfidenceCalculated { confidence, .. } => phrases::describe_confidence(confidence),
        ReviewEvent::FileWritten { path: file_path, .. } => file_path.clone(),
        ReviewEvent::BaselineChecked { report } => describe_checks(report),
        ReviewEvent::FindingRaised { .. }
        | ReviewEvent::FindingJoined { .. }
        | ReviewEvent::FindingMoved { .. }
        | ReviewEvent::DismissalsKept { .. }
        | ReviewEvent::FindingRuled { .. }
        | ReviewEvent::FixersDealt { .. }
        | ReviewEvent::PatchLanded { .. }
        | ReviewEvent::PatchRefused { .. } => describe_finding_event(event),
    }
}

/// Describes events about findings and their patches.
fn describe_finding_event(event: &ReviewEvent) -> String {
    match event {
        ReviewEvent::FindingRaised { finding } => format!("{}: {}", finding.severity, finding.description),
        ReviewEvent::FindingJoined { severity, raiser, .. } => format!("{severity}, also by {}", raiser.role),
        ReviewEvent::FindingMoved { transition, .. } => {
            format!("{}: {}", transition.to.as_str(), transition.note)
        }
        ReviewEvent::DismissalsKept { findings: finding_ids, runs } => {
            phrases::describe_kept_dismissals(finding_ids, runs)
        }
        ReviewEvent::FindingRuled { ruled, severity, voices, .. } => {
            let voice_texts = voices.iter().map(|voice| format!("{} {}", voice.agent, voice.holds));
            format!("{ruled}, {severity}: {}", voice_texts.collect::<Vec<_>>().join(", "))
        }
        ReviewEvent::FixersDealt { hands, .. } => {
            // A bar separates the fixers.
            let hand_texts: Vec<String> = hands.iter().map(|fixer_findings| join_ids(fixer_findings)).collect();
            hand_texts.join(" | ")
        }
        ReviewEvent::PatchLanded { findings: finding_ids, lines: line_count, .. } => {
            format!("{} ({})", join_ids(finding_ids), format_count(*line_count, "line"))
        }
        ReviewEvent::PatchRefused { findings: finding_ids, why: PatchRefusal::Check { command, .. }, .. } => {
            format!("{}: check `{command}` failed", join_ids(finding_ids))
        }
        ReviewEvent::PatchRefused { findings: finding_ids, why: reason, .. } => {
            format!("{}: {}", join_ids(finding_ids), describe_refusal(reason))
        }
        _ => String::new(),
    }
}
