//! Rulings of challengers on findings, as the journal records them: the verdict, who voted how, and the quoted evidence.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_engine::ids::FindingId;
use tribunal_workflows::{
    findings::finding::Severity,
    review::{
        challenge_rules::{ChallengeResult, ChallengerVoice},
        event::ReviewEvent,
    },
    runs::types::{JournalEntry, RunEvent, find_event},
    tasks::claims::ChallengeVerdict,
};

use crate::phrases;

/// The verdict on one finding and the votes that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub verdict: ChallengeResult,
    /// The severity before the ruling.
    pub severity_before: Severity,
    /// The severity since the ruling.
    pub severity_after: Severity,
    pub voices: Vec<ChallengerVoice>,
}

/// All rulings of a run, by finding.
#[derive(Clone, Debug, Default)]
pub struct RulingIndex {
    by_finding: BTreeMap<FindingId, Ruling>,
    severities: BTreeMap<FindingId, Severity>,
}

impl RulingIndex {
    /// Collects the rulings from a journal.
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> RulingIndex {
        let mut index = RulingIndex::default();
        entries.into_iter().for_each(|journal_entry| index.track_event(&journal_entry.event));
        index
    }

    /// Finds the ruling on a finding, if it was challenged.
    pub fn find_ruling(&self, finding_id: FindingId) -> Option<&Ruling> {
        self.by_finding.get(&finding_id)
    }

    /// Updates severities and rulings with the next event of the journal.
    pub(crate) fn track_event(&mut self, event: &RunEvent) {
        match find_event::<ReviewEvent>(event) {
            Some(ReviewEvent::FindingRaised { finding }) => {
                self.severities.insert(finding.id, finding.severity);
            }
            // Joining a duplicate may raise the severity, and a ruling is compared with the latest one.
            Some(ReviewEvent::FindingJoined { finding: finding_id, severity, .. }) => {
                self.severities.insert(*finding_id, *severity);
            }
            Some(ReviewEvent::FindingRuled { finding: finding_id, ruled: verdict, severity, voices }) => {
                let severity_before = self.severities.insert(*finding_id, *severity).unwrap_or(*severity);
                let (verdict, severity_after, voices) = (*verdict, *severity, voices.clone());
                self.by_finding.insert(*finding_id, Ruling { verdict, severity_before, severity_after, voices });
            }
            _ => {}
        }
    }
}

impl Ruling {
    /// Describes the verdict: `in doubt, high → medium (1 valid, 2 ambiguous)`.
    pub fn describe(&self) -> String {
        match self.verdict {
            ChallengeResult::Valid => format!("upheld by {}", self.describe_voices(ChallengeVerdict::Valid)),
            ChallengeResult::Person => {
                format!("severity set by you, {} → {}", self.severity_before, self.severity_after)
            }
            ChallengeResult::Invalid => {
                format!("refuted by {}", self.describe_voices(ChallengeVerdict::Invalid))
            }
            ChallengeResult::Unheard => "no challenger answered, so it stays as raised".to_string(),
            // Challengers cannot lower a critical finding by themselves; the user decides about it.
            ChallengeResult::Ambiguous if self.severity_after == Severity::Critical => {
                format!("in doubt ({}), waiting for your decision", self.describe_split())
            }
            ChallengeResult::Ambiguous if self.severity_before == self.severity_after => {
                format!("in doubt, stays {} ({})", self.severity_after, self.describe_split())
            }
            ChallengeResult::Ambiguous => {
                format!("in doubt, {} → {} ({})", self.severity_before, self.severity_after, self.describe_split())
            }
        }
    }

    /// Returns the note and the quoted evidence of the voice that speaks most clearly against the finding.
    pub fn strongest_objection(&self) -> Option<(&str, &str)> {
        // Votes that agree with the finding are never shown as objections to it.
        let is_against = |voice: &&ChallengerVoice| match self.verdict {
            ChallengeResult::Invalid => voice.holds == ChallengeVerdict::Invalid,
            ChallengeResult::Ambiguous => voice.holds != ChallengeVerdict::Valid,
            ChallengeResult::Valid | ChallengeResult::Unheard | ChallengeResult::Person => false,
        };
        let opposing_voices = || self.voices.iter().filter(is_against);
        // A voice that quotes evidence is worth more than one that only asserts something.
        let with_evidence = opposing_voices().find(|voice| !voice.counter.is_empty());
        let chosen_voice = with_evidence.or_else(|| opposing_voices().find(|voice| !voice.note.is_empty()))?;
        Some((chosen_voice.note.as_str(), chosen_voice.counter.as_str()))
    }

    /// Describes who voted so: `2 of 3 challengers (codex, gemini)`. One agent alone is named only if it has refuted a finding.
    fn describe_voices(&self, held_verdict: ChallengeVerdict) -> String {
        let mut agent_names: Vec<&str> = Vec::new();
        let agreeing_voices = self.voices.iter().filter(|voice| voice.holds == held_verdict);
        let agreeing_count = agreeing_voices.inspect(|voice| agent_names.push(voice.agent.as_str())).count();
        // An agent that voted twice is named once.
        let mut seen_names = BTreeSet::new();
        agent_names.retain(|agent_name| seen_names.insert(*agent_name));
        let all_challengers = phrases::format_count(self.voices.len() as u32, "challenger");
        let first_agent = self.voices.first().map(|voice| &voice.agent);
        let is_one_agent = self.voices.iter().all(|voice| Some(&voice.agent) == first_agent);
        let is_told = !is_one_agent || held_verdict == ChallengeVerdict::Invalid;
        let names_text = if !is_told { String::new() } else { format!(" ({})", agent_names.join(", ")) };
        format!("{agreeing_count} of {all_challengers}{names_text}")
    }

    /// Describes how the votes are split: `1 valid, 2 ambiguous`.
    fn describe_split(&self) -> String {
        let count_votes =
            |held_verdict: ChallengeVerdict| self.voices.iter().filter(|voice| voice.holds == held_verdict).count();
        // Ambiguous votes come last, because they decide nothing by themselves.
        let vote_counts = [ChallengeVerdict::Valid, ChallengeVerdict::Invalid, ChallengeVerdict::Ambiguous]
            .map(|held_verdict| (count_votes(held_verdict), held_verdict));
        let vote_counts = vote_counts.iter().filter(|(vote_count, _)| *vote_count > 0);
        vote_counts
            .map(|(vote_count, held_verdict)| format!("{vote_count} {held_verdict}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use tribunal_engine::ids::AgentName;

    use super::*;
    use ChallengeVerdict::{Ambiguous, Invalid, Valid};

    fn make_ruling(
        verdict: ChallengeResult,
        (severity_before, severity_after): (Severity, Severity),
        votes: &[(&str, ChallengeVerdict)],
    ) -> Ruling {
        let voice = |(agent, held_verdict): &(&str, ChallengeVerdict)| ChallengerVoice {
            agent: AgentName::new(*agent),
            provider: String::new(),
            holds: *held_verdict,
            note: format!("{agent} says {held_verdict}"),
            counter: String::new(),
        };
        Ruling { verdict, severity_before, severity_after, voices: votes.iter().map(voice).collect() }
    }

    const UNCHANGED_SEVERITY: (Severity, Severity) = (Severity::High, Severity::High);

    #[test]
    fn a_ruling_names_its_challengers_and_both_severities() {
        let lowered = (Severity::High, Severity::Medium);
        let (low, critical) = ((Severity::Low, Severity::Low), (Severity::Critical, Severity::Critical));
        let split_votes = [("a", Valid), ("b", Invalid), ("a", Ambiguous)];
        for (ruling, expected_text) in [
            (
                make_ruling(ChallengeResult::Valid, UNCHANGED_SEVERITY, &[("a", Valid), ("a", Valid)]),
                "upheld by 2 of 2 challengers",
            ),
            (make_ruling(ChallengeResult::Valid, UNCHANGED_SEVERITY, &[("a", Valid)]), "upheld by 1 of 1 challenger"),
            (
                make_ruling(
                    ChallengeResult::Invalid,
                    UNCHANGED_SEVERITY,
                    &[("a", Invalid), ("b", Valid), ("c", Invalid)],
                ),
                "refuted by 2 of 3 challengers (a, c)",
            ),
            (
                make_ruling(ChallengeResult::Ambiguous, lowered, &split_votes),
                "in doubt, high → medium (1 valid, 1 invalid, 1 ambiguous)",
            ),
            (make_ruling(ChallengeResult::Ambiguous, low, &[("a", Invalid)]), "in doubt, stays low (1 invalid)"),
            (
                make_ruling(ChallengeResult::Ambiguous, critical, &split_votes),
                "in doubt (1 valid, 1 invalid, 1 ambiguous), waiting for your decision",
            ),
            (
                make_ruling(ChallengeResult::Unheard, UNCHANGED_SEVERITY, &[]),
                "no challenger answered, so it stays as raised",
            ),
        ] {
            assert_eq!(ruling.describe(), expected_text);
        }
    }

    #[test]
    fn the_strongest_objection_is_one_with_evidence() {
        let mut refuted = make_ruling(
            ChallengeResult::Invalid,
            UNCHANGED_SEVERITY,
            &[("a", Invalid), ("b", Ambiguous), ("c", Invalid), ("d", Valid)],
        );
        assert_eq!(refuted.strongest_objection(), Some(("a says invalid", "")));
        refuted.voices[1].counter = "not theirs".into();
        refuted.voices[2].counter = "Backups are kept.".into();
        assert_eq!(refuted.strongest_objection(), Some(("c says invalid", "Backups are kept.")));
        assert_eq!(
            make_ruling(ChallengeResult::Valid, UNCHANGED_SEVERITY, &[("a", Valid), ("b", Invalid)])
                .strongest_objection(),
            None
        );
    }
}
