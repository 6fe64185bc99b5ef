//! The part of a report that the kind of run decides. By default it is the result in one line.

use tribunal_workflows::runs::view::RunView;

use super::document::{LeftOutStory, OtherRunReport, ReportSources, SprintTotals, StoryReport};
use crate::phrases;

/// What the reporter of a kind says about a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportSection {
    pub stories: Vec<StoryReport>,
    pub result: Option<OtherRunReport>,
    pub left_out: Vec<LeftOutStory>,
    pub retrospectives: Vec<String>,
    pub totals: Option<SprintTotals>,
    /// Whether the questions of the run are listed with its stories.
    pub has_questions: bool,
    /// Whether the run left something out that the user wants.
    pub lacks_wanted: bool,
}

impl OtherRunReport {
    /// A report of the result alone. `commands` take the run and look closer.
    pub fn from_result(
        run_view: &RunView,
        result_parts: [String; 2],
        commands: &[&str],
        sources: &ReportSources<'_>,
    ) -> Option<OtherRunReport> {
        let run_id = run_view.run_id.as_ref()?;
        let [effort_text, result_text] = &result_parts;
        Some(OtherRunReport {
            summary: phrases::join_parts([effort_text.as_str(), result_text]),
            findings: None,
            iterations: None,
            commit: None,
            branch: None,
            look_at: Vec::new(),
            look_closer: commands
                .iter()
                .map(|command| format!("{} {command} {run_id}", sources.program_name))
                .collect(),
        })
    }
}
