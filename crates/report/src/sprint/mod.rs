//! The reporter of sprints: which story is taken and why, what became of it, and what is left out.

mod lines;
mod live;
mod report_section;

use tribunal_engine::reason::RunOutcome;
use tribunal_workflows::{
    runs::view::RunView,
    sprint::{
        event::SprintEvent,
        order::{SprintOrder, SprintStoryRow, SprintSummary},
        standing::StoryStanding,
        view::SprintView,
    },
};

use crate::{
    escape_line,
    kind_reporter::{KindReporter, ResultCommand},
    phrases::{self, format_count},
    report_parts::{document::ReportSources, section::ReportSection},
    run_standing::RunStanding,
    step_list::NextStep,
};
use lines::SprintLines;
use live::SprintLive;

/// Reports sprints.
pub(crate) struct SprintReporter;

impl KindReporter for SprintReporter {
    type Kind = SprintOrder;
    type Lines = SprintLines;
    type Live = SprintLive;

    const LIMIT_OWNER: &'static str = "sprint";
    const CHILDREN_ASK_ABOUT_LIMITS: bool = true;

    fn list_limits(order: &SprintOrder) -> Vec<String> {
        order.scope.max_stories.map(|most| format_count(most, "story")).into_iter().collect()
    }

    fn describe_child_limits(order: &SprintOrder) -> Option<String> {
        let sessions_text = format_count(order.story.pacing.max_cycles, "session");
        Some(format!("story limits: {sessions_text} a step, {}", phrases::describe_share(&order.story_share)))
    }

    fn list_order_facts(order: &SprintOrder) -> Vec<String> {
        let story = &order.story;
        vec![
            format!("until {}", story.goal),
            format!("{}, branch {}", story.place, story.branch.name),
            format!("review {}", story.review.mode),
        ]
    }

    fn describe_event(event: &SprintEvent) -> String {
        match event {
            SprintEvent::SprintBegun { open, done } => format!("{open} open, {done} done"),
            SprintEvent::SprintStoryTaken { reason, .. } => reason.clone(),
            SprintEvent::SprintStoryLeft { standing, detail, .. } => format!("{standing}: {detail}"),
            SprintEvent::SprintLeftOut { stories } if stories.is_empty() => "no story is left out any more".into(),
            SprintEvent::SprintLeftOut { stories } => {
                stories.iter().map(|left_out| left_out.describe()).collect::<Vec<_>>().join("; ")
            }
            SprintEvent::SprintRetrospective { lesson: Some(lesson), detail, .. } => {
                format!("{}; {detail}", lesson.describe())
            }
            SprintEvent::SprintRetrospective { lesson: None, detail, .. } => detail.clone(),
            SprintEvent::SprintRequested { command } => command.describe(),
        }
    }

    fn is_problem(event: &SprintEvent) -> bool {
        match event {
            SprintEvent::SprintStoryLeft { standing, .. } => *standing != StoryStanding::Done,
            SprintEvent::SprintRetrospective { lesson, .. } => lesson.is_none(),
            _ => false,
        }
    }

    fn describe_result(summary: &SprintSummary) -> String {
        let mut parts = vec![format!("{} done", format_count(summary.done, "story"))];
        for standing in [
            StoryStanding::Waiting,
            StoryStanding::Skipped,
            StoryStanding::Refused,
            StoryStanding::Stopped,
            StoryStanding::Claimed,
        ] {
            let count = summary.stories.iter().filter(|row| row.standing == standing).count();
            if count > 0 {
                parts.push(format!("{count} {standing}"));
            }
        }
        if summary.left_out > 0 {
            parts.push(format!("{} left out", summary.left_out));
        }
        parts.extend(summary.retrospectives.iter().cloned());
        parts.join(", ")
    }

    fn list_result_commands(_: &SprintSummary, _: Option<RunOutcome>) -> Vec<ResultCommand> {
        vec![ResultCommand { command: "report", explanation: "each story: commit, checks, findings, questions" }]
    }

    fn list_status_lines(view: &SprintView) -> Vec<String> {
        let mut lines = list_rows(view);
        lines.extend(view.current.as_ref().map(|story| format!("● {}", escape_line(story))));
        lines
    }

    fn build_section(
        view: &SprintView,
        _: &SprintSummary,
        run_standing: &RunStanding<'_>,
        sources: &ReportSources<'_>,
    ) -> ReportSection {
        report_section::build_section(view, run_standing, sources)
    }

    fn list_merge_steps(view: &SprintView, run_view: &RunView) -> Vec<NextStep> {
        report_section::list_merge_steps(view, run_view)
    }
}

/// Describes the stories that were left. One that is continued is under way, and what it waited for is over.
fn list_rows(view: &SprintView) -> Vec<String> {
    let is_left = |row: &&SprintStoryRow| view.current.as_ref() != Some(&row.story);
    view.summary.stories.iter().filter(is_left).map(describe_row).collect()
}

fn describe_row(row: &SprintStoryRow) -> String {
    let mark = match row.standing {
        StoryStanding::Done => '✓',
        StoryStanding::Waiting | StoryStanding::Answered | StoryStanding::Stopped => '?',
        StoryStanding::Skipped | StoryStanding::Refused | StoryStanding::Claimed => '–',
    };
    format!("{mark} {} {}: {}", escape_line(&row.story), row.standing, escape_line(&row.detail))
}
