//! What a run may use, what it has used, and the check between the two. Nothing is ever unlimited.

use alloc::{collections::BTreeMap, format, string::String};
use core::{fmt, ops::AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ids::AgentName,
    reason::{Ending, Reason},
};

/// Money in millionths, so that sums are exact; a plain number in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "f64")]
pub struct Cost(pub u64);

impl Cost {
    pub fn of(amount: f64) -> Cost {
        // A negative or absurd amount is a bug of the reporting client; it must not become a credit.
        if amount.is_finite() && amount > 0.0 { Cost((amount * 1e6 + 0.5) as u64) } else { Cost(0) }
    }

    pub fn is_nothing(&self) -> bool {
        self.0 == 0
    }

    pub fn amount(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        // Sums saturate: an overflow must not look like an unused budget.
        self.0 = self.0.saturating_add(other.0);
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.amount())
    }
}

impl Serialize for Cost {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.amount())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        f64::deserialize(from).map(Cost::of)
    }
}

/// What one agent call used, as far as the agent reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Tokens read from the provider's cache; they count a tenth.
    pub cached_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The agent reported nothing, so the usage is estimated from the sizes of prompt and output.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub estimated: bool,
    /// The cost is what the tokens would have cost; a subscription paid for them.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub notional: bool,
}

impl Usage {
    /// Estimates four bytes per token. This is accurate to a third for English, and better than a limit without any input.
    pub fn estimate(prompt_bytes: usize, output_bytes: usize) -> Usage {
        Usage {
            input_tokens: prompt_bytes as u64 / 4,
            output_tokens: output_bytes as u64 / 4,
            estimated: true,
            ..Usage::default()
        }
    }

    pub fn plus(self, other: Usage) -> Usage {
        let cost = match (self.cost, other.cost) {
            (Some(Cost(one)), Some(Cost(two))) => Some(Cost(one.saturating_add(two))),
            // With one cost unknown, the known one is a lower bound.
            (one, two) => one.or(two),
        };
        Usage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cost,
            // One estimated part makes the sum an estimate.
            estimated: self.estimated || other.estimated,
            notional: self.notional || other.notional,
        }
    }

    pub fn weighted(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens).saturating_add(self.cached_tokens / 10)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    pub rounds: u32,
    /// The most fix iterations in one round.
    pub fix_iterations: u32,
    /// The most agent tasks that may fail in a row.
    pub failures: u32,
    /// The most distinct valid findings, open or fixed.
    pub findings: u32,
    /// The most awake time.
    pub runtime_ms: u64,
    pub cost: Cost,
    /// The most weighted tokens, counted for calls whose cost was not reported.
    pub tokens: u64,
    pub waits: Waits,
}

/// How a run handles agents that may not be asked for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// How long it may wait in total; this does not count as awake time.
    pub at_most_ms: u64,
    /// Wait rather than ask another agent.
    pub first: bool,
}

impl Default for Waits {
    fn default() -> Self {
        Waits { at_most_ms: 12 * 3_600_000, first: false }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            rounds: 3,
            fix_iterations: 3,
            failures: 5,
            findings: 50,
            runtime_ms: 2 * 3_600_000,
            cost: Cost(5_000_000),
            tokens: 1_000_000,
            waits: Waits::default(),
        }
    }
}

/// What a run has used. If the user answers `more` to a halt, every limit is granted once more; `grants` counts that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    pub failures_in_a_row: u32,
    pub cost: Cost,
    /// The part of the cost that a subscription paid: what the tokens would have cost.
    #[serde(default, skip_serializing_if = "Cost::is_nothing")]
    pub notional: Cost,
    pub tokens: u64,
    /// Tokens of calls whose cost was not reported.
    pub uncosted_tokens: u64,
    pub grants: u32,
    /// Agents whose last attempts failed, with the number of failures in a row.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failing: Failing,
    /// Agents that may not be asked before this wall time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limited: BTreeMap<AgentName, u64>,
    #[serde(default, skip_serializing_if = "Waited::is_nothing")]
    pub waited: Waited,
}

/// The time in which a run only waited until an agent could be asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waited {
    pub ms: u64,
    /// The awake time up to which waiting is counted already: agents wait in parallel, and no interval counts twice.
    until_ms: u64,
}

impl Waited {
    fn is_nothing(&self) -> bool {
        *self == Waited::default()
    }

    /// Adds an interval between two awake times.
    pub fn add(&mut self, from_ms: u64, to_ms: u64) {
        // Only the part behind the last counted time is new.
        self.ms = self.ms.saturating_add(to_ms.saturating_sub(from_ms.max(self.until_ms)));
        self.until_ms = self.until_ms.max(to_ms);
    }
}

pub type Failing = BTreeMap<AgentName, u32>;

/// The outcome of one attempt of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    Answered,
    Failed,
    /// It is not installed or cannot start: another attempt would fail the same way.
    CannotWork,
    /// The agent works, but may be asked again only later.
    Limited,
}

impl Spent {
    pub fn add(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(usage.weighted());
        match usage.cost {
            Some(cost) => {
                self.cost += cost;
                if usage.notional {
                    // A subscription pays, so the tokens count towards the limit instead of the cost.
                    self.notional += cost;
                    self.uncosted_tokens = self.uncosted_tokens.saturating_add(usage.weighted());
                }
            }
            None => self.uncosted_tokens = self.uncosted_tokens.saturating_add(usage.weighted()),
        }
    }

    /// Records the outcome of an agent's attempt.
    pub fn tried(&mut self, agent: &AgentName, tried: Tried) {
        let more = match tried {
            // One success ends the row of failures.
            Tried::Answered => {
                self.failing.remove(agent);
                return;
            }
            Tried::Limited => return,
            Tried::Failed => 1,
            // Two failures make it count as failing at once; see `seating::is_working`.
            Tried::CannotWork => 2,
        };
        *self.failing.entry(agent.clone()).or_default() += more;
    }

    /// Returns the cost that is really paid.
    fn paid(&self) -> Cost {
        Cost(self.cost.0.saturating_sub(self.notional.0))
    }

    /// Returns how often each limit may be used: once, and once more for each grant.
    pub fn shares(&self) -> u32 {
        self.grants + 1
    }
}

/// Returns the pause after this many failures in a row: twice as long each time, at most a minute.
pub fn backoff_ms(failures: u32) -> u64 {
    match failures {
        0 => 0,
        // 2, 4, 8, 16 and 32 seconds.
        1..=5 => 1_000 << failures,
        _ => 60_000,
    }
}

/// What is left of every limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    pub rounds: u32,
    /// What is left in this round.
    pub fix_iterations: u32,
    pub failures: u32,
    pub seconds: u64,
    pub findings: u32,
    pub cost: Cost,
    /// Weighted tokens for calls whose cost is not reported.
    pub tokens: u64,
}

/// How far a review has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReviewProgress {
    pub rounds: u32,
    /// Fix iterations in the last round.
    pub iterations: u32,
}

impl Left {
    pub fn of(limits: &Limits, spent: &Spent, awake_ms: u64, findings: u32, done: ReviewProgress) -> Left {
        let shares = spent.shares();
        let many = u64::from(shares);
        Left {
            rounds: limits.rounds.saturating_mul(shares).saturating_sub(done.rounds),
            // Iterations and failures are counted anew after a grant, so grants do not multiply them.
            fix_iterations: limits.fix_iterations.saturating_sub(done.iterations),
            failures: limits.failures.saturating_sub(spent.failures_in_a_row),
            seconds: runtime_ms(limits, spent).saturating_sub(worked_ms(spent, awake_ms)) / 1000,
            findings: limits.findings.saturating_mul(shares).saturating_sub(findings),
            cost: cost_left(limits, spent),
            tokens: limits.tokens.saturating_mul(many).saturating_sub(spent.uncosted_tokens),
        }
    }
}

/// Returns the cost that may still be spent.
pub fn cost_left(limits: &Limits, spent: &Spent) -> Cost {
    Cost(limits.cost.0.saturating_mul(u64::from(spent.shares())).saturating_sub(spent.paid().0))
}

/// The part of the runtime that a run keeps to close in good order.
const OWN_SHARE_MS: u64 = 10_000;
/// The shortest time that a task is given: with less it could not even start.
const LEAST_MS: u64 = 1_000;

/// Returns the time that a task may take: its own timeout within the remaining runtime.
pub fn task_ms(own_ms: u64, limits: &Limits, spent: &Spent, awake_ms: u64) -> u64 {
    // The reserve leaves time to write the tracker and the summary after the last task.
    let rest =
        runtime_ms(limits, spent).saturating_sub(worked_ms(spent, awake_ms)).saturating_sub(OWN_SHARE_MS);
    own_ms.min(rest.max(LEAST_MS))
}

fn runtime_ms(limits: &Limits, spent: &Spent) -> u64 {
    limits.runtime_ms.saturating_mul(u64::from(spent.shares()))
}

/// Returns the awake time without the time spent waiting for usage limits.
fn worked_ms(spent: &Spent, awake_ms: u64) -> u64 {
    awake_ms.saturating_sub(spent.waited.ms)
}

/// Checks all limits before a step and returns the ending for the first that is used up.
pub fn guard(limits: &Limits, spent: &Spent, awake_ms: u64, findings: u32) -> Option<Ending> {
    let shares = spent.shares();
    let halt = |reason, used: String, of: String| {
        Some(Ending::new(reason, format!("{used} of {of} {}", unit(reason))))
    };
    // Failures come first: time and money are of no use to a run whose agents do not work.
    if spent.failures_in_a_row >= limits.failures {
        return halt(
            Reason::Failures,
            format!("{}", spent.failures_in_a_row.min(limits.failures)),
            format!("{}", limits.failures),
        );
    }
    let runtime = runtime_ms(limits, spent);
    let awake_ms = worked_ms(spent, awake_ms);
    // With no more than the reserved time left, a run can start nothing that would end in time.
    if awake_ms.saturating_add(OWN_SHARE_MS.min(runtime / 2)) >= runtime {
        let minutes = |ms: u64| format!("{}", ms / 60_000);
        return halt(Reason::Runtime, minutes(awake_ms), minutes(runtime));
    }
    // So many findings need a look by the user before money is spent on fixing them.
    if findings > limits.findings.saturating_mul(shares) {
        return halt(
            Reason::Findings,
            format!("{findings}"),
            format!("{}", limits.findings.saturating_mul(shares)),
        );
    }
    budget(limits, spent)
}

/// Checks cost and tokens only.
pub fn budget(limits: &Limits, spent: &Spent) -> Option<Ending> {
    let many = u64::from(spent.shares());
    let cost = Cost(limits.cost.0.saturating_mul(many));
    let tokens = limits.tokens.saturating_mul(many);
    // Tokens limit only the calls whose cost is unknown, so that no call counts twice.
    let (reason, used, of) = if spent.paid() >= cost {
        (Reason::Cost, format!("{}", spent.paid()), format!("{cost}"))
    } else if spent.uncosted_tokens >= tokens {
        (Reason::Tokens, format!("{}", spent.uncosted_tokens), format!("{tokens}"))
    } else {
        return None;
    };
    Some(Ending::new(reason, format!("{used} of {of} {}", unit(reason))))
}

fn unit(reason: Reason) -> &'static str {
    match reason {
        Reason::Failures => "failures in a row",
        Reason::Runtime => "minutes",
        Reason::Findings => "findings",
        Reason::Cost => "in cost",
        Reason::Tokens => "weighted tokens without a reported cost",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn reason(spent: Spent, awake_ms: u64, findings: u32) -> Option<Reason> {
        guard(&Limits::default(), &spent, awake_ms, findings).map(|ending| ending.reason)
    }

    #[test]
    fn each_limit_holds_by_itself() {
        let spent = Spent::default;
        assert_eq!(reason(spent(), 0, 50), None);
        assert_eq!(reason(spent(), 0, 51), Some(Reason::Findings));
        assert_eq!(reason(spent(), 7_200_000, 0), Some(Reason::Runtime));
        assert_eq!(reason(Spent { failures_in_a_row: 5, ..spent() }, 0, 0), Some(Reason::Failures));
        assert_eq!(reason(Spent { cost: Cost::of(5.0), ..spent() }, 0, 0), Some(Reason::Cost));
        assert_eq!(reason(Spent { uncosted_tokens: 1_000_000, ..spent() }, 0, 0), Some(Reason::Tokens));
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses: Vec<u64> = (0..8).map(|failures| backoff_ms(failures) / 1000).collect();
        assert_eq!(pauses, [0, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn what_is_left_of_each_limit_counts_grants_and_never_falls_below_nothing() {
        let spent = Spent { cost: Cost::of(6.5), uncosted_tokens: 10, grants: 1, ..Spent::default() };
        let left =
            Left::of(&Limits::default(), &spent, 60_000, 200, ReviewProgress { rounds: 4, iterations: 3 });
        assert_eq!((left.rounds, left.fix_iterations, left.failures), (2, 0, 5));
        assert_eq!((left.seconds, left.findings), (4 * 3600 - 60, 0));
        assert_eq!((left.cost, left.tokens), (Cost::of(3.5), 1_999_990));
    }

    #[test]
    fn a_task_gets_its_own_time_within_what_is_left_of_the_runs() {
        let (limits, spent) = (Limits::default(), Spent::default());
        let of = |awake_ms| task_ms(900_000, &limits, &spent, awake_ms);
        assert_eq!(of(0), 900_000);
        assert_eq!(of(7_200_000 - 100_000), 90_000);
        assert_eq!(of(7_200_000), 1_000);
        assert_eq!(reason(Spent::default(), 7_200_000 - 10_001, 0), None);
        assert_eq!(reason(Spent::default(), 7_200_000 - 10_000, 0), Some(Reason::Runtime));
        assert_eq!(task_ms(900_000, &limits, &Spent { grants: 1, ..spent }, 7_200_000), 900_000);
    }

    #[test]
    fn a_grant_gives_every_amount_once_more() {
        let spent = Spent { cost: Cost::of(5.0), grants: 1, ..Spent::default() };
        assert_eq!(reason(spent.clone(), 0, 0), None);
        assert_eq!(reason(Spent { cost: Cost::of(10.0), ..spent }, 0, 0), Some(Reason::Cost));
    }

    #[test]
    fn tokens_count_only_where_no_cost_was_reported_and_cache_reads_weigh_a_tenth() {
        let mut spent = Spent::default();
        spent.add(&Usage { input_tokens: 100, output_tokens: 50, cached_tokens: 1000, ..Usage::default() });
        spent.add(&Usage { input_tokens: 7, cost: Some(Cost::of(0.25)), ..Usage::default() });
        assert_eq!((spent.uncosted_tokens, spent.tokens, spent.cost), (250, 257, Cost::of(0.25)));
        spent.add(&Usage { cost: Some(Cost::of(0.5)), notional: true, ..Usage::default() });
        assert_eq!((spent.cost, spent.notional), (Cost::of(0.75), Cost::of(0.5)));
    }

    #[test]
    fn what_a_subscription_paid_for_is_limited_by_its_tokens() {
        let mut spent = Spent::default();
        let usage = |tokens| Usage {
            input_tokens: tokens,
            cost: Some(Cost::of(50.0)),
            notional: true,
            ..Usage::default()
        };
        spent.add(&usage(600_000));
        assert_eq!(reason(spent.clone(), 0, 0), None);
        assert_eq!(cost_left(&Limits::default(), &spent), Limits::default().cost);
        spent.add(&usage(600_000));
        assert_eq!(reason(spent, 0, 0), Some(Reason::Tokens));
    }

    #[test]
    fn waiting_for_a_limit_uses_up_no_time_and_is_counted_once() {
        let mut spent = Spent::default();
        let hours = |hours: u64| hours * 3_600_000;
        spent.waited.add(hours(1), hours(4));
        spent.waited.add(hours(2), hours(5));
        spent.waited.add(hours(1), hours(4));
        assert_eq!(spent.waited.ms, hours(4));
        assert_eq!(reason(spent.clone(), hours(5), 0), None);
        assert_eq!(reason(spent, hours(6), 0), Some(Reason::Runtime));
    }

    #[test]
    fn a_negative_cost_is_no_credit() {
        assert_eq!(Cost::of(-3.0), Cost(0));
        assert_eq!(Cost::of(f64::NAN), Cost(0));
    }
}
