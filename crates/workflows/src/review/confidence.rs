//! Confidence: how much speaks for a text, 0 to 100, calculated from signals and never assigned by an agent.
//!
//! `docs/confidence.md` has the rules as a table; it is the oracle of `tests/core/confidence.rs`. Everything is calculated
//! in integers and rounded once, half up, so that every machine gets the same score and the displayed score is the compared
//! one.
//!
//! [`signals`] has the sources, what they can say, and the points for it; the calculation is here.
//!
//! Not here: where signals come from (those of a review are collected in [`crate::review`]), what a gate or a menu makes of
//! the score, and thresholds learned from the user's decisions.

mod signals;

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::{text::word_table::words, tier::ProcessTier};

pub use signals::{
    ConfidenceSignals, ImpossibleSignals, MemoryMatch, PartyAgreement, ReviewerTally, SignalSource, SourceSignal,
    ValidationResult,
};

/// The result with everything that it was calculated from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourceShare {
    pub source: SignalSource,
    /// The most points that the source can give.
    pub of: u32,
    #[serde(flatten)]
    pub heard: SourceAnswer,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    MiscalculatedTwice = "could not be calculated twice in a row",
    Miscalculated = "could not be calculated",
    NoSignal = "no signals",
    NoConsensus = "the party reached no consensus",
    KnownFix = "validation failed, but the fix is known",
    Disagreement = "reviewers disagree with the validation",
    OneSource = "only one source",
    Malformed = "malformed signal",
});

pub fn calculate_confidence(signals: &ConfidenceSignals, tier: ProcessTier) -> Result<Confidence, ImpossibleSignals> {
    let shares = signals.source_shares()?;
    let counted = || shares.iter().filter_map(|share| Some((share.source, share.counted_points()?)));
    let total_points: u32 = counted().map(|(_, points)| points).sum();
    let total_maximum: u32 = shares.iter().filter(|share| share.counts_toward_total()).map(|share| share.of).sum();
    if total_maximum == 0 {
        // Without any signal there is nothing to calculate; `docs/confidence.md` fixes the score for this case.
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

/// Calculates `portion / total x scale`, rounded half up.
fn scale_rounded(portion: u32, total: u32, scale: u32) -> u32 {
    (2 * portion * scale + total) / (2 * total)
}

fn tier_deduction(tier: ProcessTier) -> u32 {
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

    /// Finds a conflict (no consensus in the party, or sources that contradict each other) and how it limits the score.
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
            SourceAnswer::Nothing => "gave no signal",
            SourceAnswer::Unreachable => "unreachable",
            SourceAnswer::Malformed { .. } => "malformed",
        }
    }
}

impl Confidence {
    fn new(score: u32, tier: ProcessTier) -> Confidence {
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
    pub fn for_failed_calculation(tier: ProcessTier, previous: Option<&Confidence>) -> Confidence {
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
        for exclusion in ["malformed", "unreachable", "gave no signal", "not consulted"] {
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
