//! What became of work that waited on branches of their own. The journal does not know what the user has done with git since.

use tribunal_engine::reason::{RunOutcome, RunReason};
use tribunal_workflows::{
    development::landing::find_waiting_branch,
    runs::{
        kinds::WorkflowSummary,
        types::ChildOutcome,
        view::{MERGED_DETAIL, RunPhase, RunView, WorkflowView},
    },
    sprint::{order::SprintSummary, standing::StoryStanding},
};

/// Work that waits on a branch of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingWork<'a> {
    /// The first digits of its last commit.
    pub commit: &'a str,
    pub branch: &'a str,
}

/// What the user has done with such work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenState {
    Waiting,
    Merged,
    /// The branch is gone, and its commit is not in the history of the checkout: it was merged in another way, or deleted.
    BranchGone,
}

/// Takes over what the user has done with work on branches of their own, so that lists say the same as the report.
pub fn apply_taken_work(run_view: &mut RunView, judge_work: &dyn Fn(WaitingWork<'_>) -> TakenState) {
    for standing in run_view.children.values_mut() {
        let Some(ChildOutcome::Ended(report)) = &mut standing.outcome else { continue };
        if report.reason != RunReason::OnOwnBranch {
            continue;
        }
        if let Some(reworded) = reword_detail(&report.detail, judge_work) {
            if reworded.is_merged {
                (report.outcome, report.reason) = (Some(RunOutcome::Resolved), RunReason::GoalMet);
            }
            report.detail = reworded.detail;
        }
    }
    if let Some(WorkflowView::Sprint(sprint_view)) = &mut run_view.detail {
        apply_to_rows(&mut sprint_view.summary, judge_work);
    }
    match &mut run_view.phase {
        RunPhase::Running => {}
        RunPhase::Parked(summary) | RunPhase::Finished(summary) => match &mut summary.result {
            WorkflowSummary::Sprint(sprint_summary) => {
                let is_any_merged = apply_to_rows(sprint_summary, judge_work);
                // The outcome stays: the sprint can still be resumed, so it is not over.
                let is_settled = sprint_summary.unfinished == 0 && sprint_summary.left_out == 0;
                if is_any_merged && is_settled && summary.outcome == Some(RunOutcome::Waiting) {
                    (summary.reason, summary.detail) = (RunReason::GoalMet, MERGED_DETAIL.to_string());
                }
            }
            WorkflowSummary::Story(_) if summary.reason == RunReason::OnOwnBranch => {
                if let Some(reworded) = reword_detail(&summary.detail, judge_work) {
                    if reworded.is_merged {
                        (summary.outcome, summary.reason) = (Some(RunOutcome::Resolved), RunReason::GoalMet);
                    }
                    summary.detail = reworded.detail;
                }
            }
            _ => {}
        },
    }
}

/// What is said about work that does not wait as it did.
struct RewordedWork {
    is_merged: bool,
    detail: String,
}

/// Rewords the text about work on a branch of its own; `None` if the work still waits there, or the text is another one.
fn reword_detail(detail: &str, judge_work: &dyn Fn(WaitingWork<'_>) -> TakenState) -> Option<RewordedWork> {
    let waiting_work = find_waiting_work(detail)?;
    match judge_work(waiting_work) {
        TakenState::Waiting => None,
        TakenState::Merged => Some(RewordedWork { is_merged: true, detail: MERGED_DETAIL.to_string() }),
        TakenState::BranchGone => {
            let detail = describe_gone_branch(waiting_work.branch, waiting_work.commit);
            Some(RewordedWork { is_merged: false, detail })
        }
    }
}

/// Says that a branch is gone before its work was seen in the checkout, and which commit had the work.
pub(crate) fn describe_gone_branch(branch: &str, commit: &str) -> String {
    format!("the branch {branch} is gone; the work was commit {commit}")
}

/// Finds commit and branch in the text with which a story ends on a branch of its own.
fn find_waiting_work(detail: &str) -> Option<WaitingWork<'_>> {
    let branch = find_waiting_branch(detail)?;
    let (commit, _) = detail.strip_prefix("commit ")?.split_once("; ")?;
    let is_hash = commit.chars().all(|character| character.is_ascii_hexdigit());
    is_hash.then_some(WaitingWork { commit, branch })
}

/// Rewords the rows of stories that wait on branches of their own. Returns whether one of them is merged.
fn apply_to_rows(summary: &mut SprintSummary, judge_work: &dyn Fn(WaitingWork<'_>) -> TakenState) -> bool {
    let mut is_any_merged = false;
    for row in summary.stories.iter_mut().filter(|row| row.standing == StoryStanding::Waiting) {
        let Some(reworded) = reword_detail(&row.detail, judge_work) else { continue };
        if reworded.is_merged {
            row.standing = StoryStanding::Done;
            summary.done += 1;
            summary.unfinished = summary.unfinished.saturating_sub(1);
            is_any_merged = true;
        }
        row.detail = reworded.detail;
    }
    is_any_merged
}

#[cfg(test)]
mod tests {
    use super::*;

    const DETAIL: &str = "commit 1a2b3c4d5e; your uncommitted changes are in the way (a.txt), so the work is on the branch \
                          tribunal/story-1: take it with `git merge tribunal/story-1`";

    #[test]
    fn commit_and_branch_are_found_in_the_text() {
        let expected = WaitingWork { commit: "1a2b3c4d5e", branch: "tribunal/story-1" };
        assert_eq!(find_waiting_work(DETAIL), Some(expected));
        assert_eq!(find_waiting_work("commit 1a2b3c4d5e on main"), None);
    }

    #[test]
    fn work_that_is_merged_is_done_and_a_branch_that_is_gone_is_named() {
        let row = |story: &str| tribunal_workflows::sprint::order::SprintStoryRow {
            story: story.into(),
            standing: StoryStanding::Waiting,
            detail: DETAIL.into(),
        };
        let waiting = SprintSummary { unfinished: 1, stories: vec![row("1-2")], ..SprintSummary::default() };
        let mut merged = waiting.clone();
        assert!(apply_to_rows(&mut merged, &|_| TakenState::Merged));
        assert_eq!((merged.done, merged.unfinished, merged.stories[0].standing), (1, 0, StoryStanding::Done));
        let mut gone = waiting.clone();
        assert!(!apply_to_rows(&mut gone, &|_| TakenState::BranchGone));
        assert_eq!(gone.stories[0].detail, "the branch tribunal/story-1 is gone; the work was commit 1a2b3c4d5e");
        let mut unchanged = waiting.clone();
        assert!(!apply_to_rows(&mut unchanged, &|_| TakenState::Waiting));
        assert_eq!(unchanged, waiting);
    }
}
