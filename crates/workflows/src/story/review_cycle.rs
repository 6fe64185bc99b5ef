//! The panel's review of a story: a child run of the kind review, which works on the story's workspace.
//!
//! Its fixes land in the workspace. It is over when no critical finding is open; what else is open is left as follow-ups.

use alloc::{format, string::String};

use crate::{
    development::{
        changes::{ChangeOutcome, ReadChange},
        commits::{CommitOutcome, CommitWork},
        land_work::LandingOrder,
    },
    findings::{
        finding::Severity,
        subject::{CodeChange, Subject},
    },
    review::{
        level::ReviewGoal,
        order::{ReviewLimits, ReviewOrder},
    },
    runs::{
        kinds::RunOrder,
        types::{ChildOutcome, ChildReport, RunChild},
    },
    stages::exit::{StageExit, Staged},
    story::{
        event::StoryEvent,
        facts::StoryFollowUp,
        order::{StoryOrder, StoryStepName},
        sessions,
        state::{StoryState, StoryStep},
        story_host::{StoryHost, WORKSPACE_NAME},
    },
};
use tribunal_engine::{
    fault::Fault,
    host::ParkedRun,
    ids::{Key, TreeId},
    limits::remaining_share,
    reason::{RunOutcome, RunReason},
};

/// Reviews the work. A review that waits for the user is continued after the answer.
pub(super) async fn review_work(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    // Work that the user did by hand counts like that of an agent.
    state.attempts.by_hand = false;
    // A review that waited has repaired a part of the work already.
    let is_new = state.review.waiting_child.is_none();
    let tree = StoryOrder::find_verified(state).filter(|_| is_new).map(|verified| verified.tree.clone());
    keep_work(host, state, stage_key.child_key("keep"), tree).await?;
    let Some(change) = list_change(host, state, stage_key).await? else {
        pass_review(host, state);
        return Ok(());
    };
    let child_name = match state.review.waiting_child.take() {
        Some(child_name) => child_name,
        None => {
            state.review.count += 1;
            state.review.asked = 0;
            format!("review-{}", state.review.count)
        }
    };
    state.review.asked += 1;
    let remaining = remaining_share(&host.settings().limits, &state.spent, host.last_timestamp().awake_ms);
    let share = state.review.ledger.lend_share(&child_name, remaining, 1);
    let run_child = RunChild {
        name: child_name.clone(),
        order: RunOrder::Review(review_order(host, change)),
        share,
        workspace: Some(String::from(WORKSPACE_NAME)),
        tier: None,
    };
    let child_key = stage_key.numbered_child("review", state.review.asked);
    let outcome = host.perform(child_key, run_child).await?;
    let used = state.review.ledger.settle_account(&child_name, &outcome);
    state.spent.add_child(&used);
    match outcome {
        ChildOutcome::Ended(report) if report.outcome == Some(RunOutcome::Resolved) => {
            note_review(host, state, &report);
            verify_reviewed(host, state, stage_key).await
        }
        ChildOutcome::Ended(report) => {
            note_review(host, state, &report);
            Err(describe_unresolved(state, &report))
        }
        ChildOutcome::Waiting(report) => {
            // A review that waits for an answer, or for its environment, is continued; one that has come to a limit is not.
            let is_failed = report.outcome == Some(RunOutcome::Failed);
            // What is used up is used up for the story as well, and says nothing about the findings.
            let is_used_up = matches!(report.reason, RunReason::Cost | RunReason::Tokens | RunReason::Runtime);
            if report.reason == RunReason::Blocked || is_failed || is_used_up {
                state.review.waiting_child = Some(child_name);
            }
            if is_used_up {
                return Err(StageExit::halt_run(report.reason, report.detail));
            }
            if !is_failed {
                note_review(host, state, &report);
            }
            Err(match is_failed {
                true => {
                    StageExit::halt_run(RunReason::Environment, format!("the review {}: {}", report.run, report.detail))
                }
                false => describe_unresolved(state, &report),
            })
        }
        ChildOutcome::Failed(failed) => Err(StageExit::from_fault(&failed.fault)),
    }
}

/// Commits the work so far: it can be compared, and nothing of it is lost. Without a tree it is what is there.
pub(super) async fn keep_work(
    host: StoryHost<'_>,
    state: &mut StoryState,
    keep_key: Key,
    tree: Option<TreeId>,
) -> Staged<()> {
    match try_keep_work(host, state, keep_key, tree).await? {
        Some(fault) => Err(StageExit::from_fault(&fault)),
        None => Ok(()),
    }
}

/// Commits the work so far, and returns the fault if that failed.
pub(super) async fn try_keep_work(
    host: StoryHost<'_>,
    state: &mut StoryState,
    keep_key: Key,
    tree: Option<TreeId>,
) -> Result<Option<Fault>, ParkedRun> {
    let message = format!("Story {}: work in progress\n", host.order.story.key);
    let commit_work = CommitWork {
        workspace: String::from(WORKSPACE_NAME),
        message,
        run_hooks: false,
        squash: false,
        // An agent may write over it, and what lands is one commit, which has only what is left then.
        keeps_ref: state.attempts.has_unkept_edits,
        tree,
    };
    match host.perform(keep_key, commit_work).await? {
        CommitOutcome::Committed { commit } => {
            state.attempts.has_unkept_edits = false;
            if let Some(work) = &mut state.work {
                work.tip = commit.clone();
                work.committed_content.clone_from(&work.content);
            }
            host.note_own_event(StoryEvent::StoryKept { commit });
            Ok(None)
        }
        CommitOutcome::Unchanged { .. } => {
            state.attempts.has_unkept_edits = false;
            Ok(None)
        }
        // Only hooks refuse or rewrite, and none ran.
        CommitOutcome::Refused(_) | CommitOutcome::Rewritten { .. } | CommitOutcome::Edited { .. } => Ok(None),
        CommitOutcome::Failed { fault } => Ok(Some(fault)),
    }
}

/// Lists what the story changed in the product; `None` if that cannot be reviewed.
async fn list_change(host: StoryHost<'_>, state: &StoryState, stage_key: &Key) -> Staged<Option<CodeChange>> {
    let Some(work) = &state.work else { return Ok(None) };
    // Work that the user has merged is a part of the branch, and of the story.
    let begun_at = host.order.files.begun_at.as_ref().or(state.landing.merged_into.as_ref());
    let read_change = ReadChange {
        title: format!("story {}", host.order.story.key),
        base: begun_at.unwrap_or(&work.base).clone(),
        end: work.tip.clone(),
    };
    match host.perform(stage_key.child_key("change"), read_change).await? {
        ChangeOutcome::Listed { change } => {
            let mut change = *change;
            change.files.retain(|file| !host.order.story.is_bookkeeping(&file.path));
            // The change ends in the workspace, where it can be repaired.
            change.end = None;
            change.story.clone_from(&work.story_file);
            Ok(Some(change).filter(|change| !change.files.is_empty()))
        }
        ChangeOutcome::Empty => Ok(None),
        ChangeOutcome::Failed { fault } => Err(StageExit::from_fault(&fault)),
    }
}

fn review_order(host: StoryHost<'_>, change: CodeChange) -> ReviewOrder {
    let review = &host.order.review;
    ReviewOrder {
        level: Some(review.level),
        goal: ReviewGoal::CriticalOnly,
        // The checks have just passed.
        baseline: false,
        limits: ReviewLimits {
            rounds: host.order.pacing.max_cycles.max(1),
            parent_asks: true,
            ..ReviewLimits::default()
        },
        panel: review.panel.clone(),
        fixers: review.fixers.clone(),
        ..ReviewOrder::new(Subject::Change(change.into()))
    }
}

fn note_review(host: StoryHost<'_>, state: &mut StoryState, report: &ChildReport) {
    let left_findings = report.result.open_findings.iter().chain(&report.result.deferred_findings);
    let open_findings = left_findings.map(|finding| StoryFollowUp {
        severity: finding.severity,
        text: finding.description.clone(),
        place: finding.place.clone(),
    });
    (state.review.critical, state.review.follow_ups) =
        open_findings.partition(|finding| finding.severity == Severity::Critical);
    let critical = state.review.critical.len() as u32;
    host.note_own_event(StoryEvent::StoryReviewed {
        review: report.run.clone(),
        critical,
        follow_ups: state.review.follow_ups.clone(),
        detail: report.detail.clone(),
    });
}

fn describe_unresolved(state: &StoryState, report: &ChildReport) -> StageExit {
    let detail = match (&state.review.waiting_child, report.reason) {
        (Some(_), _) => format!("the review {} waits for you: {}", report.run, report.detail),
        _ => format!("the review {} did not resolve its findings: {}", report.run, report.detail),
    };
    StageExit::halt_run(RunReason::Blocked, detail)
}

/// Verifies the work once more: the fixes of the review may have broken it.
async fn verify_reviewed(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    let tree = host.freeze_work(stage_key.child_key("freeze")).await?;
    let facts = host.read_story(state, stage_key.child_key("story"), Some(&tree)).await?;
    let mut verdict = sessions::verify_step(host, state, &facts);
    verdict.problems.extend(sessions::check_content(host, state, stage_key.child_key("checks"), &tree).await?);
    sessions::note_verified(state, tree, &verdict);
    if verdict.problems.is_empty() {
        pass_review(host, state);
        return Ok(());
    }
    // Another session repairs it; then the panel looks at it again.
    let failed_checks = core::mem::take(&mut state.attempts.failed_checks);
    state.attempts.begin_step();
    state.attempts.problems = verdict.problems;
    state.attempts.failed_checks = failed_checks;
    state.step = StoryStep::Develop;
    Ok(())
}

fn pass_review(host: StoryHost<'_>, state: &mut StoryState) {
    sessions::finish_step(host, state, StoryStepName::Review);
}
