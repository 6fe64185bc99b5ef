//! Challenging: which findings are disputed before they are repaired, and what the voices amount to.
//!
//! A finding that only one reviewer raised has one voice, and an absence can always be somewhere else in other words. Two
//! challengers are asked about it at once, of different providers where possible, and a third if those two disagree:
//!
//! | valid | invalid | ambiguous | ruled |
//! | --- | --- | --- | --- |
//! | 2 or 3 | | | valid |
//! | | 2 or 3 | | invalid: dismissed, with the reason; see below |
//! | | 1 | 1 | a third provider is asked; if there is none, invalid for medium and low severities |
//! | | 1 | 2 | invalid for medium and low severities, else ambiguous |
//! | | | 2 or 3 | ambiguous: one severity down, critical asks the user |
//! | 1 | 1 | 1 | ambiguous |
//! | 1 | 0 | 0 | valid: no other challenger answered |
//! | 0 | 1 | 0 | ambiguous: one voice alone dismisses nothing |
//! | 0 | 0 | 0 | unheard: the finding stays as it was raised |
//!
//! Answers of one provider are one voice, because the same model repeats its own mistakes. One voice never dismisses a
//! finding of high or critical severity: as long as only one provider calls it invalid, it is ambiguous. It dismisses other
//! findings only if all of its answers say so. No single answer dismisses a finding of any severity: `docs/decisions.md` has
//! the figures. [`crate::review`] asks the challengers.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    findings::finding::{Evidence, Finding, FindingRaiser, FindingStatus, Severity},
    runs::settings::Settings,
    tasks::claims::ChallengeVerdict,
};
use tribunal_engine::{
    ids::AgentName,
    text::{truncate_chars, word_table::words},
};

/// How many challengers are asked at once.
pub const VOICES_AT_ONCE: u32 = 2;
/// The most voices about one finding.
pub const MAX_VOICES: u32 = 3;

/// What one challenger said about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChallengerVoice {
    pub agent: AgentName,
    /// The provider of the agent; empty if it is the agent itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    #[serde(flatten)]
    pub holds: ChallengeVerdict,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// A quote from the subject that speaks against the finding and was found there; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub counter: String,
}

impl ChallengerVoice {
    pub fn provider_name(&self) -> &str {
        if self.provider.is_empty() { self.agent.as_str() } else { &self.provider }
    }
}

/// The result of all voices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChallengeResult {
    Valid,
    Invalid,
    Ambiguous,
    /// No challenger answered.
    Unheard,
    /// No challenger was asked: the user has given it another severity.
    Person,
}

words!(ChallengeResult {
    Valid = "valid",
    Invalid = "invalid",
    Ambiguous = "ambiguous",
    Unheard = "unheard",
    Person = "by the user",
});

/// Whether a new finding has to be challenged. `evidence_overlaps`: a reviewer that joined it showed the same words.
pub fn needs_challenge(finding: &Finding, settings: &Settings, evidence_overlaps: bool) -> bool {
    if finding.status != FindingStatus::Open {
        return false;
    }
    match finding.evidence {
        // An absence is always challenged: what a reviewer misses may be somewhere else in other words.
        Evidence::Absence { .. } => true,
        // A check that fails is a fact, so there is nothing to dispute.
        Evidence::Check { .. } => false,
        Evidence::Quote { .. } => settings.tier.number() > 0 && !is_corroborated(finding, settings, evidence_overlaps),
    }
}

/// Whether two independent reviewers raised it: of different providers, or two agents with different methods and overlapping
/// quotes. One agent in two seats is one voice.
fn is_corroborated(finding: &Finding, settings: &Settings, evidence_overlaps: bool) -> bool {
    let Some((first_raiser, other_raisers)) = finding.raisers.split_first() else { return false };
    let first_provider = settings.agent_provider(&first_raiser.agent);
    // Two agents of one provider count only with the same evidence: the same model may repeat its own idea.
    let is_other_method = |other_raiser: &FindingRaiser| {
        evidence_overlaps && other_raiser.role != first_raiser.role && other_raiser.agent != first_raiser.agent
    };
    other_raisers.iter().any(|other_raiser| {
        is_other_method(other_raiser) || settings.agent_provider(&other_raiser.agent) != first_provider
    })
}

/// Which providers can still be asked about a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenProviders {
    /// One that was not heard.
    pub unheard: bool,
    /// One that was not heard, or that did not call the finding invalid.
    pub unrefuting: bool,
}

/// Whether the voices are enough, so that no further one is needed.
pub fn is_settled(voices: &[ChallengerVoice], severity: Severity, open_providers: OpenProviders) -> bool {
    let two_agree_on = |verdict: ChallengeVerdict| voices.iter().filter(|voice| voice.holds == verdict).count() > 1;
    two_agree_on(ChallengeVerdict::Valid)
        || two_agree_on(ChallengeVerdict::Ambiguous)
        || (is_minor_refuted(voices, severity) && !open_providers.unheard)
        || (two_agree_on(ChallengeVerdict::Invalid) && (can_dismiss(voices, severity) || !open_providers.unrefuting))
}

/// Whether a finding of medium or low severity is refuted although only one of two challengers calls it invalid: the other one
/// does not believe it either.
fn is_minor_refuted(voices: &[ChallengerVoice], severity: Severity) -> bool {
    let has_verdict = |verdict: ChallengeVerdict| voices.iter().any(|voice| voice.holds == verdict);
    matches!(severity, Severity::Medium | Severity::Low)
        && count_providers(voices) > 1
        && has_verdict(ChallengeVerdict::Invalid)
        && has_verdict(ChallengeVerdict::Ambiguous)
        && !has_verdict(ChallengeVerdict::Valid)
}

/// Whether those who call a finding invalid may dismiss it, if they are in the majority. One provider alone may dismiss only
/// what is medium or low, and only if all of its answers agree.
fn can_dismiss(voices: &[ChallengerVoice], severity: Severity) -> bool {
    let is_unanimous = || voices.iter().all(|voice| voice.holds == ChallengeVerdict::Invalid);
    match severity {
        Severity::High | Severity::Critical => refuting_providers(voices).len() > 1,
        Severity::Medium | Severity::Low => count_providers(voices) > 1 || is_unanimous(),
    }
}

fn count_providers(voices: &[ChallengerVoice]) -> usize {
    voices.iter().map(ChallengerVoice::provider_name).collect::<BTreeSet<_>>().len()
}

/// Returns the providers that call a finding invalid.
pub fn refuting_providers(voices: &[ChallengerVoice]) -> BTreeSet<&str> {
    let refuting = voices.iter().filter(|voice| voice.holds == ChallengeVerdict::Invalid);
    refuting.map(ChallengerVoice::provider_name).collect()
}

/// Decides the result by the table in the documentation of this module.
pub fn decide_result(voices: &[ChallengerVoice], severity: Severity) -> ChallengeResult {
    let count_verdict = |verdict: ChallengeVerdict| voices.iter().filter(|voice| voice.holds == verdict).count();
    match (count_verdict(ChallengeVerdict::Valid), count_verdict(ChallengeVerdict::Invalid), voices.len()) {
        (_, _, 0) => ChallengeResult::Unheard,
        (_, 2.., _) if can_dismiss(voices, severity) => ChallengeResult::Invalid,
        _ if is_minor_refuted(voices, severity) => ChallengeResult::Invalid,
        // Invalid needs two voices, valid only a majority: dismissing a real issue is worse than repairing a doubtful one.
        (valid, _, total) if valid * 2 > total => ChallengeResult::Valid,
        _ => ChallengeResult::Ambiguous,
    }
}

/// Returns the next lower severity. Low stays low.
pub fn lower_severity(severity: Severity) -> Severity {
    match severity {
        Severity::Critical => Severity::High,
        Severity::High => Severity::Medium,
        Severity::Medium | Severity::Low => Severity::Low,
    }
}

/// Describes why a finding was refuted: `2 of 3 challengers (amber, birch): it says so in Scope (“…”)`.
pub fn describe_voices(voices: &[ChallengerVoice], verdict: ChallengeVerdict) -> String {
    let agreeing = voices.iter().filter(|voice| voice.holds == verdict).count();
    let noun = if voices.len() == 1 { "challenger" } else { "challengers" };
    let names = name_agents(voices, verdict);
    format!("{agreeing} of {} {noun} ({names}){}", voices.len(), quote_best_voice(voices, |said| said == verdict))
}

/// Names the agents with this verdict, each once.
fn name_agents(voices: &[ChallengerVoice], verdict: ChallengeVerdict) -> String {
    let mut names: Vec<&str> = Vec::new();
    for voice in voices.iter().filter(|voice| voice.holds == verdict) {
        if !names.contains(&voice.agent.as_str()) {
            names.push(voice.agent.as_str());
        }
    }
    names.join(", ")
}

/// Describes why a finding is in doubt: `1 valid, 1 invalid (amber), 1 ambiguous: it says so in Scope (“…”)`.
pub fn describe_doubt(voices: &[ChallengerVoice]) -> String {
    let count_verdict =
        |verdict: ChallengeVerdict| (voices.iter().filter(|voice| voice.holds == verdict).count(), verdict);
    let verdict_counts =
        [ChallengeVerdict::Valid, ChallengeVerdict::Invalid, ChallengeVerdict::Ambiguous].map(count_verdict);
    let count_texts = verdict_counts.iter().filter(|(count, _)| *count > 0).map(|(count, verdict)| match verdict {
        ChallengeVerdict::Invalid => format!("{count} {verdict} ({})", name_agents(voices, *verdict)),
        _ => format!("{count} {verdict}"),
    });
    let count_texts: Vec<String> = count_texts.collect();
    // This explains why challengers who agree do not dismiss it.
    let one_voice = match count_verdict(ChallengeVerdict::Invalid) {
        (2.., _) if refuting_providers(voices).len() == 1 => ", all of one provider",
        _ => "",
    };
    let best_voice = quote_best_voice(voices, |said| said != ChallengeVerdict::Valid);
    format!("{}{one_voice}{best_voice}", count_texts.join(", "))
}

/// Quotes the most convincing voice: the first that gave evidence, else the first.
fn quote_best_voice(voices: &[ChallengerVoice], is_wanted: impl Fn(ChallengeVerdict) -> bool) -> String {
    // A voice with a quote from the subject is worth more than one with an opinion.
    let wanted_voices = || voices.iter().filter(|voice| is_wanted(voice.holds));
    let Some(best_voice) = wanted_voices().find(|voice| !voice.counter.is_empty()).or_else(|| wanted_voices().next())
    else {
        return String::new();
    };
    let note = if best_voice.note.is_empty() { "no reason given" } else { best_voice.note.as_str() };
    let counter = match best_voice.counter.as_str() {
        "" => String::new(),
        counter => format!(" (“{}”)", truncate_chars(counter, 200)),
    };
    format!(": {}{counter}", truncate_chars(note, 300))
}

/// Returns the note of the step that challengers caused; `None` if the finding was upheld or never challenged.
pub fn challenge_note(finding: &Finding) -> Option<&str> {
    // The cause decides, never the note: an agent could write a note that looks like this.
    finding.history.iter().find(|step| step.cause.is_by_challengers()).map(|step| step.note.as_str())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::findings::finding::{DismissalReason, StatusTransition, TransitionCause};
    use ChallengeVerdict::{Ambiguous, Invalid, Valid};

    const NO_PROVIDER: OpenProviders = OpenProviders { unheard: false, unrefuting: false };

    fn voices_with(verdicts: &[ChallengeVerdict]) -> Vec<ChallengerVoice> {
        voices_of(verdicts, |index| AgentName::new(format!("c{index}")))
    }

    fn voices_of(verdicts: &[ChallengeVerdict], agent_at: impl Fn(usize) -> AgentName) -> Vec<ChallengerVoice> {
        let voice_with = |(index, verdict): (usize, &ChallengeVerdict)| ChallengerVoice {
            agent: agent_at(index),
            provider: String::new(),
            holds: *verdict,
            note: String::new(),
            counter: String::new(),
        };
        verdicts.iter().enumerate().map(voice_with).collect()
    }

    #[test]
    fn the_table_holds_in_every_order() {
        for (verdicts, expected) in [
            (vec![Valid, Valid], ChallengeResult::Valid),
            (vec![Invalid, Invalid], ChallengeResult::Invalid),
            (vec![Ambiguous, Ambiguous], ChallengeResult::Ambiguous),
            (vec![Valid, Invalid, Valid], ChallengeResult::Valid),
            (vec![Ambiguous, Valid, Valid], ChallengeResult::Valid),
            (vec![Invalid, Ambiguous, Invalid], ChallengeResult::Invalid),
            (vec![Valid, Invalid, Ambiguous], ChallengeResult::Ambiguous),
            (vec![Valid], ChallengeResult::Valid),
            (vec![Invalid], ChallengeResult::Ambiguous),
            (vec![Valid, Invalid], ChallengeResult::Ambiguous),
            (vec![], ChallengeResult::Unheard),
        ] {
            let mut voices = voices_with(&verdicts);
            for severity in Severity::ALL {
                assert_eq!(decide_result(&voices, severity), expected, "{voices:?}");
                for _ in 1..voices.len() {
                    voices.rotate_left(1);
                    assert_eq!(decide_result(&voices, severity), expected, "{voices:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_minor_is_dismissed_if_two_providers_do_not_believe_it() {
        for (severity, expected) in [
            (Severity::Low, ChallengeResult::Invalid),
            (Severity::Medium, ChallengeResult::Invalid),
            (Severity::High, ChallengeResult::Ambiguous),
        ] {
            assert_eq!(decide_result(&voices_with(&[Ambiguous, Invalid, Ambiguous]), severity), expected);
            let voices = voices_with(&[Invalid, Ambiguous]);
            assert_eq!(decide_result(&voices, severity), expected);
            assert_eq!(is_settled(&voices, severity, NO_PROVIDER), expected == ChallengeResult::Invalid);
            assert!(!is_settled(&voices, severity, OpenProviders { unheard: true, unrefuting: true }));
            let one_provider = voices_of(&[Invalid, Ambiguous], |_| AgentName::new("c"));
            assert_eq!(decide_result(&one_provider, severity), ChallengeResult::Ambiguous);
        }
    }

    #[test]
    fn one_provider_never_dismisses_a_high_or_critical_finding() {
        let same_agent = |_| AgentName::new("c");
        let split_voices = voices_of(&[Invalid, Valid, Invalid], same_agent);
        assert_eq!(decide_result(&split_voices, Severity::Low), ChallengeResult::Ambiguous, "it is not sure itself");
        for verdicts in [vec![Invalid, Invalid], vec![Invalid, Invalid, Invalid]] {
            let voices = voices_of(&verdicts, same_agent);
            for (severity, expected) in [
                (Severity::Low, ChallengeResult::Invalid),
                (Severity::Medium, ChallengeResult::Invalid),
                (Severity::High, ChallengeResult::Ambiguous),
                (Severity::Critical, ChallengeResult::Ambiguous),
            ] {
                assert_eq!(decide_result(&voices, severity), expected, "{severity} {verdicts:?}");
            }
            assert!(
                !is_settled(&voices, Severity::High, OpenProviders { unheard: true, unrefuting: true }),
                "another provider is asked"
            );
            assert!(
                is_settled(&voices, Severity::High, NO_PROVIDER) && is_settled(&voices, Severity::Medium, NO_PROVIDER)
            );
        }
        // Two agents of one provider are one voice as well.
        let mut voices = voices_of(&[Invalid, Invalid], |index| AgentName::new(format!("c{index}")));
        voices.iter_mut().for_each(|voice| voice.provider = String::from("acme"));
        assert_eq!(decide_result(&voices, Severity::High), ChallengeResult::Ambiguous);
        assert_eq!(describe_doubt(&voices), "2 invalid (c0, c1), all of one provider: no reason given");
        voices[1].provider = String::from("other");
        assert_eq!(decide_result(&voices, Severity::High), ChallengeResult::Invalid);
    }

    /// Chances in thousandths that a challenger says valid, invalid, ambiguous.
    type Chances = [u64; 3];

    /// Returns in how many of a billion cases the voices lead to this result, with no more voices than needed.
    fn odds_of(chances: Chances, wanted_result: ChallengeResult) -> u64 {
        fn count_odds(
            voiced: &mut Vec<ChallengeVerdict>,
            chances: Chances,
            case_weight: u64,
            wanted_result: ChallengeResult,
        ) -> u64 {
            let heard = voices_with(voiced);
            if is_settled(&heard, Severity::Medium, OpenProviders { unheard: true, unrefuting: true })
                || heard.len() == MAX_VOICES as usize
            {
                let left = MAX_VOICES as usize - heard.len();
                return if decide_result(&heard, Severity::Medium) == wanted_result {
                    case_weight * 1000_u64.pow(left as u32)
                } else {
                    0
                };
            }
            let mut sum = 0;
            for (holds, chance) in [Valid, Invalid, Ambiguous].into_iter().zip(chances) {
                voiced.push(holds);
                sum += count_odds(voiced, chances, case_weight * chance, wanted_result);
                voiced.pop();
            }
            sum
        }
        count_odds(&mut vec![], chances, 1, wanted_result)
    }

    #[test]
    fn with_challengers_as_good_as_expected_the_rule_keeps_false_findings_from_fixers_and_true_ones_in() {
        let about_false = [100, 800, 100];
        let about_true = [850, 50, 100];
        // The share of plausible false findings that are not dismissed. They are two of five false findings; the others are
        // ungrounded.
        let survive = 1_000_000_000 - odds_of(about_false, ChallengeResult::Invalid);
        assert_eq!(survive * 2 / 5 / 1_000_000, 35, "in thousandths of all false findings; 50 are allowed");
        assert_eq!(odds_of(about_true, ChallengeResult::Invalid) / 100_000, 82, "in ten thousandths; 200 are allowed");
    }

    #[test]
    fn the_challenge_note_has_what_challengers_changed_and_nothing_else() {
        let note_after = |steps: &[(FindingStatus, TransitionCause, &str)]| {
            let mut finding = crate::findings::finding::Finding {
                id: tribunal_engine::ids::FindingId(1),
                severity: Severity::High,
                category: String::new(),
                description: String::new(),
                place: None,
                found: None,
                evidence: Evidence::Quote { text: String::new() },
                suggested_fix: String::new(),
                raisers: vec![],
                status: FindingStatus::Open,
                maybe_same_as: None,
                history: vec![],
            };
            for (status, cause, note) in steps {
                let transition = StatusTransition::new(status.clone(), cause.clone(), *note);
                finding.apply_transition(transition, tribunal_engine::timestamp::Timestamp::default());
            }
            challenge_note(&finding).map(String::from)
        };
        let dismissed = |dismissal| FindingStatus::Dismissed { why: dismissal };
        let raised_step = (FindingStatus::Open, TransitionCause::Raised, "raised");
        let fixed_step = (FindingStatus::Fixed, TransitionCause::Repaired, "done");
        let doubt_step = (FindingStatus::Open, TransitionCause::InDoubt, "low now; 2 of 2 challengers");
        assert_eq!(
            note_after(&[raised_step.clone(), doubt_step.clone(), fixed_step.clone()]),
            Some(doubt_step.2.into())
        );
        let refuted_step = (dismissed(DismissalReason::Invalid), TransitionCause::Refuted, "2 of 3");
        assert_eq!(note_after(&[raised_step.clone(), refuted_step]), Some("2 of 3".into()));
        let ungrounded_step = (dismissed(DismissalReason::Ungrounded), TransitionCause::Ungrounded, "not there");
        assert_eq!(note_after(&[ungrounded_step]), None);
        // A note of a fixer does not count, even if it has the same words.
        let blocked_step = (
            FindingStatus::Blocked { decision: tribunal_engine::ids::DecisionId::new("D1") },
            TransitionCause::FixerBlocked,
            doubt_step.2,
        );
        assert_eq!(note_after(&[raised_step, blocked_step, fixed_step]), None);
    }

    #[test]
    fn the_description_quotes_the_voice_that_had_evidence() {
        let mut heard_voices = voices_with(&[Invalid, Invalid, Valid]);
        heard_voices[0].note = "it is there".into();
        heard_voices[1].note = "see Scope".into();
        heard_voices[1].counter = "Backups are kept for a year.".into();
        assert_eq!(
            describe_voices(&heard_voices, Invalid),
            "2 of 3 challengers (c0, c1): see Scope (“Backups are kept for a year.”)"
        );
    }
}
