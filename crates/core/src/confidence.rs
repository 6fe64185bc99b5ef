//! Confidence: how much speaks for a text, 0 to 100, calculated from signals and never assigned by an agent.
//!
//! `docs/confidence.md` has the rules as a table; it is the oracle of `tests/core/confidence.rs`. Everything is calculated
//! in integers and rounded once, half up, so that every machine gets the same score and the displayed score is the compared
//! one.
//!
//! Not here: where signals come from (those of a review are collected in [`crate::review`]), what a gate or a menu makes of
//! the score, and thresholds learned from the user's decisions.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    brief::PartyMinutes,
    level::{ReviewTier, words},
};

/// The sources of signals about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalSource {
    Validation,
    Memory,
    Reviewers,
    Party,
}

words!(SignalSource { Validation = "validation", Memory = "memory", Reviewers = "reviewers", Party = "party" });

impl SignalSource {
    /// All sources, in the order in which they are shown.
    pub const ALL: [SignalSource; 4] =
        [SignalSource::Validation, SignalSource::Memory, SignalSource::Reviewers, SignalSource::Party];

    /// Returns the most points that the source can give.
    pub fn max_points(self) -> u32 {
        match self {
            SignalSource::Validation => 35,
            SignalSource::Memory | SignalSource::Reviewers => 25,
            SignalSource::Party => 15,
        }
    }

    /// Returns the best score that the source can lead to if no other source says anything.
    fn max_score_alone(self) -> u32 {
        match self {
            SignalSource::Validation => 60,
            SignalSource::Memory | SignalSource::Reviewers | SignalSource::Party => 50,
        }
    }
}

/// The signal of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceSignal<T> {
    Consulted(T),
    #[default]
    NotConsulted,
    /// The source was asked and had nothing to say about this text.
    Nothing,
    Unreachable,
    /// The answer could not be read; the text says what was wrong with it.
    Malformed(String),
}

/// The result of a validation: a verdict, or a number of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationResult {
    Pass,
    Concerns,
    Fail,
    Errors(u32),
}

impl ValidationResult {
    fn award_points(self) -> u32 {
        match self {
            ValidationResult::Pass | ValidationResult::Errors(0) => 35,
            ValidationResult::Errors(1 | 2) => 20,
            ValidationResult::Concerns => 15,
            ValidationResult::Errors(_) => 5,
            ValidationResult::Fail => 0,
        }
    }
}

/// How well a remembered case fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMatch {
    Exact,
    Similar,
    Weak,
}

impl MemoryMatch {
    /// Converts a memory's own similarity, 0 to 1. Below 0.50 it has nothing to say.
    pub fn from_similarity(similarity: f64) -> SourceSignal<MemoryMatch> {
        match similarity {
            measure if !(0.0..=1.0).contains(&measure) => SourceSignal::Malformed(format!("a similarity of {measure}")),
            measure if measure > 0.80 => SourceSignal::Consulted(MemoryMatch::Similar),
            measure if measure >= 0.50 => SourceSignal::Consulted(MemoryMatch::Weak),
            _ => SourceSignal::Nothing,
        }
    }

    fn award_points(self) -> u32 {
        match self {
            MemoryMatch::Exact => 25,
            MemoryMatch::Similar => 15,
            MemoryMatch::Weak => 8,
        }
    }
}

/// How many of the reviewers that answered are content with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReviewerTally {
    pub content: u32,
    pub answered: u32,
}

impl ReviewerTally {
    fn award_points(self) -> Result<u32, ImpossibleSignals> {
        let ReviewerTally { content, answered } = self;
        match (content, answered) {
            (_, 0) => Err(ImpossibleSignals(self)),
            _ if content > answered => Err(ImpossibleSignals(self)),
            // One content reviewer alone proves little.
            (1, 1) => Ok(10),
            _ if content == answered => Ok(25),
            _ if self.is_split() => Ok(5),
            _ => Ok(15),
        }
    }

    /// Whether half of them or more are not content.
    fn is_split(self) -> bool {
        self.content <= self.answered.saturating_sub(self.content)
    }
}

/// How far a party agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartyAgreement {
    Consensus,
    Partial,
    NoConsensus,
}

impl PartyAgreement {
    /// Derives the agreement from the minutes: from the votes, else from the summary. `None` if they have neither.
    pub fn from_minutes(minutes: &PartyMinutes) -> Option<PartyAgreement> {
        let voted_ballots = || minutes.ballots.iter().filter(|ballot| !ballot.votes.is_empty());
        if voted_ballots().next().is_none() {
            return match (minutes.consensus.is_empty(), minutes.dissent.is_empty()) {
                (true, true) => None,
                (false, true) => Some(PartyAgreement::Consensus),
                (false, false) => Some(PartyAgreement::Partial),
                (true, false) => Some(PartyAgreement::NoConsensus),
            };
        }
        // Votes are stronger than the party's own summary.
        let agreed_count = voted_ballots().filter(|ballot| ballot.is_agreed()).count();
        Some(match voted_ballots().count() {
            ballot_count if agreed_count == ballot_count && minutes.dissent.is_empty() => PartyAgreement::Consensus,
            ballot_count if agreed_count * 2 >= ballot_count => PartyAgreement::Partial,
            _ => PartyAgreement::NoConsensus,
        })
    }

    fn award_points(self) -> u32 {
        match self {
            PartyAgreement::Consensus => 15,
            PartyAgreement::Partial => 8,
            PartyAgreement::NoConsensus => 0,
        }
    }
}

/// All signals about a text at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfidenceSignals {
    pub validation: SourceSignal<ValidationResult>,
    pub memory: SourceSignal<MemoryMatch>,
    pub reviewers: SourceSignal<ReviewerTally>,
    pub party: SourceSignal<PartyAgreement>,
}

/// Signals that contradict themselves: a bug of the code that collected them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the confidence cannot be calculated: {} of {} reviewers are said to be content", .0.content, .0.answered)]
pub struct ImpossibleSignals(pub ReviewerTally);

/// The result with everything that it was calculated from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confidence {
    /// 0 to 100, without the tier's deduction; levels use this score.
    pub score: u32,
    /// The band of the score for gates: how much the user is shown there.
    pub band: ConfidenceBand,
    /// One share for each source, in the order of [`SignalSource::ALL`]; empty if the score could not be calculated.
    pub shares: Vec<SourceShare>,
    /// What the tier adds for gates and menus: 0 or less.
    pub adjustment: i32,
    /// The score with the tier's deduction, at least 0.
    pub for_gates: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<ConfidenceCaveat>,
    /// A rule allows less than the points alone would give.
    pub capped: bool,
}

/// What one source contributed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceShare {
    pub source: SignalSource,
    /// The most points that the source can give.
    pub of: u32,
    #[serde(flatten)]
    pub heard: SourceAnswer,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "heard", rename_all = "snake_case")]
pub enum SourceAnswer {
    Counted {
        points: u32,
    },
    NotConsulted,
    Nothing,
    Unreachable,
    /// Counts as 0 of its maximum.
    Malformed {
        why: String,
    },
}

/// How much the user is shown at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceBand {
    High,
    Medium,
    Low,
}

words!(ConfidenceBand { High = "high", Medium = "medium", Low = "low" });

impl ConfidenceBand {
    pub fn from_score(score: u32) -> ConfidenceBand {
        match score {
            80.. => ConfidenceBand::High,
            50.. => ConfidenceBand::Medium,
            _ => ConfidenceBand::Low,
        }
    }
}

/// What was special about the signals; of several, the one that is listed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceCaveat {
    MiscalculatedTwice,
    Miscalculated,
    NoSignal,
    NoConsensus,
    KnownFix,
    Disagreement,
    OneSource,
    Malformed,
}

words!(ConfidenceCaveat {
    MiscalculatedTwice = "could not be calculated, twice",
    Miscalculated = "could not be calculated",
    NoSignal = "no signal",
    NoConsensus = "the party found no consensus",
    KnownFix = "failed, but the fix is known",
    Disagreement = "the reviewers disagree with the validation",
    OneSource = "one source only",
    Malformed = "a malformed signal",
});

/// Whether the user has to look before a gate may use the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateCheck {
    NotRequired,
    UserRequired,
    /// Nothing continues automatically.
    Halt,
}

impl ConfidenceCaveat {
    pub fn gate_check(self) -> GateCheck {
        match self {
            ConfidenceCaveat::MiscalculatedTwice => GateCheck::Halt,
            ConfidenceCaveat::Miscalculated | ConfidenceCaveat::NoSignal => GateCheck::UserRequired,
            _ => GateCheck::NotRequired,
        }
    }
}

pub fn calculate_confidence(signals: &ConfidenceSignals, tier: ReviewTier) -> Result<Confidence, ImpossibleSignals> {
    let shares = signals.source_shares()?;
    let counted = || shares.iter().filter_map(|share| Some((share.source, share.counted_points()?)));
    let total_points: u32 = counted().map(|(_, points)| points).sum();
    let total_maximum: u32 = shares.iter().filter(|share| share.counts_toward_total()).map(|share| share.of).sum();
    if total_maximum == 0 {
        // Without any signal the score is fixed: it must be neither high nor zero.
        return Ok(Confidence::new(25, tier).with_details(shares, Some(ConfidenceCaveat::NoSignal), false));
    }
    let uncapped = scale_rounded(total_points, total_maximum, 100);
    let mut score = uncapped;
    let mut caveat = shares.iter().any(SourceShare::is_malformed).then_some(ConfidenceCaveat::Malformed);
    let mut counted_sources = counted();
    // A single source is capped, however good its answer is.
    if let (Some((source, points)), None) = (counted_sources.next(), counted_sources.next()) {
        score = score.min(scale_rounded(points, source.max_points(), source.max_score_alone()));
        caveat = Some(ConfidenceCaveat::OneSource);
    }
    // Conflicts come last: they override the caveats above.
    if let Some((conflict, cap_score)) = signals.find_conflict() {
        score = cap_score(score);
        caveat = Some(conflict);
    }
    Ok(Confidence::new(score, tier).with_details(shares, caveat, score < uncapped))
}

/// Calculates `part / whole x scale`, rounded half up.
fn scale_rounded(portion: u32, total: u32, scale: u32) -> u32 {
    (2 * portion * scale + total) / (2 * total)
}

fn tier_deduction(tier: ReviewTier) -> u32 {
    match tier.number() {
        0 | 1 => 0,
        2 => 5,
        3 => 10,
        _ => 15,
    }
}

impl<T: Copy> SourceSignal<T> {
    fn consulted_value(&self) -> Option<T> {
        match self {
            SourceSignal::Consulted(answer_value) => Some(*answer_value),
            _ => None,
        }
    }

    fn to_share(
        &self,
        source: SignalSource,
        award_points: impl Fn(T) -> Result<u32, ImpossibleSignals>,
    ) -> Result<SourceShare, ImpossibleSignals> {
        let source_answer = match self {
            SourceSignal::Consulted(answer_value) => SourceAnswer::Counted { points: award_points(*answer_value)? },
            SourceSignal::NotConsulted => SourceAnswer::NotConsulted,
            SourceSignal::Nothing => SourceAnswer::Nothing,
            SourceSignal::Unreachable => SourceAnswer::Unreachable,
            SourceSignal::Malformed(problem) => SourceAnswer::Malformed { why: problem.clone() },
        };
        Ok(SourceShare { source, of: source.max_points(), heard: source_answer })
    }
}

type ScoreCap = fn(u32) -> u32;

impl ConfidenceSignals {
    fn source_shares(&self) -> Result<Vec<SourceShare>, ImpossibleSignals> {
        let shares = [
            self.validation.to_share(SignalSource::Validation, |answer_value| Ok(answer_value.award_points())),
            self.memory.to_share(SignalSource::Memory, |answer_value| Ok(answer_value.award_points())),
            self.reviewers.to_share(SignalSource::Reviewers, ReviewerTally::award_points),
            self.party.to_share(SignalSource::Party, |answer_value| Ok(answer_value.award_points())),
        ];
        shares.into_iter().collect()
    }

    /// Finds sources that contradict each other, with what then becomes of the score.
    fn find_conflict(&self) -> Option<(ConfidenceCaveat, ScoreCap)> {
        let validation = self.validation.consulted_value();
        let is_known_fix =
            validation == Some(ValidationResult::Fail) && self.memory.consulted_value() == Some(MemoryMatch::Exact);
        // Counting errors and finding none is the same as a pass.
        let has_passed = matches!(validation, Some(ValidationResult::Pass | ValidationResult::Errors(0)));
        let are_reviewers_split = self.reviewers.consulted_value().is_some_and(ReviewerTally::is_split);
        match self.party.consulted_value() {
            Some(PartyAgreement::NoConsensus) if is_known_fix => Some((ConfidenceCaveat::NoConsensus, |_| 49)),
            Some(PartyAgreement::NoConsensus) => Some((ConfidenceCaveat::NoConsensus, |score| score.min(49))),
            _ if is_known_fix => Some((ConfidenceCaveat::KnownFix, |_| 50)),
            _ if has_passed && are_reviewers_split => Some((ConfidenceCaveat::Disagreement, |score| score.min(70))),
            _ => None,
        }
    }
}

impl SourceShare {
    fn counted_points(&self) -> Option<u32> {
        match self.heard {
            SourceAnswer::Counted { points } => Some(points),
            _ => None,
        }
    }

    fn is_malformed(&self) -> bool {
        matches!(self.heard, SourceAnswer::Malformed { .. })
    }

    /// Whether the maximum of the source counts towards the total.
    fn counts_toward_total(&self) -> bool {
        self.counted_points().is_some() || self.is_malformed()
    }

    /// Returns why the source did not count.
    fn left_out_reason(&self) -> &'static str {
        match self.heard {
            SourceAnswer::Counted { .. } => "",
            SourceAnswer::NotConsulted => "not consulted",
            SourceAnswer::Nothing => "had nothing",
            SourceAnswer::Unreachable => "unreachable",
            SourceAnswer::Malformed { .. } => "malformed",
        }
    }
}

impl Confidence {
    fn new(score: u32, tier: ReviewTier) -> Confidence {
        let deduction = tier_deduction(tier);
        let for_gates = score.saturating_sub(deduction);
        Confidence {
            score,
            band: ConfidenceBand::from_score(for_gates),
            shares: Vec::new(),
            // The deduction is shown as a negative number.
            adjustment: -deduction.cast_signed(),
            for_gates,
            edge: None,
            capped: false,
        }
    }

    fn with_details(self, shares: Vec<SourceShare>, caveat: Option<ConfidenceCaveat>, capped: bool) -> Confidence {
        Confidence { shares, edge: caveat, capped, ..self }
    }

    /// Returns the score after a failed calculation: 30, or 25 if the previous one had failed as well.
    pub fn for_failed_calculation(tier: ReviewTier, previous: Option<&Confidence>) -> Confidence {
        let failure_caveats = [Some(ConfidenceCaveat::Miscalculated), Some(ConfidenceCaveat::MiscalculatedTwice)];
        let (score, caveat) = match previous {
            Some(previous) if failure_caveats.contains(&previous.edge) => (25, ConfidenceCaveat::MiscalculatedTwice),
            _ => (30, ConfidenceCaveat::Miscalculated),
        };
        Confidence::new(score, tier).with_details(Vec::new(), Some(caveat), false)
    }

    /// Describes what counted: `validation 35/35, reviewers 15/25`, and what was special.
    pub fn describe_counted(&self) -> String {
        let shares = self.shares.iter();
        let counted_shares =
            shares.filter_map(|share| Some(format!("{} {}/{}", share.source, share.counted_points()?, share.of)));
        let mut descriptions = vec![counted_shares.collect::<Vec<_>>().join(", ")];
        // A malformed signal is named with the sources that did not count.
        descriptions
            .extend(self.edge.filter(|caveat| *caveat != ConfidenceCaveat::Malformed).map(|caveat| caveat.to_string()));
        descriptions.retain(|description| !description.is_empty());
        descriptions.join("; ")
    }

    /// Adds to [`Confidence::describe_counted`] the sources that did not count: `…; memory, party not consulted`.
    pub fn describe_all(&self) -> String {
        let mut descriptions = vec![self.describe_counted()];
        for exclusion in ["malformed", "unreachable", "had nothing", "not consulted"] {
            let shares = self.shares.iter().filter(|share| share.left_out_reason() == exclusion);
            let source_names: Vec<&str> = shares.map(|share| share.source.as_str()).collect();
            if !source_names.is_empty() {
                descriptions.push(format!("{} {exclusion}", source_names.join(", ")));
            }
        }
        descriptions.retain(|description| !description.is_empty());
        descriptions.join("; ")
    }
}
