//! Texts about a run that are composed of what every run has and what only its kind has.

use tribunal_workflows::runs::{kinds::RunOrder, types::RunSummary, view::RunView};

use crate::{kind_table, phrases, terminal_text::truncate_path};

/// Titles of stories and lists of their keys can be of any length; more than this says no more.
const MAX_TITLE_COLUMNS: usize = 160;

/// Names a run by its kind and its title: `review of docs/prd.md`. A very long title is cut.
pub(crate) fn describe_run(order: &RunOrder) -> String {
    format!("{} of {}", kind_table::kind_word(order), truncate_path(&order.title(), MAX_TITLE_COLUMNS))
}

/// Describes why a run ended or stopped, without its outcome. A run that works for another one says whose limit was reached:
/// `story cost limit reached ($10.00 of $10.00 spent)`.
pub(crate) fn describe_ending(summary: &RunSummary) -> String {
    phrases::describe_own_ending(kind_table::limit_owner(&summary.result), summary)
}

/// Describes what a run has spent when it ends: `2 rounds · 31k tokens · $0.31 · 0:14`.
pub(crate) fn describe_spending(summary: &RunSummary) -> String {
    if !kind_table::counts_usage(&summary.result) {
        let effort_text = kind_table::describe_effort(&summary.result);
        return phrases::join_parts([effort_text.as_str(), &phrases::format_duration(summary.elapsed_ms)]);
    }
    phrases::describe_spending(&kind_table::describe_effort(&summary.result), summary)
}

/// Describes what came of a run and what it has spent.
pub(crate) fn describe_totals(summary: &RunSummary) -> String {
    let result_text = kind_table::describe_result(&summary.result);
    phrases::join_parts([result_text.as_str(), &describe_spending(summary)])
}

/// Describes what a run under way has done, found and used so far.
pub(crate) fn describe_totals_so_far(run_view: &RunView) -> String {
    let Some(result) = kind_table::find_result(run_view) else { return String::new() };
    let effort_text = match kind_table::describe_effort(&result) {
        effort_text if effort_text.is_empty() => effort_text,
        effort_text => format!("{effort_text} completed"),
    };
    // A run that has just started has used nothing yet, which leaves this text empty.
    let usage_text = describe_run_usage(run_view);
    phrases::join_parts([effort_text.as_str(), &kind_table::describe_result(&result), &usage_text])
}

/// Describes what a run and its children have used, for a table cell.
pub(crate) fn describe_run_usage(run_view: &RunView) -> String {
    // A run that ended has its totals in the summary; one under way only has the sum so far.
    match run_view.run_summary() {
        Some(summary) => phrases::describe_usage(summary.tokens, summary.cost, summary.notional),
        None => {
            let usage = run_view.total_usage();
            phrases::describe_usage(usage.tokens, usage.cost, usage.notional)
        }
    }
}
