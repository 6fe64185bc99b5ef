//! Formats the figures of the court as a table, and compares them with the bars they must meet.

use std::fmt::{self, Write as _};

use tribunal_engine::reason::RunOutcome;

use super::{AgentCalls, CourtCalibration, CourtTally, CourtVariant, calibration::percent};

/// A condition that must hold, and whether it does.
#[derive(Clone, Debug)]
pub struct CourtBar {
    pub holds: bool,
    pub statement: String,
}

impl fmt::Display for CourtBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.holds { "ok     " } else { "MISSED " }, self.statement)
    }
}

/// The worst values that are allowed.
#[derive(Clone, Copy, Debug)]
pub struct AllowedRates {
    /// The false findings that reach a fixer, in percent.
    pub to_fixer: f64,
    /// The true findings that are lost, in percent.
    pub lost: f64,
    /// The findings that ended as fixed although their defect is still there, in percent.
    pub unrepaired: f64,
    pub rounds: u64,
}

/// The values that the documentation promises.
pub const ALLOWED_RATES: AllowedRates = AllowedRates { to_fixer: 5.0, lost: 1.0, unrepaired: 2.0, rounds: 3 };

/// Checks every bar for rows as in [`super::VARIANTS`]. The error rates of the first one, at tier 0, are only for comparison.
pub fn check_bars(rows: &[(CourtVariant, CourtTally)], allowed: AllowedRates) -> Vec<CourtBar> {
    let AllowedRates { to_fixer: most_to_fixer, lost: most_lost, unrepaired: most_unrepaired, rounds: most_rounds } =
        allowed;
    let mut checked_bars = Vec::new();
    let mut push_bar = |holds: bool, statement: String| checked_bars.push(CourtBar { holds, statement });
    for (variant, tally) in rows.iter().filter(|(variant, _)| variant.tier > 0) {
        let variant_name = variant.name;
        let to_fixer = percent(tally.false_ones.to_fixer, tally.false_ones.raised);
        let lost = percent(tally.true_ones.lost, tally.true_ones.raised);
        // The challengers of a single provider are one voice, which dismisses nothing of high severity.
        if variant.providers > 1 {
            push_bar(
                to_fixer <= most_to_fixer,
                format!("{variant_name}: {to_fixer:.2} % of false findings reach a fixer (limit {most_to_fixer} %)"),
            );
        }
        let unrepaired = percent(tally.repairs.unrepaired, tally.repairs.fixed);
        push_bar(
            unrepaired <= most_unrepaired,
            format!("{variant_name}: {unrepaired:.2} % of fixed findings are not repaired (limit {most_unrepaired} %)"),
        );
        push_bar(
            lost <= most_lost,
            format!("{variant_name}: {lost:.2} % of true findings are lost (limit {most_lost} %)"),
        );
    }
    for (variant, tally) in rows {
        let (variant_name, longest_run) = (variant.name, tally.max_rounds);
        push_bar(
            longest_run <= most_rounds,
            format!("{variant_name}: at most {longest_run} rounds (limit {most_rounds})"),
        );
        let (misjoined, over_budget) = (tally.claims.misjoined, tally.over_budget);
        push_bar(misjoined == 0, format!("{variant_name}: {misjoined} distinct claims merged away (limit 0)"));
        push_bar(over_budget == 0, format!("{variant_name}: {over_budget} runs over budget (limit 0)"));
        let endless: Vec<String> = tally.endless.iter().take(5).map(u64::to_string).collect();
        let seeds = if endless.is_empty() { "none".into() } else { format!("seeds {}", endless.join(", ")) };
        push_bar(endless.is_empty(), format!("{variant_name}: {} runs never end ({seeds})", tally.endless.len()));
    }
    let defects_left = |providers: usize| {
        let row = rows.iter().find(|(variant, _)| variant.tier > 0 && variant.providers == providers);
        row.map(|(_, tally)| percent(tally.defects.left, tally.defects.before))
    };
    if let (Some(one), Some(three)) = (defects_left(1), defects_left(3)) {
        push_bar(three < one, format!("three providers leave {three:.1} % of the defects, one leaves {one:.1} %"));
    }
    checked_bars
}

/// Renders the table with one column for each variant.
pub fn render_table(calibration: &CourtCalibration, rows: &[(CourtVariant, CourtTally)]) -> String {
    let mut rendered = String::new();
    let [one, two, three, four] = calibration.found;
    let CourtCalibration { groundless, on_false, on_true, .. } = *calibration;
    let _ = writeln!(
        rendered,
        "one look of 1, 2, 3, 4 providers finds {one:.1}, {two:.1}, {three:.1}, {four:.1} % of the defects"
    );
    let _ = writeln!(rendered, "{groundless:.1} % of false claims are without ground or out of scope");
    let _ = writeln!(
        rendered,
        "challengers say INVALID, AMBIGUOUS on {:.1}, {:.1} % of plausible false claims and {:.1}, {:.1} % of true ones\n",
        on_false[0], on_false[1], on_true[0], on_true[1],
    );
    let mut write_row = |row_name: &str, cell: &dyn Fn(&CourtTally) -> String| {
        let cells: String = rows.iter().map(|(_, tally)| format!("{:>17}", cell(tally))).collect();
        let _ = writeln!(rendered, "{row_name:<34}{cells}");
    };
    let header_cells: String =
        rows.iter().map(|(variant, _)| format!("{:>17}", variant.name.split(',').next().unwrap_or_default())).collect();
    write_row("claims that are false, %", &|sums| format_share(sums.claims.untrue, sums.claims.raised));
    write_row("false findings a run", &|sums| format_mean(sums.false_ones.raised, sums.runs));
    write_row("  that reach a fixer, %", &|sums| format_share(sums.false_ones.to_fixer, sums.false_ones.raised));
    write_row("    believed without a challenge", &|sums| {
        format_share(sums.false_ones.corroborated, sums.false_ones.raised)
    });
    write_row("    upheld by challengers", &|sums| format_share(sums.false_ones.upheld, sums.false_ones.raised));
    write_row("    left in doubt", &|sums| format_share(sums.false_ones.in_doubt, sums.false_ones.raised));
    write_row("true findings a run", &|sums| format_mean(sums.true_ones.raised, sums.runs));
    write_row("  lost, %", &|sums| format_share(sums.true_ones.lost, sums.true_ones.raised));
    write_row("    refuted by challengers", &|sums| format_share(sums.true_ones.refuted, sums.true_ones.raised));
    write_row("    evidence not found", &|sums| format_share(sums.true_ones.ungrounded, sums.true_ones.raised));
    write_row("    taken for something else", &|sums| format_share(sums.true_ones.misjoined, sums.true_ones.raised));
    write_row("defects before", &|sums| format_mean(sums.defects.before, sums.runs));
    write_row("  found, %", &|sums| format_share(sums.defects.found, sums.defects.before));
    write_row("  added by fixes, %", &|sums| format_share(sums.defects.added, sums.defects.before));
    write_row("  left, %", &|sums| format_share(sums.defects.left, sums.defects.before));
    write_row("fixed findings a run", &|sums| format_mean(sums.repairs.fixed, sums.runs));
    write_row("  not repaired, %", &|sums| format_share(sums.repairs.unrepaired, sums.repairs.fixed));
    write_row("unwanted changes landed, a run", &|sums| {
        format!("{:.3}", sums.repairs.off_task as f64 / sums.runs.max(1) as f64)
    });
    write_row("rounds, mean (most)", &|sums| format!("{} ({})", format_mean(sums.rounds, sums.runs), sums.max_rounds));
    write_row("agent calls", &|sums| {
        let AgentCalls { reviewers, challengers, fixers, judges } = sums.calls;
        format_mean(reviewers + challengers + fixers + judges, sums.runs)
    });
    write_row("  reviewers", &|sums| format_mean(sums.calls.reviewers, sums.runs));
    write_row("  challengers", &|sums| format_mean(sums.calls.challengers, sums.runs));
    write_row("  fixers", &|sums| format_mean(sums.calls.fixers, sums.runs));
    write_row("  judges", &|sums| format_mean(sums.calls.judges, sums.runs));
    for outcome in [RunOutcome::Resolved, RunOutcome::Waiting, RunOutcome::Halted, RunOutcome::Failed] {
        write_row(&format!("{outcome}, %"), &|sums| format_share(sums.count_ended(outcome), sums.runs));
        let run_ends = rows.iter().flat_map(|(_, tally)| tally.ends.keys());
        let mut reasons: Vec<&str> =
            run_ends.filter(|(outcome_word, _)| *outcome_word == outcome.as_str()).map(|(_, reason)| *reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        for reason in reasons {
            let runs = |sums: &CourtTally| sums.ends.get(&(outcome.as_str(), reason)).copied().unwrap_or(0);
            write_row(&format!("  {reason}"), &|sums| format_share(runs(sums), sums.runs));
        }
    }
    write_row("runs over budget", &|sums| sums.over_budget.to_string());
    write_row("claims joined wrongly, a run", &|sums| {
        format!("{:.3}", sums.claims.misjoined as f64 / sums.runs.max(1) as f64)
    });
    rendered.replacen("\n\n", &format!("\n\n{:<34}{header_cells}\n", ""), 1)
}

fn format_share(part: u64, whole: u64) -> String {
    format!("{:.2}", percent(part, whole))
}

fn format_mean(sum: u64, runs: u64) -> String {
    format!("{:.1}", sum as f64 / runs.max(1) as f64)
}
