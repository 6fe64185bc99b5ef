//! What a run may use, what it has used, and the check between the two. Nothing is ever unlimited.

use alloc::{collections::BTreeMap, format};

use tribunal_json::{Deserialize, Serialize, schemars};

pub use crate::{cost::Cost, remaining::RemainingLimits};
use crate::{
    ids::AgentName,
    reason::{RunEnding, RunReason},
};

/// What one agent call used, as far as the agent reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentUsage {
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

impl AgentUsage {
    /// Estimates four bytes per token. A rough estimate is better than a limit that counts nothing.
    pub fn estimate_from_bytes(prompt_bytes: usize, output_bytes: usize) -> AgentUsage {
        AgentUsage {
            input_tokens: prompt_bytes as u64 / 4,
            output_tokens: output_bytes as u64 / 4,
            estimated: true,
            ..AgentUsage::default()
        }
    }

    pub fn combined_with(self, other_usage: AgentUsage) -> AgentUsage {
        let cost = match (self.cost, other_usage.cost) {
            (Some(Cost(own_cost)), Some(Cost(other_cost))) => Some(Cost(own_cost.saturating_add(other_cost))),
            // With one cost unknown, the known one is a lower bound.
            (own_cost, other_cost) => own_cost.or(other_cost),
        };
        AgentUsage {
            input_tokens: self.input_tokens.saturating_add(other_usage.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other_usage.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other_usage.cached_tokens),
            cost,
            // One estimated part makes the sum an estimate.
            estimated: self.estimated || other_usage.estimated,
            notional: self.notional || other_usage.notional,
        }
    }

    pub fn weighted_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens).saturating_add(self.cached_tokens / 10)
    }
}

/// The limits of every kind of run. Limits that only one kind has are in its order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunLimits {
    /// The most agent tasks that may fail in a row.
    pub failures: u32,
    /// The most awake time, without the waits for usage limits.
    pub runtime_ms: u64,
    pub cost: Cost,
    /// The most weighted tokens, counted for calls whose cost was not reported or that a subscription paid.
    pub tokens: u64,
    /// The most weighted tokens of one task, estimated while it works.
    #[serde(default = "default_task_tokens")]
    pub task_tokens: u64,
    /// The most turns of one task: messages of the model and calls of tools.
    #[serde(default = "default_task_turns")]
    pub task_turns: u32,
    pub waits: WaitLimits,
    /// The most calls of agents in an hour, of all runs of the user together.
    #[serde(default = "default_calls_per_hour")]
    pub calls_per_hour: u32,
    /// What the parent of a child run lets it use. The user's grants do not raise it: only the parent does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<LimitShare>,
}

/// The part of a run's limits that a child of it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LimitShare {
    pub runtime_ms: u64,
    pub cost: Cost,
    pub tokens: u64,
}

/// How a run handles agents that may not be asked for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WaitLimits {
    /// How long it may wait in total; this does not count towards the runtime.
    pub at_most_ms: u64,
    /// Wait rather than ask another agent.
    pub first: bool,
}

impl Default for WaitLimits {
    fn default() -> Self {
        WaitLimits { at_most_ms: 12 * 3_600_000, first: false }
    }
}

fn default_task_tokens() -> u64 {
    500_000
}

fn default_task_turns() -> u32 {
    200
}

fn default_calls_per_hour() -> u32 {
    1_000
}

impl Default for RunLimits {
    fn default() -> Self {
        RunLimits {
            failures: 5,
            runtime_ms: 2 * 3_600_000,
            cost: Cost(5_000_000),
            tokens: 1_000_000,
            task_tokens: default_task_tokens(),
            task_turns: default_task_turns(),
            waits: WaitLimits::default(),
            calls_per_hour: default_calls_per_hour(),
            share: None,
        }
    }
}

impl RunLimits {
    /// The defaults of a sprint: a night for several stories.
    pub fn for_sprint() -> RunLimits {
        RunLimits {
            runtime_ms: 12 * 3_600_000,
            cost: Cost(50_000_000),
            tokens: 10_000_000,
            ..RunLimits::for_development()
        }
    }

    /// The limits of the run as a share that a child may have.
    pub fn as_share(&self) -> LimitShare {
        LimitShare { runtime_ms: self.runtime_ms, cost: self.cost, tokens: self.tokens }
    }

    /// The defaults of runs that develop: a story or a loop takes longer than a review.
    pub fn for_development() -> RunLimits {
        RunLimits {
            runtime_ms: 4 * 3_600_000,
            cost: Cost(10_000_000),
            tokens: 2_000_000,
            task_tokens: 1_000_000,
            task_turns: 500,
            ..RunLimits::default()
        }
    }
}

/// What a run has used. If the user answers `more` to a halt, every limit is granted once more; `grants` counts that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunUsage {
    pub failures_in_a_row: u32,
    pub cost: Cost,
    /// The part of the cost that a subscription paid: what the tokens would have cost.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub notional: Cost,
    pub tokens: u64,
    /// Tokens of calls whose cost was not reported or that a subscription paid.
    pub uncosted_tokens: u64,
    pub grants: u32,
    /// Agents whose last attempts failed, with the number of failures in a row.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failing: FailureCounts,
    /// Agents that may not be asked before this wall time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limited: BTreeMap<AgentName, u64>,
    #[serde(default, skip_serializing_if = "WaitTotal::is_zero")]
    pub waited: WaitTotal,
    /// The time in which child runs only waited until an agent could be asked again.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub children_waited_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_no_time(duration_ms: &u64) -> bool {
    *duration_ms == 0
}

/// What a run has used in all, for its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct UsageTotals {
    pub cost: Cost,
    /// The part of the cost that a subscription paid.
    #[serde(skip_serializing_if = "Cost::is_zero")]
    pub notional: Cost,
    pub tokens: u64,
    /// Tokens of calls whose cost was not reported or that a subscription paid.
    pub uncosted_tokens: u64,
    /// The time in which the run and its children only waited until an agent could be asked again.
    #[serde(skip_serializing_if = "is_no_time")]
    pub waited_ms: u64,
}

impl UsageTotals {
    /// Returns the cost that is really paid.
    pub fn paid_cost(&self) -> Cost {
        Cost(self.cost.0.saturating_sub(self.notional.0))
    }

    /// Returns the larger of both in each figure: a total never falls.
    #[must_use]
    pub fn max_of(&self, other: &UsageTotals) -> UsageTotals {
        UsageTotals {
            cost: self.cost.max(other.cost),
            notional: self.notional.max(other.notional),
            tokens: self.tokens.max(other.tokens),
            uncosted_tokens: self.uncosted_tokens.max(other.uncosted_tokens),
            waited_ms: self.waited_ms.max(other.waited_ms),
        }
    }

    /// Returns what was used since an earlier total.
    #[must_use]
    pub fn used_since(&self, earlier: &UsageTotals) -> UsageTotals {
        UsageTotals {
            cost: Cost(self.cost.0.saturating_sub(earlier.cost.0)),
            notional: Cost(self.notional.0.saturating_sub(earlier.notional.0)),
            tokens: self.tokens.saturating_sub(earlier.tokens),
            uncosted_tokens: self.uncosted_tokens.saturating_sub(earlier.uncosted_tokens),
            waited_ms: self.waited_ms.saturating_sub(earlier.waited_ms),
        }
    }
}

/// The time in which a run only waited until an agent could be asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WaitTotal {
    pub ms: u64,
    /// The awake time up to which waiting is counted already: agents wait in parallel, and no interval counts twice.
    until_ms: u64,
}

impl WaitTotal {
    fn is_zero(&self) -> bool {
        *self == WaitTotal::default()
    }

    /// Adds an interval between two awake times.
    pub fn add_interval(&mut self, from_ms: u64, to_ms: u64) {
        // Only the part behind the last counted time is new.
        self.ms = self.ms.saturating_add(to_ms.saturating_sub(from_ms.max(self.until_ms)));
        self.until_ms = self.until_ms.max(to_ms);
    }
}

pub type FailureCounts = BTreeMap<AgentName, u32>;

/// The outcome of one attempt of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    Answered,
    Failed,
    /// The environment keeps it from working, for instance because it is not installed: another attempt would fail, too.
    CannotWork,
    /// The agent works, but may be asked again only later.
    Limited,
}

impl RunUsage {
    pub fn add_usage(&mut self, call_usage: &AgentUsage) {
        self.tokens = self.tokens.saturating_add(call_usage.weighted_tokens());
        match call_usage.cost {
            Some(cost) => {
                self.cost += cost;
                if call_usage.notional {
                    // A subscription pays, so the tokens count towards a limit and the cost does not.
                    self.notional += cost;
                    self.uncosted_tokens = self.uncosted_tokens.saturating_add(call_usage.weighted_tokens());
                }
            }
            None => self.uncosted_tokens = self.uncosted_tokens.saturating_add(call_usage.weighted_tokens()),
        }
    }

    /// Records the outcome of an agent's attempt.
    pub fn record_attempt(&mut self, agent: &AgentName, attempt: AttemptOutcome) {
        let added_failures = match attempt {
            // One success ends the row of failures.
            AttemptOutcome::Answered => {
                self.failing.remove(agent);
                return;
            }
            AttemptOutcome::Limited => return,
            AttemptOutcome::Failed => 1,
            // Two failures make it count as failing at once; see `selection::is_working`.
            AttemptOutcome::CannotWork => 2,
        };
        *self.failing.entry(agent.clone()).or_default() += added_failures;
    }

    /// Adds what a child run used.
    pub fn add_child(&mut self, child_usage: &UsageTotals) {
        self.cost += child_usage.cost;
        self.notional += child_usage.notional;
        self.tokens = self.tokens.saturating_add(child_usage.tokens);
        self.uncosted_tokens = self.uncosted_tokens.saturating_add(child_usage.uncosted_tokens);
        self.children_waited_ms = self.children_waited_ms.saturating_add(child_usage.waited_ms);
    }

    pub fn usage_totals(&self) -> UsageTotals {
        let RunUsage { cost, notional, tokens, uncosted_tokens, .. } = *self;
        UsageTotals { cost, notional, tokens, uncosted_tokens, waited_ms: self.total_waited_ms() }
    }

    /// Returns the time in which the run or its children only waited until an agent could be asked again.
    fn total_waited_ms(&self) -> u64 {
        self.waited.ms.saturating_add(self.children_waited_ms)
    }

    fn paid_cost(&self) -> Cost {
        self.usage_totals().paid_cost()
    }

    /// Returns how often each limit may be used: once, and once more for each grant.
    pub fn granted_shares(&self) -> u32 {
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

impl RemainingLimits {
    pub fn calculate(limits: &RunLimits, run_usage: &RunUsage, awake_ms: u64) -> RemainingLimits {
        RemainingLimits {
            // Failures are counted anew after a grant, so grants do not multiply them.
            failures: limits.failures.saturating_sub(run_usage.failures_in_a_row),
            seconds: remaining_runtime_ms(limits, run_usage, awake_ms) / 1000,
            cost: remaining_cost(limits, run_usage),
            tokens: remaining_tokens(limits, run_usage),
            counts: BTreeMap::new(),
        }
    }
}

/// Returns the cost that may still be spent.
pub fn remaining_cost(limits: &RunLimits, run_usage: &RunUsage) -> Cost {
    Cost(cost_limit(limits, run_usage).0.saturating_sub(run_usage.paid_cost().0))
}

/// Returns the weighted tokens that may still be used by calls whose cost is not reported or that a subscription pays.
pub fn remaining_tokens(limits: &RunLimits, run_usage: &RunUsage) -> u64 {
    token_limit(limits, run_usage).saturating_sub(run_usage.uncosted_tokens)
}

/// Returns what is left of the limits that a run can pass on to a child.
pub fn remaining_share(limits: &RunLimits, run_usage: &RunUsage, awake_ms: u64) -> LimitShare {
    LimitShare {
        runtime_ms: remaining_runtime_ms(limits, run_usage, awake_ms),
        cost: remaining_cost(limits, run_usage),
        tokens: remaining_tokens(limits, run_usage),
    }
}

/// Returns the limit with every grant of the user, but not more than the share of a child run.
fn granted_limit(run_usage: &RunUsage, own_limit: u64, share: Option<u64>) -> u64 {
    own_limit.saturating_mul(u64::from(run_usage.granted_shares())).min(share.unwrap_or(u64::MAX))
}

fn cost_limit(limits: &RunLimits, run_usage: &RunUsage) -> Cost {
    Cost(granted_limit(run_usage, limits.cost.0, limits.share.map(|share| share.cost.0)))
}

fn token_limit(limits: &RunLimits, run_usage: &RunUsage) -> u64 {
    granted_limit(run_usage, limits.tokens, limits.share.map(|share| share.tokens))
}

fn runtime_limit_ms(limits: &RunLimits, run_usage: &RunUsage) -> u64 {
    granted_limit(run_usage, limits.runtime_ms, limits.share.map(|share| share.runtime_ms))
}

fn remaining_runtime_ms(limits: &RunLimits, run_usage: &RunUsage, awake_ms: u64) -> u64 {
    runtime_limit_ms(limits, run_usage).saturating_sub(worked_ms(run_usage, awake_ms))
}

/// The part of the runtime that a run keeps to close in good order.
const RESERVED_MS: u64 = 10_000;
/// The shortest time that a task is given: with less it could not even start.
const MIN_TASK_MS: u64 = 1_000;

/// Returns the time that a task may take: its own timeout within the remaining runtime.
pub fn task_timeout_ms(own_timeout_ms: u64, limits: &RunLimits, run_usage: &RunUsage, awake_ms: u64) -> u64 {
    // The reserve leaves time to write the tracker and the summary after the last task.
    let remaining_ms = remaining_runtime_ms(limits, run_usage, awake_ms).saturating_sub(RESERVED_MS);
    own_timeout_ms.min(remaining_ms.max(MIN_TASK_MS))
}

/// Returns the awake time without the time spent waiting until agents could be asked again, also by child runs.
fn worked_ms(run_usage: &RunUsage, awake_ms: u64) -> u64 {
    awake_ms.saturating_sub(run_usage.total_waited_ms())
}

/// Checks the limits of every kind of run before a step and returns the ending for the first that is used up.
pub fn check_limits(limits: &RunLimits, run_usage: &RunUsage, awake_ms: u64) -> Option<RunEnding> {
    check_effort(limits, run_usage, awake_ms).or_else(|| check_budget(limits, run_usage))
}

/// Checks failures and time only.
pub fn check_effort(limits: &RunLimits, run_usage: &RunUsage, awake_ms: u64) -> Option<RunEnding> {
    // Failures come first: time and money are of no use to a run whose agents do not work.
    if run_usage.failures_in_a_row >= limits.failures {
        let failure_count = run_usage.failures_in_a_row.min(limits.failures);
        return Some(RunEnding::new(RunReason::Failures, format!("{failure_count} of {} failures", limits.failures)));
    }
    check_runtime(limits, run_usage, awake_ms)
}

/// Checks the time only.
pub fn check_runtime(limits: &RunLimits, run_usage: &RunUsage, awake_ms: u64) -> Option<RunEnding> {
    let runtime_limit = runtime_limit_ms(limits, run_usage);
    let awake_ms = worked_ms(run_usage, awake_ms);
    // With no more than the reserved time left, a run can start nothing that would end in time.
    let is_used_up = awake_ms.saturating_add(RESERVED_MS.min(runtime_limit / 2)) >= runtime_limit;
    is_used_up.then(|| {
        let (unit_ms, unit) = if runtime_limit < 120_000 { (1_000, "seconds") } else { (60_000, "minutes") };
        let detail = format!("{} of {} {unit}", awake_ms / unit_ms, runtime_limit / unit_ms);
        RunEnding::new(RunReason::Runtime, detail)
    })
}

/// Checks cost and tokens only.
pub fn check_budget(limits: &RunLimits, run_usage: &RunUsage) -> Option<RunEnding> {
    let cost_limit = cost_limit(limits, run_usage);
    let token_limit = token_limit(limits, run_usage);
    // Tokens limit only the calls that the cost does not cover, so that no call counts twice.
    let (reason, used_amount, allowed_amount) = if run_usage.paid_cost() >= cost_limit {
        (RunReason::Cost, format!("${}", run_usage.paid_cost()), format!("${cost_limit}"))
    } else if run_usage.uncosted_tokens >= token_limit {
        (RunReason::Tokens, format!("{}", run_usage.uncosted_tokens), format!("{token_limit}"))
    } else {
        return None;
    };
    Some(RunEnding::new(reason, format!("{used_amount} of {allowed_amount} {}", limit_unit(reason))))
}

fn limit_unit(reason: RunReason) -> &'static str {
    match reason {
        RunReason::Cost => "spent",
        RunReason::Tokens => "weighted tokens (in calls without a reported cost)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn halt_reason(run_usage: RunUsage, awake_ms: u64) -> Option<RunReason> {
        check_limits(&RunLimits::default(), &run_usage, awake_ms).map(|ending| ending.reason)
    }

    #[test]
    fn each_limit_holds_by_itself() {
        let fresh_usage = RunUsage::default;
        assert_eq!(halt_reason(fresh_usage(), 0), None);
        assert_eq!(halt_reason(fresh_usage(), 7_200_000), Some(RunReason::Runtime));
        assert_eq!(halt_reason(RunUsage { failures_in_a_row: 5, ..fresh_usage() }, 0), Some(RunReason::Failures));
        assert_eq!(halt_reason(RunUsage { cost: Cost::from_amount(5.0), ..fresh_usage() }, 0), Some(RunReason::Cost));
        assert_eq!(halt_reason(RunUsage { uncosted_tokens: 1_000_000, ..fresh_usage() }, 0), Some(RunReason::Tokens));
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let pauses: Vec<u64> = (0..8).map(|failures| backoff_ms(failures) / 1000).collect();
        assert_eq!(pauses, [0, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn remaining_limits_count_grants_and_never_fall_below_zero() {
        let run_usage =
            RunUsage { cost: Cost::from_amount(6.5), uncosted_tokens: 10, grants: 1, ..RunUsage::default() };
        let remaining = RemainingLimits::calculate(&RunLimits::default(), &run_usage, 60_000);
        assert_eq!((remaining.failures, remaining.seconds), (5, 4 * 3600 - 60));
        assert_eq!((remaining.cost, remaining.tokens), (Cost::from_amount(3.5), 1_999_990));
    }

    #[test]
    fn a_task_gets_its_own_timeout_within_the_remaining_runtime() {
        let (limits, run_usage) = (RunLimits::default(), RunUsage::default());
        let timeout_at = |awake_ms| task_timeout_ms(900_000, &limits, &run_usage, awake_ms);
        assert_eq!(timeout_at(0), 900_000);
        assert_eq!(timeout_at(7_200_000 - 100_000), 90_000);
        assert_eq!(timeout_at(7_200_000), 1_000);
        assert_eq!(halt_reason(RunUsage::default(), 7_200_000 - 10_001), None);
        assert_eq!(halt_reason(RunUsage::default(), 7_200_000 - 10_000), Some(RunReason::Runtime));
        assert_eq!(task_timeout_ms(900_000, &limits, &RunUsage { grants: 1, ..run_usage }, 7_200_000), 900_000);
    }

    #[test]
    fn a_grant_gives_every_amount_once_more() {
        let run_usage = RunUsage { cost: Cost::from_amount(5.0), grants: 1, ..RunUsage::default() };
        assert_eq!(halt_reason(run_usage.clone(), 0), None);
        assert_eq!(halt_reason(RunUsage { cost: Cost::from_amount(10.0), ..run_usage }, 0), Some(RunReason::Cost));
    }

    #[test]
    fn a_grant_does_not_raise_the_share_of_a_child() {
        let share = LimitShare { runtime_ms: 60_000, cost: Cost::from_amount(6.0), tokens: 10 };
        let limits = RunLimits { share: Some(share), ..RunLimits::default() };
        let run_usage = RunUsage { cost: Cost::from_amount(5.5), grants: 3, ..RunUsage::default() };
        assert_eq!(remaining_cost(&limits, &run_usage), Cost::from_amount(0.5));
        assert_eq!(
            remaining_share(&limits, &run_usage, 10_000),
            LimitShare { runtime_ms: 50_000, cost: Cost::from_amount(0.5), tokens: 10 }
        );
        let halted =
            |run_usage: &RunUsage, awake_ms| check_limits(&limits, run_usage, awake_ms).map(|ending| ending.reason);
        assert_eq!(halted(&run_usage, 0), None);
        assert_eq!(halted(&run_usage, 55_000), Some(RunReason::Runtime));
        assert_eq!(halted(&RunUsage { uncosted_tokens: 10, ..run_usage.clone() }, 0), Some(RunReason::Tokens));
        assert_eq!(halted(&RunUsage { cost: Cost::from_amount(6.0), ..run_usage }, 0), Some(RunReason::Cost));
    }

    #[test]
    fn tokens_count_only_where_no_cost_was_reported_and_cache_reads_weigh_a_tenth() {
        let mut run_usage = RunUsage::default();
        run_usage.add_usage(&AgentUsage {
            input_tokens: 100,
            output_tokens: 50,
            cached_tokens: 1000,
            ..AgentUsage::default()
        });
        run_usage.add_usage(&AgentUsage {
            input_tokens: 7,
            cost: Some(Cost::from_amount(0.25)),
            ..AgentUsage::default()
        });
        assert_eq!((run_usage.uncosted_tokens, run_usage.tokens, run_usage.cost), (250, 257, Cost::from_amount(0.25)));
        run_usage.add_usage(&AgentUsage {
            cost: Some(Cost::from_amount(0.5)),
            notional: true,
            ..AgentUsage::default()
        });
        assert_eq!((run_usage.cost, run_usage.notional), (Cost::from_amount(0.75), Cost::from_amount(0.5)));
    }

    #[test]
    fn what_a_subscription_paid_for_is_limited_by_its_tokens() {
        let mut run_usage = RunUsage::default();
        let subscription_usage = |tokens| AgentUsage {
            input_tokens: tokens,
            cost: Some(Cost::from_amount(50.0)),
            notional: true,
            ..AgentUsage::default()
        };
        run_usage.add_usage(&subscription_usage(600_000));
        assert_eq!(halt_reason(run_usage.clone(), 0), None);
        assert_eq!(remaining_cost(&RunLimits::default(), &run_usage), RunLimits::default().cost);
        run_usage.add_usage(&subscription_usage(600_000));
        assert_eq!(halt_reason(run_usage, 0), Some(RunReason::Tokens));
    }

    #[test]
    fn waiting_for_a_limit_uses_up_no_time_and_is_counted_once() {
        let mut run_usage = RunUsage::default();
        let hours_in_ms = |hours: u64| hours * 3_600_000;
        run_usage.waited.add_interval(hours_in_ms(1), hours_in_ms(4));
        run_usage.waited.add_interval(hours_in_ms(2), hours_in_ms(5));
        run_usage.waited.add_interval(hours_in_ms(1), hours_in_ms(4));
        assert_eq!(run_usage.waited.ms, hours_in_ms(4));
        assert_eq!(halt_reason(run_usage.clone(), hours_in_ms(5)), None);
        assert_eq!(halt_reason(run_usage, hours_in_ms(6)), Some(RunReason::Runtime));
    }

    #[test]
    fn a_negative_cost_counts_as_zero() {
        assert_eq!(Cost::from_amount(-3.0), Cost(0));
        assert_eq!(Cost::from_amount(f64::NAN), Cost(0));
    }

    #[test]
    fn what_a_child_waits_uses_up_no_time_of_its_parent() {
        let hour_ms = 3_600_000;
        let limits = RunLimits { runtime_ms: 2 * hour_ms, ..RunLimits::default() };
        let mut run_usage = RunUsage::default();
        run_usage.add_child(&UsageTotals { waited_ms: 3 * hour_ms, ..UsageTotals::default() });
        assert_eq!(check_runtime(&limits, &run_usage, 4 * hour_ms), None);
        assert_eq!(remaining_share(&limits, &run_usage, 4 * hour_ms).runtime_ms, hour_ms);
        assert_eq!(
            check_runtime(&limits, &run_usage, 5 * hour_ms).map(|ending| ending.reason),
            Some(RunReason::Runtime)
        );
        assert_eq!(run_usage.usage_totals().waited_ms, 3 * hour_ms, "its own parent is told");
    }
}
