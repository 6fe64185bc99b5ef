//! How many findings of each severity are fixed, as bars for the live view.

use tribunal_workflows::findings::{
    counts::FindingCounts,
    finding::{Finding, FindingStatus, Severity},
};

/// The maximum length of a bar; longer ones say no more.
const MAX_BAR_CELLS: u32 = 9;

/// What the cells of a bar mean.
pub(super) const BAR_LEGEND: &str = "▓ fixed ▒ being fixed ░ open – blocked or deferred";

/// Describes how many findings of each severity are fixed: `fixed  critical ▓ 1/1 · high ▓▒░ 1/3`.
///
/// The forms go from the fullest to the shortest; without findings there is none. `counts` are those of all findings.
pub(super) fn describe_fixed<'a>(findings: impl Iterator<Item = &'a Finding>, counts: &FindingCounts) -> Vec<String> {
    // Dismissed findings need no work.
    let is_active = |finding: &&Finding| !matches!(finding.status, FindingStatus::Dismissed { .. });
    let active_findings: Vec<&Finding> = findings.filter(is_active).collect();
    if active_findings.is_empty() {
        return Vec::new();
    }
    let draw_strip = |with_bars: bool, separator: &str| {
        let mut severity_parts = Vec::new();
        for severity in Severity::ALL {
            let mut progress = SeverityProgress::default();
            active_findings
                .iter()
                .filter(|counted_finding| counted_finding.severity == severity)
                .for_each(|counted_finding| progress.add_finding(&counted_finding.status));
            if progress.total_count() > 0 {
                let bar_text = if with_bars { progress.draw_bar() } else { String::new() };
                severity_parts.push(format!(
                    "{severity} {bar_text}{}/{}",
                    progress.fixed_count,
                    progress.total_count()
                ));
            }
        }
        severity_parts.join(separator)
    };
    // Blocked and deferred findings are counted behind the bars.
    let set_aside: String = [(counts.blocked, "blocked"), (counts.deferred, "deferred")]
        .iter()
        .filter(|(status_count, _)| *status_count > 0)
        .map(|(status_count, status_name)| format!(" · {status_count} {status_name}"))
        .collect();
    vec![
        format!("fixed  {}{set_aside}", draw_strip(true, " · ")),
        format!("fixed  {}{set_aside}", draw_strip(false, " · ")),
        format!("fixed {}{set_aside}", draw_strip(false, " ")),
        format!("fixed {}/{}{set_aside}", counts.fixed, counts.total),
    ]
}

/// Counts the findings of one severity by their progress.
#[derive(Default)]
struct SeverityProgress {
    fixed_count: u32,
    assigned_count: u32,
    open_count: u32,
    set_aside_count: u32,
}

impl SeverityProgress {
    fn add_finding(&mut self, status: &FindingStatus) {
        match status {
            FindingStatus::Fixed => self.fixed_count += 1,
            FindingStatus::Assigned => self.assigned_count += 1,
            FindingStatus::Open => self.open_count += 1,
            FindingStatus::Blocked { .. } | FindingStatus::Deferred { .. } => self.set_aside_count += 1,
            FindingStatus::Dismissed { .. } => {}
        }
    }

    fn total_count(&self) -> u32 {
        self.fixed_count + self.assigned_count + self.open_count + self.set_aside_count
    }

    /// Draws the bar of one severity.
    fn draw_bar(&self) -> String {
        let total_findings = self.total_count();
        let bar_cells = total_findings.min(MAX_BAR_CELLS);
        // Sums are rounded, not single parts, so that the parts always add up to the length of the bar.
        let cells_upto = |partial_sum: u32| (partial_sum * bar_cells / total_findings.max(1)) as usize;
        let (fixed_end, assigned_end) =
            (cells_upto(self.fixed_count), cells_upto(self.fixed_count + self.assigned_count));
        let (open_end, bar_end) =
            (cells_upto(self.fixed_count + self.assigned_count + self.open_count), bar_cells as usize);
        [
            ("▓", fixed_end),
            ("▒", assigned_end - fixed_end),
            ("░", open_end - assigned_end),
            ("–", bar_end - open_end),
            (" ", 1),
        ]
        .map(|(cell_symbol, cell_count)| cell_symbol.repeat(cell_count))
        .concat()
    }
}
