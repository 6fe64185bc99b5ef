//! What a report says about a story, built from the views of its run and its reviews, and from what its sprint says about it.

use tribunal_engine::{
    ids::RunId,
    reason::{RunOutcome, RunReason},
};
use tribunal_workflows::{
    development::{checks::FailureAction, landing::find_waiting_branch},
    runs::{
        kinds::WorkflowTopic,
        types::DecisionTopic,
        view::{RunPhase, RunView},
    },
    sprint::{order::SprintStoryRow, standing::StoryStanding},
    story::{
        order::{StoryOrder, StoryTopic},
        view::StoryView,
    },
};

use super::{
    StoryReporter,
    report_rules::{self, StoryEvidence},
};
use crate::{
    kind_reporter::KindReporter,
    phrases,
    report_parts::{
        document::{
            DelicateChanges, FindingTotals, ReportSources, ReportedCheck, ReportedQuestion, StoryReport,
            StoryWorkReport, WorkPlace, list_questions,
        },
        section::ReportSection,
        usage::ReportUsage,
        verdict::ReportVerdict,
    },
    run_standing::{RunStanding, RunState},
    step_list::{NextStep, merge_step},
};

/// Builds the report of a story that is no part of a sprint.
pub(super) fn build_section(
    story_view: &StoryView,
    run_standing: &RunStanding<'_>,
    sources: &ReportSources<'_>,
) -> ReportSection {
    let RunStanding { run_view, is_live } = *run_standing;
    let story = story_view.order.as_deref().map(|order| {
        StorySource { key: &order.story.key, row: None, run: Some(run_view), is_live }.build_story(sources)
    });
    ReportSection { stories: story.into_iter().collect(), has_questions: true, ..ReportSection::default() }
}

/// The command that takes the work of a story from a branch of its own.
pub(super) fn list_merge_steps(run_view: &RunView) -> Vec<NextStep> {
    match &run_view.phase {
        RunPhase::Finished(summary) if summary.reason == RunReason::OnOwnBranch => {
            // The text names no branch any more once the branch is gone.
            find_waiting_branch(&summary.detail).map(merge_step).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// What is known about a story.
pub(crate) struct StorySource<'a> {
    pub key: &'a str,
    /// What the sprint says about it; `None` if it is no part of one, or was not left yet.
    pub row: Option<&'a SprintStoryRow>,
    /// Its run; `None` if it was never started.
    pub run: Option<&'a RunView>,
    pub is_live: bool,
}

impl StorySource<'_> {
    fn story_view(&self) -> Option<&StoryView> {
        self.run.and_then(RunView::as_story)
    }

    fn story_order(&self) -> Option<&StoryOrder> {
        self.story_view()?.order.as_deref()
    }

    pub fn build_story(&self, sources: &ReportSources<'_>) -> StoryReport {
        let verdict = self.find_verdict(sources);
        let reviews = self.read_reviews(sources);
        let work = self.collect_work(sources, &reviews);
        let findings = self.count_findings(&reviews);
        let questions = self.collect_questions(verdict, &reviews, sources);
        let detail = self.find_detail(verdict, &work);
        let evidence = StoryEvidence {
            verdict,
            detail: &detail,
            work: &work,
            checkout: sources.checkout,
            findings,
            order: self.story_order(),
            has_checks: self
                .run
                .and_then(|run_view| run_view.settings.as_ref())
                .is_some_and(|settings| !settings.checks.is_empty()),
            has_ended: self.run.is_some_and(|run_view| matches!(run_view.phase, RunPhase::Finished(_))),
        };
        let (sentence, look_at) = (report_rules::describe_verdict(&evidence), report_rules::list_remarks(&evidence));
        StoryReport {
            story: self.key.to_string(),
            title: self.story_order().map(|order| order.story.title.clone()).unwrap_or_default(),
            run: self.run.and_then(|run_view| run_view.run_id.clone()),
            look_closer: self.list_commands(verdict, &work, &questions, sources.program_name),
            verdict,
            sentence,
            look_at,
            detail,
            work,
            findings,
            questions,
            usage: self.read_usage(sources),
        }
    }

    fn read_usage(&self, sources: &ReportSources<'_>) -> ReportUsage {
        let Some(run_view) = self.run else { return ReportUsage::default() };
        ReportUsage::from_standing(&RunStanding { run_view, is_live: self.is_live }, sources)
    }

    /// Whether the work was left on a branch of its own.
    fn is_on_own_branch(&self) -> bool {
        let landed_on = self.story_view().and_then(|story_view| story_view.summary.landed_on.as_ref());
        landed_on.is_some_and(|branch| self.story_order().is_some_and(|order| order.branch.name != *branch))
    }

    /// Where the work that has landed is now; `None` if none has.
    fn find_place(&self, sources: &ReportSources<'_>) -> Option<WorkPlace> {
        let summary = &self.story_view()?.summary;
        let branch = summary.landed_on.as_deref()?;
        let last_commit = summary.confirmation.as_ref().or(summary.commit.as_ref())?;
        let is_checked_out = sources.checkout == Some(branch);
        Some(if is_checked_out || (sources.is_in_history)(last_commit) {
            WorkPlace::Checkout
        } else if (sources.has_branch)(branch) {
            WorkPlace::OtherBranch
        } else {
            WorkPlace::BranchGone
        })
    }

    /// Whether the user has merged the branch of its own on which the work was left.
    fn is_merged_since(&self, sources: &ReportSources<'_>) -> bool {
        self.is_on_own_branch() && self.find_place(sources) == Some(WorkPlace::Checkout)
    }

    fn find_verdict(&self, sources: &ReportSources<'_>) -> ReportVerdict {
        let has_landed = self.story_view().is_some_and(|story_view| story_view.summary.landed_on.is_some());
        // A story that owes something has landed, and still waits or was skipped.
        let is_open = self.run.is_some_and(|run_view| match &run_view.phase {
            RunPhase::Parked(_) => true,
            RunPhase::Finished(summary) => summary.outcome == Some(RunOutcome::Cancelled),
            RunPhase::Running => false,
        });
        if has_landed && !is_open {
            let is_merged = !self.is_on_own_branch() || self.is_merged_since(sources);
            // What the board calls done was taken in another way, such as `git merge --squash`.
            let is_done = self.row.is_some_and(|row| row.standing == StoryStanding::Done);
            if is_merged || !is_done {
                return if is_merged { ReportVerdict::Merged } else { ReportVerdict::OnOwnBranch };
            }
        }
        match (self.row.map(|row| row.standing), self.run) {
            (Some(StoryStanding::Done), _) => ReportVerdict::DoneOutside,
            (Some(StoryStanding::Skipped), _) => ReportVerdict::Skipped,
            (Some(StoryStanding::Refused | StoryStanding::Claimed), _) => ReportVerdict::NotStarted,
            (_, Some(run_view)) => find_run_verdict(&RunStanding { run_view, is_live: self.is_live }),
            (Some(StoryStanding::Stopped), None) => ReportVerdict::Stopped,
            (Some(StoryStanding::Waiting | StoryStanding::Answered), None) => ReportVerdict::Waiting,
            (None, None) => ReportVerdict::NotStarted,
        }
    }

    /// Why the story ended or waits.
    fn find_detail(&self, verdict: ReportVerdict, work: &StoryWorkReport) -> String {
        let row_detail = || self.row.map(|row| row.detail.clone()).unwrap_or_default();
        let summary = self.run.and_then(RunView::run_summary);
        match (verdict, summary) {
            // What its run says is older than what the board says.
            (ReportVerdict::DoneOutside | ReportVerdict::NotStarted, _) => row_detail(),
            (ReportVerdict::Running, _) => String::new(),
            (ReportVerdict::Skipped, _) if work.commit.is_some() => self.describe_skipped_work(work),
            // What its run says is older than the merge.
            (ReportVerdict::Merged, _) if work.merged_since => "its branch has been merged".to_string(),
            (_, Some(summary)) => phrases::describe_own_ending(StoryReporter::LIMIT_OWNER, summary),
            (ReportVerdict::Stopped, None) => "interrupted; its state is saved".to_string(),
            (_, None) => row_detail(),
        }
    }

    /// Describes work that has landed and that the user skipped all the same:
    /// `its code is on main as 1a2b3c4d5e; still owed: Buy the domain`.
    fn describe_skipped_work(&self, work: &StoryWorkReport) -> String {
        let commit = work.commit.as_ref().map_or("", |commit| commit.short_hex());
        let branch = work.branch.as_deref().unwrap_or_default();
        let decisions = self.run.map(|run_view| run_view.decisions.as_slice()).unwrap_or_default();
        let owed = decisions.iter().rev().find_map(|decision| match &decision.about {
            DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryOwes { actions })) => Some(actions),
            _ => None,
        });
        let owed_text = owed.map(|actions| format!("; still owed: {}", actions.join("; "))).unwrap_or_default();
        format!("its code is on {branch} as {commit}{owed_text}")
    }

    /// Reads the reviews of the story, the earliest first.
    fn read_reviews(&self, sources: &ReportSources<'_>) -> Vec<RunView> {
        let children = self.run.into_iter().flat_map(|run_view| run_view.children.values());
        let child_views = children.filter_map(|child| (sources.read_run)(&child.run));
        let mut reviews: Vec<RunView> = child_views.filter(|child_view| child_view.as_review().is_some()).collect();
        reviews.sort_by_key(|review| review.start_time);
        reviews
    }

    fn collect_work(&self, sources: &ReportSources<'_>, reviews: &[RunView]) -> StoryWorkReport {
        let Some(story_view) = self.story_view() else { return StoryWorkReport::default() };
        let summary = &story_view.summary;
        let checks = story_view.last_checks.iter().map(|result| ReportedCheck {
            name: result.command.to_string(),
            passed: result.status.is_passed(),
            result: result.status.to_string(),
            only_warns: result.on_failure == FailureAction::Warn,
            tree: story_view.verified.as_ref().map(|verified| verified.current_tree().clone()),
            written_after: story_view.verified.as_ref().map(|verified| verified.own_paths.clone()).unwrap_or_default(),
            in_fresh_clone: story_view
                .verified
                .as_ref()
                .is_some_and(|verified| verified.in_fresh_clone && !verified.is_excused),
        });
        StoryWorkReport {
            change: summary.commit.as_ref().and_then(|commit| (sources.read_change_size)(commit)),
            kept: story_view.kept.clone().filter(|_| summary.commit.is_none()),
            commit: summary.commit.clone(),
            confirmation: summary.confirmation.clone(),
            merged_since: self.is_merged_since(sources),
            place: self.find_place(sources),
            branch: summary.landed_on.clone(),
            sessions: summary.sessions,
            refused: summary.refused,
            checks: checks.collect(),
            delicate: DelicateChanges {
                changed_controls: summary.changed_controls.clone(),
                concerns: summary.concerns.clone(),
            },
            reviews: reviews.iter().filter_map(|review| review.run_id.clone()).collect(),
        }
    }

    fn count_findings(&self, reviews: &[RunView]) -> FindingTotals {
        let mut totals =
            reviews.last().map(|review| FindingTotals::from_counts(&review.finding_counts())).unwrap_or_default();
        for review in reviews.iter().rev().skip(1) {
            let counts = review.finding_counts();
            totals.fixed += counts.fixed;
            totals.dismissed += counts.dismissed;
        }
        totals.follow_ups = self.story_view().map_or(0, |story_view| story_view.summary.follow_ups);
        // The review leaves them open, and the story writes them down for later.
        let newly_deferred = totals.follow_ups.saturating_sub(totals.deferred).min(totals.open);
        totals.deferred += newly_deferred;
        totals.open -= newly_deferred;
        totals
    }

    fn collect_questions(
        &self,
        verdict: ReportVerdict,
        reviews: &[RunView],
        sources: &ReportSources<'_>,
    ) -> Vec<ReportedQuestion> {
        // What a story asks that is done, skipped or discarded needs no answer any more.
        if matches!(verdict, ReportVerdict::DoneOutside | ReportVerdict::Skipped) || sources.is_discarded {
            return Vec::new();
        }
        let asking_runs = self.run.into_iter().chain(reviews);
        asking_runs.flat_map(|run_view| list_questions(run_view, self.key, sources.program_name)).collect()
    }

    fn list_commands(
        &self,
        verdict: ReportVerdict,
        work: &StoryWorkReport,
        questions: &[ReportedQuestion],
        program_name: &str,
    ) -> Vec<String> {
        let Some(run_id) = self.run.and_then(|run_view| run_view.run_id.as_ref()) else { return Vec::new() };
        let run_command = |command: &str, run_id: &RunId| format!("{program_name} {command} {run_id}");
        let mut commands: Vec<String> =
            work.commit.iter().map(|commit| format!("git show {}", commit.short_hex())).collect();
        let is_unfinished = verdict.is_unfinished() && work.sessions > 0;
        if work.commit.is_some() || work.kept.is_some() || is_unfinished {
            commands.push(run_command("diff", run_id));
        }
        // The key comes from the board, and the user copies the command into a shell.
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if is_unfinished && self.key.chars().all(is_plain) && !self.key.starts_with('-') {
            commands.push(format!("{program_name} verify {}", self.key));
        }
        commands.extend(work.reviews.iter().map(|review| run_command("findings", review)));
        commands.push(run_command("log", run_id));
        commands.extend(questions.iter().map(|question| question.command.clone()));
        commands
    }
}

/// The verdict about a story that has not landed, by the state of its run.
fn find_run_verdict(run_standing: &RunStanding<'_>) -> ReportVerdict {
    match run_standing.run_state() {
        RunState::Running => ReportVerdict::Running,
        // Its process is gone, and its state is saved like that of a run that was stopped.
        RunState::Crashed | RunState::Stopped => ReportVerdict::Stopped,
        RunState::Ended(RunOutcome::Waiting | RunOutcome::Halted) => ReportVerdict::Waiting,
        RunState::Ended(RunOutcome::Failed) => ReportVerdict::Failed,
        RunState::Ended(RunOutcome::Cancelled) => ReportVerdict::Skipped,
        RunState::Ended(RunOutcome::Resolved) => ReportVerdict::DoneOutside,
    }
}
