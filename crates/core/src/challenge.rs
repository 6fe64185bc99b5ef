//! Challenging: which findings are disputed before they are repaired, and what the voices amount to.
//!
//! A finding that only one reviewer raised has one voice, and an absence can always be somewhere else in other words. Two
//! challengers are asked about it at once, a third if those two disagree:
//!
//! | valid | invalid | ambiguous | ruled |
//! | --- | --- | --- | --- |
//! | 2 or 3 | | | valid |
//! | | 2 or 3 | | invalid: dismissed, with the reason |
//! | | | 2 or 3 | ambiguous: one severity down, critical asks the user |
//! | 1 | 1 | 1 | ambiguous |
//! | 1 | 0 | 0 | valid: no other challenger answered |
//! | 0 | 1 | 0 | ambiguous: one voice alone dismisses nothing |
//! | 0 | 0 | 0 | unheard: the finding stays as it was raised |
//!
//! No single voice settles anything: `docs/decisions.md` has the figures. [`crate::review`] asks the challengers.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    brief::Holds,
    finding::{Evidence, Finding, Raiser, Severity, Status},
    ids::AgentName,
    level::words,
    settings::Settings,
    text::cut,
};

/// How many challengers are asked at once.
pub const AT_ONCE: u32 = 2;
/// The most voices about one finding.
pub const MOST: u32 = 3;

/// What one challenger said about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Voice {
    pub agent: AgentName,
    #[serde(flatten)]
    pub holds: Holds,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// A quote from the subject that speaks against the finding and was found there; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub counter: String,
}

/// The result of all voices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ruled {
    Valid,
    Invalid,
    Ambiguous,
    /// No challenger answered.
    Unheard,
    /// No challenger was asked: the user has given it another severity.
    Person,
}

words!(Ruled {
    Valid = "valid",
    Invalid = "invalid",
    Ambiguous = "ambiguous",
    Unheard = "unheard",
    Person = "by a person",
});

/// Whether a new finding has to be challenged. `overlaps`: a reviewer that joined it showed the same words.
pub fn is_due(finding: &Finding, settings: &Settings, overlaps: bool) -> bool {
    if finding.status != Status::Open {
        return false;
    }
    match finding.evidence {
        // An absence is always challenged: reviewers often overlook the words they miss.
        Evidence::Absence { .. } => true,
        Evidence::Quote { .. } => settings.tier.number() > 0 && !is_corroborated(finding, settings, overlaps),
    }
}

/// Whether two independent reviewers raised it: of different providers, or with different methods and overlapping quotes.
fn is_corroborated(finding: &Finding, settings: &Settings, overlaps: bool) -> bool {
    let Some((first, others)) = finding.raisers.split_first() else { return false };
    let provider = settings.provider(&first.agent);
    // Two methods of one provider count only with the same evidence: the same model may repeat its own idea.
    let other_method = |other: &Raiser| overlaps && other.role != first.role;
    others.iter().any(|other| other_method(other) || settings.provider(&other.agent) != provider)
}

/// Whether two voices agree, so that no further one is needed.
pub fn is_settled(voices: &[Voice]) -> bool {
    let two_say = |holds: Holds| voices.iter().filter(|voice| voice.holds == holds).count() > 1;
    two_say(Holds::Valid) || two_say(Holds::Invalid) || two_say(Holds::Ambiguous)
}

/// Decides the result by the table above.
pub fn rule(voices: &[Voice]) -> Ruled {
    let say = |holds: Holds| voices.iter().filter(|voice| voice.holds == holds).count();
    match (say(Holds::Valid), say(Holds::Invalid), voices.len()) {
        (_, _, 0) => Ruled::Unheard,
        (_, 2.., _) => Ruled::Invalid,
        // Invalid needs two voices, valid only a majority: dismissing a real issue is worse than repairing a doubtful one.
        (valid, _, all) if valid * 2 > all => Ruled::Valid,
        _ => Ruled::Ambiguous,
    }
}

/// Returns the next lower severity. Low stays low.
pub fn down(severity: Severity) -> Severity {
    match severity {
        Severity::Critical => Severity::High,
        Severity::High => Severity::Medium,
        Severity::Medium | Severity::Low => Severity::Low,
    }
}

/// Describes why a finding was refuted: `2 of 3 challengers: it says so in Scope (“…”)`.
pub fn reason(voices: &[Voice], holds: Holds) -> String {
    let with = voices.iter().filter(|voice| voice.holds == holds).count();
    let noun = if voices.len() == 1 { "challenger" } else { "challengers" };
    format!("{with} of {} {noun}{}", voices.len(), words_of(voices, |said| said == holds))
}

/// Describes why a finding is in doubt: `1 valid, 1 invalid, 1 ambiguous: it says so in Scope (“…”)`.
pub fn doubt(voices: &[Voice]) -> String {
    let say = |holds: Holds| (voices.iter().filter(|voice| voice.holds == holds).count(), holds);
    let counts = [Holds::Valid, Holds::Invalid, Holds::Ambiguous].map(say);
    let counts =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, holds)| format!("{count} {holds}"));
    let counts: Vec<String> = counts.collect();
    format!("{}{}", counts.join(", "), words_of(voices, |said| said != Holds::Valid))
}

/// Quotes the most convincing voice: the first that gave evidence, else the first.
fn words_of(voices: &[Voice], with: impl Fn(Holds) -> bool) -> String {
    // A voice with a quote from the subject is worth more than one with an opinion.
    let with = || voices.iter().filter(|voice| with(voice.holds));
    let Some(voice) = with().find(|voice| !voice.counter.is_empty()).or_else(|| with().next()) else {
        return String::new();
    };
    let note = if voice.note.is_empty() { "no reason given" } else { voice.note.as_str() };
    let counter = match voice.counter.as_str() {
        "" => String::new(),
        counter => format!(" (“{}”)", cut(counter, 200)),
    };
    format!(": {}{counter}", cut(note, 300))
}

/// Returns the note of the step that challengers caused; `None` if the finding was upheld or never challenged.
pub fn told(finding: &Finding) -> Option<&str> {
    // The cause decides, never the note: an agent could write a note that looks like this.
    finding.history.iter().find(|step| step.cause.is_by_challengers()).map(|step| step.note.as_str())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::finding::{Cause, Dismissal, Transition};
    use Holds::{Ambiguous, Invalid, Valid};

    fn voices(of: &[Holds]) -> Vec<Voice> {
        let voice = |holds: &Holds| Voice {
            agent: AgentName::new("c"),
            holds: *holds,
            note: String::new(),
            counter: String::new(),
        };
        of.iter().map(voice).collect()
    }

    #[test]
    fn the_table_holds_in_every_order() {
        for (said, ruled) in [
            (vec![Valid, Valid], Ruled::Valid),
            (vec![Invalid, Invalid], Ruled::Invalid),
            (vec![Ambiguous, Ambiguous], Ruled::Ambiguous),
            (vec![Valid, Invalid, Valid], Ruled::Valid),
            (vec![Ambiguous, Valid, Valid], Ruled::Valid),
            (vec![Invalid, Ambiguous, Invalid], Ruled::Invalid),
            (vec![Ambiguous, Invalid, Ambiguous], Ruled::Ambiguous),
            (vec![Valid, Invalid, Ambiguous], Ruled::Ambiguous),
            (vec![Valid], Ruled::Valid),
            (vec![Invalid], Ruled::Ambiguous),
            (vec![Valid, Invalid], Ruled::Ambiguous),
            (vec![], Ruled::Unheard),
        ] {
            let mut said = voices(&said);
            assert_eq!(rule(&said), ruled, "{said:?}");
            for _ in 1..said.len() {
                said.rotate_left(1);
                assert_eq!(rule(&said), ruled, "{said:?}");
            }
        }
    }

    /// Chances in thousandths that a challenger says valid, invalid, ambiguous.
    type Chances = [u64; 3];

    /// Returns how often in a thousand million cases the voices lead to this result, with no more voices than needed.
    fn odds(chances: Chances, ruled: Ruled) -> u64 {
        fn go(said: &mut Vec<Holds>, chances: Chances, weight: u64, ruled: Ruled) -> u64 {
            let heard = voices(said);
            if is_settled(&heard) || heard.len() == MOST as usize {
                let left = MOST as usize - heard.len();
                return if rule(&heard) == ruled { weight * 1000_u64.pow(left as u32) } else { 0 };
            }
            let mut sum = 0;
            for (holds, chance) in [Valid, Invalid, Ambiguous].into_iter().zip(chances) {
                said.push(holds);
                sum += go(said, chances, weight * chance, ruled);
                said.pop();
            }
            sum
        }
        go(&mut vec![], chances, 1, ruled)
    }

    #[test]
    fn with_challengers_as_good_as_expected_the_rule_keeps_false_findings_from_fixers_and_true_ones_in() {
        let about_false = [100, 800, 100];
        let about_true = [850, 50, 100];
        // The share of plausible false findings that are not dismissed. They are two of five false findings; the others are
        // ungrounded.
        let survive = 1_000_000_000 - odds(about_false, Ruled::Invalid);
        assert_eq!(survive * 2 / 5 / 1_000_000, 41, "in thousandths of all false findings; 50 are allowed");
        assert_eq!(odds(about_true, Ruled::Invalid) / 100_000, 72, "in ten thousandths; 200 are allowed");
    }

    #[test]
    fn of_a_finding_is_told_what_challengers_changed_and_nothing_else() {
        let told_of = |steps: &[(Status, Cause, &str)]| {
            let mut finding = crate::finding::Finding {
                id: crate::ids::FindingId(1),
                severity: Severity::High,
                category: String::new(),
                description: String::new(),
                place: None,
                found: None,
                evidence: Evidence::Quote { text: String::new() },
                suggested_fix: String::new(),
                raisers: vec![],
                status: Status::Open,
                maybe_same_as: None,
                history: vec![],
            };
            for (status, cause, note) in steps {
                let transition = Transition::new(status.clone(), *cause, *note);
                finding.apply(transition, crate::stamp::Stamp::default());
            }
            told(&finding).map(String::from)
        };
        let dismissed = |why| Status::Dismissed { why };
        let raised = (Status::Open, Cause::Raised, "raised");
        let fixed = (Status::Fixed, Cause::Repaired, "done");
        let doubt = (Status::Open, Cause::InDoubt, "low now; 2 of 2 challengers");
        assert_eq!(told_of(&[raised.clone(), doubt.clone(), fixed.clone()]), Some(doubt.2.into()));
        let refuted = (dismissed(Dismissal::Invalid), Cause::Refuted, "2 of 3");
        assert_eq!(told_of(&[raised.clone(), refuted]), Some("2 of 3".into()));
        let ungrounded = (dismissed(Dismissal::Ungrounded), Cause::Ungrounded, "not there");
        assert_eq!(told_of(&[ungrounded]), None);
        // A note of a fixer does not count, even if it has the same words.
        let blocked =
            (Status::Blocked { decision: crate::ids::DecisionId::new("D1") }, Cause::FixerBlocked, doubt.2);
        assert_eq!(told_of(&[raised, blocked, fixed]), None);
    }

    #[test]
    fn what_is_shown_names_who_had_evidence() {
        let mut said = voices(&[Invalid, Invalid, Valid]);
        said[0].note = "it is there".into();
        said[1].note = "see Scope".into();
        said[1].counter = "Backups are kept for a year.".into();
        assert_eq!(reason(&said, Invalid), "2 of 3 challengers: see Scope (“Backups are kept for a year.”)");
    }
}
