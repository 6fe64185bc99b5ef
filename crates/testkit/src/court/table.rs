//! Formats the figures of the court as a table, and compares them with the bars they must meet.

use std::fmt::{self, Write as _};

use tribunal_core::reason::Outcome;

use super::{Calibration, Tally, Variant, calibration::percent};

/// A condition that must hold, and whether it does.
#[derive(Clone, Debug)]
pub struct Bar {
    pub holds: bool,
    pub says: String,
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.holds { "ok     " } else { "MISSED " }, self.says)
    }
}

/// The worst values that are allowed.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// The false findings that reach a fixer, in percent.
    pub to_fixer: f64,
    /// The true findings that are lost, in percent.
    pub lost: f64,
    pub rounds: u64,
}

/// The values that the documentation promises.
pub const ALLOWED: Allowed = Allowed { to_fixer: 5.0, lost: 2.0, rounds: 3 };

/// Checks every bar for rows as in [`super::VARIANTS`]: the first one is only there for comparison.
pub fn bars(rows: &[(Variant, Tally)], allowed: Allowed) -> Vec<Bar> {
    let Allowed { to_fixer: most_to_fixer, lost: most_lost, rounds: most_rounds } = allowed;
    let mut bars = Vec::new();
    let mut bar = |holds: bool, says: String| bars.push(Bar { holds, says });
    for (variant, tally) in rows.iter().filter(|(variant, _)| variant.tier > 0) {
        let name = variant.name;
        let to_fixer = percent(tally.false_ones.to_fixer, tally.false_ones.raised);
        let lost = percent(tally.true_ones.lost, tally.true_ones.raised);
        bar(
            to_fixer <= most_to_fixer,
            format!("{name}: {to_fixer:.2} % of false findings reach a fixer, at most {most_to_fixer} may"),
        );
        bar(
            lost <= most_lost,
            format!("{name}: {lost:.2} % of true findings are lost, at most {most_lost} may be"),
        );
    }
    for (variant, tally) in rows {
        let (name, most) = (variant.name, tally.most_rounds);
        bar(
            most <= most_rounds,
            format!("{name}: at most {most} rounds, no more than {most_rounds} are allowed"),
        );
        let endless: Vec<String> = tally.endless.iter().take(5).map(u64::to_string).collect();
        let seeds = if endless.is_empty() { "none".into() } else { format!("seeds {}", endless.join(", ")) };
        bar(endless.is_empty(), format!("{name}: {} runs without an end ({seeds})", tally.endless.len()));
    }
    let left = |providers: usize| {
        let row = rows.iter().find(|(variant, _)| variant.tier > 0 && variant.providers == providers);
        row.map(|(_, tally)| percent(tally.defects.left, tally.defects.before))
    };
    if let (Some(one), Some(three)) = (left(1), left(3)) {
        bar(three < one, format!("three providers leave {three:.1} % of the defects, one leaves {one:.1} %"));
    }
    bars
}

/// Renders the table with one column for each variant.
pub fn table(calibration: &Calibration, rows: &[(Variant, Tally)]) -> String {
    let mut out = String::new();
    let [one, two, three, four] = calibration.found;
    let Calibration { groundless, on_false, on_true, .. } = *calibration;
    let _ = writeln!(
        out,
        "one look of 1, 2, 3, 4 providers finds {one:.1}, {two:.1}, {three:.1}, {four:.1} % of the defects"
    );
    let _ = writeln!(out, "{groundless:.1} % of false claims are without ground or out of scope");
    let _ = writeln!(
        out,
        "challengers say INVALID, AMBIGUOUS on {:.1}, {:.1} % of plausible false claims and {:.1}, {:.1} % of true ones\n",
        on_false[0], on_false[1], on_true[0], on_true[1],
    );
    let mut line = |name: &str, cell: &dyn Fn(&Tally) -> String| {
        let cells: String = rows.iter().map(|(_, tally)| format!("{:>17}", cell(tally))).collect();
        let _ = writeln!(out, "{name:<34}{cells}");
    };
    let heads: String = rows
        .iter()
        .map(|(variant, _)| format!("{:>17}", variant.name.split(',').next().unwrap_or_default()))
        .collect();
    line("claims that are false, %", &|t| share(t.false_claims, t.claims));
    line("false findings a run", &|t| mean(t.false_ones.raised, t.runs));
    line("  that reach a fixer, %", &|t| share(t.false_ones.to_fixer, t.false_ones.raised));
    line("    believed without a challenge", &|t| share(t.false_ones.corroborated, t.false_ones.raised));
    line("    upheld by challengers", &|t| share(t.false_ones.upheld, t.false_ones.raised));
    line("    left in doubt", &|t| share(t.false_ones.in_doubt, t.false_ones.raised));
    line("true findings a run", &|t| mean(t.true_ones.raised, t.runs));
    line("  lost, %", &|t| share(t.true_ones.lost, t.true_ones.raised));
    line("    refuted by challengers", &|t| share(t.true_ones.refuted, t.true_ones.raised));
    line("    evidence not found", &|t| share(t.true_ones.ungrounded, t.true_ones.raised));
    line("    taken for something else", &|t| share(t.true_ones.misjoined, t.true_ones.raised));
    line("defects before", &|t| mean(t.defects.before, t.runs));
    line("  found, %", &|t| share(t.defects.found, t.defects.before));
    line("  added by fixes, %", &|t| share(t.defects.added, t.defects.before));
    line("  left, %", &|t| share(t.defects.left, t.defects.before));
    line("rounds, mean (most)", &|t| format!("{} ({})", mean(t.rounds, t.runs), t.most_rounds));
    line("agent calls", &|t| mean(t.calls.reviewers + t.calls.challengers + t.calls.fixers, t.runs));
    line("  reviewers", &|t| mean(t.calls.reviewers, t.runs));
    line("  challengers", &|t| mean(t.calls.challengers, t.runs));
    line("  fixers", &|t| mean(t.calls.fixers, t.runs));
    for outcome in [Outcome::Resolved, Outcome::Waiting, Outcome::Halted, Outcome::Failed] {
        line(&format!("{outcome}, %"), &|t| share(t.ended(outcome), t.runs));
        let reasons = rows.iter().flat_map(|(_, tally)| tally.ends.keys());
        let mut reasons: Vec<&str> =
            reasons.filter(|(word, _)| *word == outcome.as_str()).map(|(_, reason)| *reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        for reason in reasons {
            let runs = |t: &Tally| t.ends.get(&(outcome.as_str(), reason)).copied().unwrap_or(0);
            line(&format!("  {reason}"), &|t| share(runs(t), t.runs));
        }
    }
    line("claims joined wrongly, a run", &|t| format!("{:.3}", t.misjoined as f64 / t.runs.max(1) as f64));
    out.replacen("\n\n", &format!("\n\n{:<34}{heads}\n", ""), 1)
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.2}", percent(part, whole))
}

fn mean(sum: u64, runs: u64) -> String {
    format!("{:.1}", sum as f64 / runs.max(1) as f64)
}
