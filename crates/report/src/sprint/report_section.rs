//! What a report says about a sprint: its stories, what is left out, and how many there are of each.

use tribunal_engine::reason::RunReason;
use tribunal_workflows::{
    development::landing::find_waiting_branch,
    runs::{types::ChildOutcome, view::RunView},
    sprint::{
        selection::{LeftOut, LeftOutReason},
        standing::StoryStanding,
        view::SprintView,
    },
};

use crate::{
    report_parts::{
        document::{LeftOutStory, ReportSources, SprintTotals, StoryReport},
        section::ReportSection,
        verdict::ReportVerdict,
    },
    run_standing::RunStanding,
    step_list::{NextStep, merge_step},
    story::report_section::StorySource,
};

/// What the names of a sprint's child runs begin with; the key of the story follows.
const STORY_CHILD_PREFIX: &str = "story-";

pub(super) fn build_section(
    sprint_view: &SprintView,
    run_standing: &RunStanding<'_>,
    sources: &ReportSources<'_>,
) -> ReportSection {
    let stories = list_stories(run_standing, sprint_view, sources);
    let left_out = list_left_out(sprint_view, &stories);
    // What the user left out is not missing.
    let is_missing =
        |left_out: &LeftOut| !matches!(left_out.reason, LeftOutReason::Skipped | LeftOutReason::MaxStories);
    ReportSection {
        totals: Some(count_stories(&stories, &left_out)),
        stories,
        left_out,
        retrospectives: sprint_view.summary.retrospectives.clone(),
        lacks_wanted: sprint_view.left_out.iter().any(is_missing),
        ..ReportSection::default()
    }
}

/// Builds the reports of the stories of a sprint: first those that were left, in that order, then the one that is under way or
/// with which the sprint halted.
fn list_stories(
    run_standing: &RunStanding<'_>,
    sprint_view: &SprintView,
    sources: &ReportSources<'_>,
) -> Vec<StoryReport> {
    let rows = &sprint_view.summary.stories;
    let find_row = |story_key: &str| rows.iter().find(|row| row.story == story_key);
    let children = &run_standing.run_view.children;
    let child_keys = children.keys().filter_map(|child_name| child_name.strip_prefix(STORY_CHILD_PREFIX));
    let unlisted_keys = child_keys.filter(|story_key| find_row(story_key).is_none());
    let story_keys = rows.iter().map(|row| row.story.as_str()).chain(unlisted_keys);
    story_keys
        .map(|story_key| {
            let child = children.get(&format!("{STORY_CHILD_PREFIX}{story_key}"));
            let child_view = child.and_then(|child| (sources.read_run)(&child.run));
            let row = find_row(story_key);
            // A child runs in the process of its parent.
            let source = StorySource { key: story_key, row, run: child_view.as_ref(), is_live: run_standing.is_live };
            source.build_story(sources)
        })
        .collect()
}

/// Lists the stories that were said to be left out and were not begun since.
fn list_left_out(sprint_view: &SprintView, stories: &[StoryReport]) -> Vec<LeftOutStory> {
    let is_begun = |story_key: &str| stories.iter().any(|story| story.story == story_key);
    sprint_view
        .left_out
        .iter()
        .filter(|left_out| !is_begun(&left_out.story))
        .map(|left_out| LeftOutStory { story: left_out.story.clone(), reason: left_out.describe() })
        .collect()
}

fn count_stories(stories: &[StoryReport], left_out: &[LeftOutStory]) -> SprintTotals {
    let mut totals = SprintTotals { left_out: left_out.len() as u32, ..SprintTotals::default() };
    for story in stories {
        match story.verdict {
            verdict if verdict.is_done() => totals.done += 1,
            ReportVerdict::Waiting | ReportVerdict::OnOwnBranch => totals.waiting += 1,
            _ => totals.other += 1,
        }
        if let Some(change) = story.work.change {
            totals.change.files = totals.change.files.saturating_add(change.files);
            totals.change.added = totals.change.added.saturating_add(change.added);
            totals.change.removed = totals.change.removed.saturating_add(change.removed);
        }
    }
    totals
}

/// The commands that take the work of stories from branches of their own.
pub(super) fn list_merge_steps(sprint_view: &SprintView, run_view: &RunView) -> Vec<NextStep> {
    // Once the board says that a story is done, its branch is merged, although its run still says otherwise.
    let is_done = |child_name: &str| {
        let story_key = child_name.strip_prefix(STORY_CHILD_PREFIX);
        let mut rows = sprint_view.summary.stories.iter();
        rows.any(|row| Some(row.story.as_str()) == story_key && row.standing == StoryStanding::Done)
    };
    let waiting_branches = run_view.children.iter().filter_map(|(child_name, standing)| match &standing.outcome {
        Some(ChildOutcome::Ended(report)) if report.reason == RunReason::OnOwnBranch && !is_done(child_name) => {
            find_waiting_branch(&report.detail)
        }
        _ => None,
    });
    waiting_branches.map(merge_step).collect()
}
