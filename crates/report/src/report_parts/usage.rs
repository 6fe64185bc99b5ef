//! What a run used, together with its child runs.

use tribunal_engine::limits::Cost;
use tribunal_json::{Serialize, schemars};
use tribunal_workflows::runs::view::RunView;

use super::document::ReportSources;
use crate::{
    phrases,
    run_standing::{RunStanding, RunState},
};

/// What a run and its child runs used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReportUsage {
    pub tokens: u64,
    pub cost: Cost,
    /// The part of the cost that a subscription paid.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub notional: Cost,
    pub elapsed_ms: u64,
}

impl ReportUsage {
    /// Adds up what a run used. The usage of a child run that has not come back yet is not in the journal of its parent, so it is read
    /// from the journal of the child.
    pub(crate) fn from_standing(run_standing: &RunStanding<'_>, sources: &ReportSources<'_>) -> ReportUsage {
        let RunStanding { run_view, is_live } = *run_standing;
        let mut usage = ReportUsage::from_view(run_view);
        if matches!(run_standing.run_state(), RunState::Ended(_)) {
            return usage;
        }
        // A run that was stopped may not have counted what a child reported last.
        let reported = run_view.total_usage();
        usage.tokens = usage.tokens.max(reported.tokens);
        usage.cost = Cost(usage.cost.0.max(reported.cost.0));
        usage.notional = Cost(usage.notional.0.max(reported.notional.0));
        let mut last_ms = run_view.last_time.wall_ms;
        for child in run_view.children.values().filter(|child| child.outcome.is_none()) {
            let Some(child_view) = (sources.read_run)(&child.run) else { continue };
            let child_standing = RunStanding { run_view: &child_view, is_live };
            let child_usage = ReportUsage::from_standing(&child_standing, sources);
            // What it had used when it came back before is counted already.
            usage.tokens += child_usage.tokens.saturating_sub(child.usage.tokens);
            usage.cost += Cost(child_usage.cost.0.saturating_sub(child.usage.cost.0));
            usage.notional += Cost(child_usage.notional.0.saturating_sub(child.usage.notional.0));
            last_ms = last_ms.max(child_view.last_time.wall_ms);
        }
        // A run writes nothing into its journal while its children work.
        usage.elapsed_ms += last_ms.saturating_sub(run_view.last_time.wall_ms);
        usage
    }

    fn from_view(run_view: &RunView) -> ReportUsage {
        match run_view.run_summary() {
            Some(summary) => ReportUsage {
                tokens: summary.tokens,
                cost: summary.cost,
                notional: summary.notional,
                elapsed_ms: summary.elapsed_ms,
            },
            None => {
                let usage = run_view.total_usage();
                ReportUsage {
                    tokens: usage.tokens,
                    cost: usage.cost,
                    notional: usage.notional,
                    elapsed_ms: run_view.last_time.awake_ms,
                }
            }
        }
    }

    /// Describes the usage: `31k tokens · $0.31 · 4:05`.
    pub(crate) fn describe(&self) -> String {
        let tokens_text = format!("{} tokens", phrases::abbreviate_count(self.tokens));
        let cost_text = phrases::describe_cost(self.cost, self.notional).unwrap_or_default();
        phrases::join_parts([tokens_text.as_str(), &cost_text, &phrases::format_duration(self.elapsed_ms)])
    }
}
