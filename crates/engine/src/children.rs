//! Child runs as their parent sees them: what they report, and how they share its limits.

use alloc::{collections::BTreeMap, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    child_outcome::{ChildOutcome, ReturnedChild},
    effect::Requests,
    event::{JournalEntry, RunEvent},
    ids::{Key, RunId},
    limits::{Cost, LimitShare, UsageTotals, WaitTotal},
    reason::RunReason,
    run_types::{AnyEffect, RunTypes},
    tier::ProcessTier,
};

/// How deep runs may be nested below a root. A run that started itself again and again would otherwise use up the disk before any
/// limit of its own.
pub const MAX_DEPTH: u32 = 6;

/// Runs another run as a child of this one, or continues it, until it ends or waits: the start and the wait in one, within a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "", rename = "RunChild")]
pub struct RunChild<T: RunTypes> {
    /// Unique among the children of a run: the same name continues the same child.
    pub name: String,
    pub order: T::Order,
    /// What the child may use in its whole life. A child that is continued may be given more.
    pub share: LimitShare,
    /// The workspace for development of this run whose files the child works on; `None` lets it work on the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The tier of the child, if it is not that of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<ProcessTier>,
}

/// Starts another run as a child of this one, or continues it, and does not wait for it: it works on beside this run, also when this
/// run crosses a boundary. [`AwaitChild`] tells when it comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "", rename = "StartChild")]
pub struct StartChild<T: RunTypes> {
    #[serde(flatten)]
    pub child: RunChild<T>,
}

/// The outcome of starting a child: it has an id, and it will come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StartedChild {
    pub name: String,
    pub run: RunId,
}

/// Waits until a child that was started comes back, or until the user sends something. Children are awaited in the order in which they
/// came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AwaitChild {}

/// What a run that waits for its children is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "news", rename_all = "snake_case")]
#[schemars(bound = "", rename = "ChildNews")]
pub enum ChildNews<T: RunTypes> {
    Returned(ReturnedChild<T>),
    /// The user has sent something to this run, or to a child that waits.
    Word(Requests<T>),
}

/// A child run as the journal of its parent shows it.
#[derive(Clone, Debug)]
pub struct ChildStanding<T: RunTypes> {
    pub run: RunId,
    pub usage: UsageTotals,
    /// How it came back last; `None` if it has not come back since it was asked for.
    pub outcome: Option<ChildOutcome<T>>,
}

impl<T: RunTypes> ChildStanding<T> {
    pub fn new(run: RunId) -> ChildStanding<T> {
        ChildStanding { run, usage: UsageTotals::default(), outcome: None }
    }

    /// Applies what a child has used that still works.
    pub fn apply_usage(&mut self, used: UsageTotals) {
        self.usage = self.usage.max_of(&used);
    }

    /// Applies the outcome, if it is that of this child.
    pub fn apply_outcome(&mut self, outcome: &ChildOutcome<T>) {
        if outcome.child_run() == Some(&self.run) {
            self.usage = outcome.used_totals();
            self.outcome = Some(outcome.clone());
        }
    }
}

/// Returns how long a run itself waited until agents could be asked again, according to its whole journal.
pub fn measure_waits<'e, T: RunTypes>(entries: impl IntoIterator<Item = &'e JournalEntry<T>>) -> u64 {
    let mut start_times: BTreeMap<&Key, u64> = BTreeMap::new();
    let mut waited = WaitTotal::default();
    for entry in entries {
        match &entry.event {
            RunEvent::EffectStarted { key, effect, .. } if effect.awaits_agent() => {
                start_times.insert(key, entry.at.awake_ms);
            }
            RunEvent::EffectFinished { key, .. } => {
                if let Some(from_ms) = start_times.remove(key) {
                    waited.add_interval(from_ms, entry.at.awake_ms);
                }
            }
            _ => {}
        }
    }
    waited.ms
}

/// What the children of a run have used, and what they were given. A workflow keeps it in its state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ChildLedger {
    /// By the names of the children.
    accounts: BTreeMap<String, ChildAccount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
struct ChildAccount {
    used: UsageTotals,
    worked_ms: u64,
    /// What it may use in addition while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lent: Option<LimitShare>,
    /// What it may use in its whole life, as it was told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<LimitShare>,
    /// The limit at which it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reached: Option<ReachedLimit>,
    /// What it is lent next, because the limit at which it waited was raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extension: Option<LimitShare>,
}

/// A limit at which a child waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
struct ReachedLimit {
    reason: RunReason,
    /// The limit of one child when it was reached.
    limit: LimitShare,
}

impl ChildAccount {
    /// Returns what the child may still use after the limit was raised: what was lent to it grows by the difference. A limit that was
    /// lowered takes nothing away.
    fn extend_share(&self, reached: ReachedLimit, limit: LimitShare) -> Option<LimitShare> {
        let whole = self.whole?;
        let left = |whole: u64, old_limit: u64, new_limit: u64, used: u64| {
            let extended = whole.saturating_add(new_limit.saturating_sub(old_limit)).max(new_limit);
            extended.saturating_sub(used)
        };
        let old_limit = reached.limit;
        Some(LimitShare {
            runtime_ms: left(whole.runtime_ms, old_limit.runtime_ms, limit.runtime_ms, self.worked_ms),
            cost: Cost(left(whole.cost.0, old_limit.cost.0, limit.cost.0, self.used.paid_cost().0)),
            tokens: left(whole.tokens, old_limit.tokens, limit.tokens, self.used.uncosted_tokens),
        })
    }
}

/// Returns the part of a share that this reason is about; none for a reason that is no amount.
fn amount_for(share: LimitShare, reason: RunReason) -> u64 {
    match reason {
        RunReason::Runtime => share.runtime_ms,
        RunReason::Cost => share.cost.0,
        RunReason::Tokens => share.tokens,
        _ => 0,
    }
}

impl ChildLedger {
    /// Lends a child the `parts`-th part of what the run has left, after what is lent to other children. Returns what the
    /// child may use in its whole life. Time passes for all children at once, so it is not divided.
    pub fn lend_share(&mut self, child_name: &str, remaining: LimitShare, parts: u32) -> LimitShare {
        let lent_shares = || self.accounts.values().filter_map(|account| account.lent);
        let parts = u64::from(parts.max(1));
        let free_cost = remaining.cost.0.saturating_sub(lent_shares().map(|share| share.cost.0).sum());
        let free_tokens = remaining.tokens.saturating_sub(lent_shares().map(|share| share.tokens).sum());
        let lent =
            LimitShare { runtime_ms: remaining.runtime_ms, cost: Cost(free_cost / parts), tokens: free_tokens / parts };
        let account = self.accounts.entry(String::from(child_name)).or_default();
        account.lent = Some(lent);
        let whole = LimitShare {
            runtime_ms: account.worked_ms.saturating_add(lent.runtime_ms),
            cost: Cost(account.used.paid_cost().0.saturating_add(lent.cost.0)),
            tokens: account.used.uncosted_tokens.saturating_add(lent.tokens),
        };
        account.whole = Some(whole);
        account.reached = None;
        whole
    }

    /// Remembers that a child waits, because it has used up what one child may use.
    pub fn note_reached(&mut self, child_name: &str, reason: RunReason, limit: LimitShare) {
        let account = self.accounts.entry(String::from(child_name)).or_default();
        account.reached = Some(ReachedLimit { reason, limit });
    }

    /// Applies the limit of one child to a child that waits. Returns whether it can continue: the limit at which it waits was raised, and
    /// is more than what it has used. A child may use more than its limit, because a session is not ended for it.
    pub fn raise_limit(&mut self, child_name: &str, limit: LimitShare) -> bool {
        let Some(account) = self.accounts.get_mut(child_name) else { return false };
        let is_raised =
            |reached: &ReachedLimit| amount_for(limit, reached.reason) > amount_for(reached.limit, reached.reason);
        let Some(reached) = account.reached.filter(is_raised) else { return false };
        // With nothing left it would come back at once. It still waits at the limit of then, so a higher one can follow.
        let has_something_left = |extension: &LimitShare| amount_for(*extension, reached.reason) > 0;
        let Some(extension) = account.extend_share(reached, limit).filter(has_something_left) else { return false };
        account.extension = Some(extension);
        account.reached = None;
        true
    }

    /// Returns what a child is lent because its limit was raised, once. A child that the user grants more does not need it.
    pub fn take_extension(&mut self, child_name: &str) -> Option<LimitShare> {
        self.accounts.get_mut(child_name)?.extension.take()
    }

    /// Takes back what a child did not use, and returns what it used since the last time.
    pub fn settle_account<T: RunTypes>(&mut self, child_name: &str, outcome: &ChildOutcome<T>) -> UsageTotals {
        let account = self.accounts.entry(String::from(child_name)).or_default();
        account.lent = None;
        // What a child that failed had paid for counts like any other usage.
        let newly_used = outcome.used_totals().used_since(&account.used);
        if let ChildOutcome::Ended(report) | ChildOutcome::Waiting(report) = outcome {
            account.worked_ms = report.worked_ms;
        }
        account.used = account.used.max_of(&outcome.used_totals());
        newly_used
    }

    /// Drops the account of a child that has ended.
    pub fn forget_account(&mut self, child_name: &str) {
        self.accounts.remove(child_name);
    }
}
