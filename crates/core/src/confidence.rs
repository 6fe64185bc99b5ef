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
    brief::Minutes,
    level::{Tier, words},
};

/// The sources of signals about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Validation,
    Memory,
    Reviewers,
    Party,
}

words!(Source { Validation = "validation", Memory = "memory", Reviewers = "reviewers", Party = "party" });

impl Source {
    /// All sources, in the order in which they are shown.
    pub const ALL: [Source; 4] = [Source::Validation, Source::Memory, Source::Reviewers, Source::Party];

    /// Returns the most points that the source can give.
    pub fn maximum(self) -> u32 {
        match self {
            Source::Validation => 35,
            Source::Memory | Source::Reviewers => 25,
            Source::Party => 15,
        }
    }

    /// Returns the best score that the source can lead to if no other source says anything.
    fn alone(self) -> u32 {
        match self {
            Source::Validation => 60,
            Source::Memory | Source::Reviewers | Source::Party => 50,
        }
    }
}

/// The signal of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Signal<T> {
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
pub enum Validation {
    Pass,
    Concerns,
    Fail,
    Errors(u32),
}

impl Validation {
    fn points(self) -> u32 {
        match self {
            Validation::Pass | Validation::Errors(0) => 35,
            Validation::Errors(1 | 2) => 20,
            Validation::Concerns => 15,
            Validation::Errors(_) => 5,
            Validation::Fail => 0,
        }
    }
}

/// How well a remembered case fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Exact,
    Similar,
    Weak,
}

impl Memory {
    /// Converts a memory's own similarity, 0 to 1. Below 0.50 it has nothing to say.
    pub fn by_similarity(similarity: f64) -> Signal<Memory> {
        match similarity {
            s if !(0.0..=1.0).contains(&s) => Signal::Malformed(format!("a similarity of {s}")),
            s if s > 0.80 => Signal::Consulted(Memory::Similar),
            s if s >= 0.50 => Signal::Consulted(Memory::Weak),
            _ => Signal::Nothing,
        }
    }

    fn points(self) -> u32 {
        match self {
            Memory::Exact => 25,
            Memory::Similar => 15,
            Memory::Weak => 8,
        }
    }
}

/// How many of the reviewers that answered are content with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reviewers {
    pub content: u32,
    pub answered: u32,
}

impl Reviewers {
    fn points(self) -> Result<u32, Impossible> {
        let Reviewers { content, answered } = self;
        match (content, answered) {
            (_, 0) => Err(Impossible(self)),
            _ if content > answered => Err(Impossible(self)),
            // One content reviewer alone proves little.
            (1, 1) => Ok(10),
            _ if content == answered => Ok(25),
            _ if self.are_split() => Ok(5),
            _ => Ok(15),
        }
    }

    /// Whether half of them or more are not content.
    fn are_split(self) -> bool {
        self.content <= self.answered.saturating_sub(self.content)
    }
}

/// How far a party agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Consensus,
    Partial,
    NoConsensus,
}

impl Party {
    /// Derives the agreement from the minutes: from the votes, else from the summary. `None` if they have neither.
    pub fn of(minutes: &Minutes) -> Option<Party> {
        let ballots = || minutes.ballots.iter().filter(|ballot| !ballot.votes.is_empty());
        if ballots().next().is_none() {
            return match (minutes.consensus.is_empty(), minutes.dissent.is_empty()) {
                (true, true) => None,
                (false, true) => Some(Party::Consensus),
                (false, false) => Some(Party::Partial),
                (true, false) => Some(Party::NoConsensus),
            };
        }
        // Votes are stronger than the party's own summary.
        let agreed = ballots().filter(|ballot| ballot.is_agreed()).count();
        Some(match ballots().count() {
            all if agreed == all && minutes.dissent.is_empty() => Party::Consensus,
            all if agreed * 2 >= all => Party::Partial,
            _ => Party::NoConsensus,
        })
    }

    fn points(self) -> u32 {
        match self {
            Party::Consensus => 15,
            Party::Partial => 8,
            Party::NoConsensus => 0,
        }
    }
}

/// All signals about a text at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    pub validation: Signal<Validation>,
    pub memory: Signal<Memory>,
    pub reviewers: Signal<Reviewers>,
    pub party: Signal<Party>,
}

/// Signals that contradict themselves: a bug of the code that collected them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the confidence cannot be calculated: {} of {} reviewers are said to be content", .0.content, .0.answered)]
pub struct Impossible(pub Reviewers);

/// The result with everything that it was calculated from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confidence {
    /// 0 to 100, without the tier's deduction; levels use this score.
    pub score: u32,
    /// The band of the score for gates: how much the user is shown there.
    pub band: Band,
    /// One share for each source, in the order of [`SignalSource::ALL`]; empty if the score could not be calculated.
    pub shares: Vec<Share>,
    /// What the tier adds for gates and menus: 0 or less.
    pub adjustment: i32,
    /// The score with the tier's deduction, at least 0.
    pub for_gates: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<Edge>,
    /// A rule allows less than the points alone would give.
    pub capped: bool,
}

/// What one source contributed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    pub source: Source,
    /// The most points that the source can give.
    pub of: u32,
    #[serde(flatten)]
    pub heard: Heard,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "heard", rename_all = "snake_case")]
pub enum Heard {
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
pub enum Band {
    High,
    Medium,
    Low,
}

words!(Band { High = "high", Medium = "medium", Low = "low" });

impl Band {
    pub fn of(score: u32) -> Band {
        match score {
            80.. => Band::High,
            50.. => Band::Medium,
            _ => Band::Low,
        }
    }
}

/// What was special about the signals; of several, the one that is listed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    MiscalculatedTwice,
    Miscalculated,
    NoSignal,
    NoConsensus,
    KnownFix,
    Disagreement,
    OneSource,
    Malformed,
}

words!(Edge {
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
pub enum Asks {
    Nobody,
    Person,
    /// Nothing continues automatically.
    Halt,
}

impl Edge {
    pub fn asks(self) -> Asks {
        match self {
            Edge::MiscalculatedTwice => Asks::Halt,
            Edge::Miscalculated | Edge::NoSignal => Asks::Person,
            _ => Asks::Nobody,
        }
    }
}

pub fn calculate(signals: &Signals, tier: Tier) -> Result<Confidence, Impossible> {
    let shares = signals.shares()?;
    let counted = || shares.iter().filter_map(|share| Some((share.source, share.points()?)));
    let sum: u32 = counted().map(|(_, points)| points).sum();
    let most: u32 = shares.iter().filter(|share| share.applies()).map(|share| share.of).sum();
    if most == 0 {
        // Without any signal the score is fixed: it must be neither high nor zero.
        return Ok(Confidence::new(25, tier).with(shares, Some(Edge::NoSignal), false));
    }
    let plain = part_of(sum, most, 100);
    let mut score = plain;
    let mut edge = shares.iter().any(Share::is_malformed).then_some(Edge::Malformed);
    let mut sources = counted();
    // A single source is capped, however good its answer is.
    if let (Some((source, points)), None) = (sources.next(), sources.next()) {
        score = score.min(part_of(points, source.maximum(), source.alone()));
        edge = Some(Edge::OneSource);
    }
    // Conflicts come last: they override the caveats above.
    if let Some((conflict, settle)) = signals.conflict() {
        score = settle(score);
        edge = Some(conflict);
    }
    Ok(Confidence::new(score, tier).with(shares, edge, score < plain))
}

/// Calculates `part / whole x scale`, rounded half up.
fn part_of(part: u32, whole: u32, scale: u32) -> u32 {
    (2 * part * scale + whole) / (2 * whole)
}

fn adjustment(tier: Tier) -> u32 {
    match tier.number() {
        0 | 1 => 0,
        2 => 5,
        3 => 10,
        _ => 15,
    }
}

impl<T: Copy> Signal<T> {
    fn said(&self) -> Option<T> {
        match self {
            Signal::Consulted(said) => Some(*said),
            _ => None,
        }
    }

    fn share(
        &self,
        source: Source,
        points: impl Fn(T) -> Result<u32, Impossible>,
    ) -> Result<Share, Impossible> {
        let heard = match self {
            Signal::Consulted(said) => Heard::Counted { points: points(*said)? },
            Signal::NotConsulted => Heard::NotConsulted,
            Signal::Nothing => Heard::Nothing,
            Signal::Unreachable => Heard::Unreachable,
            Signal::Malformed(why) => Heard::Malformed { why: why.clone() },
        };
        Ok(Share { source, of: source.maximum(), heard })
    }
}

type Settle = fn(u32) -> u32;

impl Signals {
    fn shares(&self) -> Result<Vec<Share>, Impossible> {
        let shares = [
            self.validation.share(Source::Validation, |said| Ok(said.points())),
            self.memory.share(Source::Memory, |said| Ok(said.points())),
            self.reviewers.share(Source::Reviewers, Reviewers::points),
            self.party.share(Source::Party, |said| Ok(said.points())),
        ];
        shares.into_iter().collect()
    }

    /// Finds sources that contradict each other, with what then becomes of the score.
    fn conflict(&self) -> Option<(Edge, Settle)> {
        let validation = self.validation.said();
        let known_fix = validation == Some(Validation::Fail) && self.memory.said() == Some(Memory::Exact);
        // Counting errors and finding none is the same as a pass.
        let passed = matches!(validation, Some(Validation::Pass | Validation::Errors(0)));
        let split = self.reviewers.said().is_some_and(Reviewers::are_split);
        match self.party.said() {
            Some(Party::NoConsensus) if known_fix => Some((Edge::NoConsensus, |_| 49)),
            Some(Party::NoConsensus) => Some((Edge::NoConsensus, |score| score.min(49))),
            _ if known_fix => Some((Edge::KnownFix, |_| 50)),
            _ if passed && split => Some((Edge::Disagreement, |score| score.min(70))),
            _ => None,
        }
    }
}

impl Share {
    fn points(&self) -> Option<u32> {
        match self.heard {
            Heard::Counted { points } => Some(points),
            _ => None,
        }
    }

    fn is_malformed(&self) -> bool {
        matches!(self.heard, Heard::Malformed { .. })
    }

    /// Whether the maximum of the source counts towards the total.
    fn applies(&self) -> bool {
        self.points().is_some() || self.is_malformed()
    }

    /// Returns why the source did not count.
    fn left_out(&self) -> &'static str {
        match self.heard {
            Heard::Counted { .. } => "",
            Heard::NotConsulted => "not consulted",
            Heard::Nothing => "had nothing",
            Heard::Unreachable => "unreachable",
            Heard::Malformed { .. } => "malformed",
        }
    }
}

impl Confidence {
    fn new(score: u32, tier: Tier) -> Confidence {
        let less = adjustment(tier);
        let for_gates = score.saturating_sub(less);
        Confidence {
            score,
            band: Band::of(for_gates),
            shares: Vec::new(),
            // The deduction is shown as a negative number.
            adjustment: -less.cast_signed(),
            for_gates,
            edge: None,
            capped: false,
        }
    }

    fn with(self, shares: Vec<Share>, edge: Option<Edge>, capped: bool) -> Confidence {
        Confidence { shares, edge, capped, ..self }
    }

    /// Returns the score after a failed calculation: 30, or 25 if the previous one had failed as well.
    pub fn miscalculated(tier: Tier, last: Option<&Confidence>) -> Confidence {
        let failed = [Some(Edge::Miscalculated), Some(Edge::MiscalculatedTwice)];
        let (score, edge) = match last {
            Some(last) if failed.contains(&last.edge) => (25, Edge::MiscalculatedTwice),
            _ => (30, Edge::Miscalculated),
        };
        Confidence::new(score, tier).with(Vec::new(), Some(edge), false)
    }

    /// Describes what counted: `validation 35/35, reviewers 15/25`, and what was special.
    pub fn counted(&self) -> String {
        let shares = self.shares.iter();
        let counted =
            shares.filter_map(|share| Some(format!("{} {}/{}", share.source, share.points()?, share.of)));
        let mut parts = vec![counted.collect::<Vec<_>>().join(", ")];
        // A malformed signal is named with the sources that did not count.
        parts.extend(self.edge.filter(|edge| *edge != Edge::Malformed).map(|edge| edge.to_string()));
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }

    /// Adds to [`Confidence::describe_counted`] the sources that did not count: `…; memory, party not consulted`.
    pub fn parts(&self) -> String {
        let mut parts = vec![self.counted()];
        for why in ["malformed", "unreachable", "had nothing", "not consulted"] {
            let shares = self.shares.iter().filter(|share| share.left_out() == why);
            let names: Vec<&str> = shares.map(|share| share.source.as_str()).collect();
            if !names.is_empty() {
                parts.push(format!("{} {why}", names.join(", ")));
            }
        }
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }
}
