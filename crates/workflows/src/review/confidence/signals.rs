//! The signals about a text: their sources, what each of them can say, and the points for it.
//!
//! What the points of all sources amount to is calculated in [`super::calculate_confidence`].

use alloc::{format, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::tasks::party_minutes::PartyMinutes;
use tribunal_engine::text::word_table::words;

/// The sources of signals about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    pub(super) fn max_score_alone(self) -> u32 {
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
    pub(super) fn award_points(self) -> u32 {
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
            measure if !(0.0..=1.0).contains(&measure) => {
                SourceSignal::Malformed(format!("similarity {measure} is not between 0 and 1"))
            }
            measure if measure > 0.80 => SourceSignal::Consulted(MemoryMatch::Similar),
            measure if measure >= 0.50 => SourceSignal::Consulted(MemoryMatch::Weak),
            _ => SourceSignal::Nothing,
        }
    }

    pub(super) fn award_points(self) -> u32 {
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
    pub(super) fn award_points(self) -> Result<u32, ImpossibleSignals> {
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
    pub(super) fn is_split(self) -> bool {
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
        // With votes, only the dissent of the party's own summary counts: it rules out a full consensus.
        let agreed_count = voted_ballots().filter(|ballot| ballot.has_undisputed_majority()).count();
        Some(match voted_ballots().count() {
            ballot_count if agreed_count == ballot_count && minutes.dissent.is_empty() => PartyAgreement::Consensus,
            ballot_count if agreed_count * 2 >= ballot_count => PartyAgreement::Partial,
            _ => PartyAgreement::NoConsensus,
        })
    }

    pub(super) fn award_points(self) -> u32 {
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
#[error("could not calculate the confidence: {} of {} reviewers were counted as satisfied", .0.content, .0.answered)]
pub struct ImpossibleSignals(pub ReviewerTally);
