//! Describes the effects of development: workspaces, checks, commits.

use tribunal_workflows::{
    development::{
        changes::ChangeOutcome,
        check_scripts::describe_changed_scripts,
        checks::{CheckPlace, ChecksOutcome, ChecksReport, RunChecks, list_commands},
        commits::{CommitOutcome, IntegrateOutcome, RebaseOutcome},
        concerns::describe_concerns,
        frozen_work::WorkFreezing,
        parking::{ParkMode, ParkOutcome, name_files},
        workspace::OpenOutcome,
    },
    runs::effect::{Effect, Reply},
    sprint::facts::{RetrospectiveOutcome, SprintReading, StoryPlanning},
    story::facts::{StoryReading, StoryWriting},
};

use crate::phrases;

/// Describes what such an effect does while it is under way; `None` if it is another one or over at once.
pub(crate) fn describe_work(effect: &Effect) -> Option<String> {
    match effect {
        Effect::OpenWorkspace(open) => Some(format!("preparing the workspace {}", open.workspace)),
        Effect::CloseWorkspace(close) => Some(format!("removing the workspace {}", close.workspace)),
        Effect::Checks(run_checks) => Some(format!("running checks: {}", list_commands(&run_checks.checks))),
        Effect::Commit(_) => Some("committing the work".into()),
        Effect::Rebase(rebase) => Some(format!("rebasing the work onto {}", rebase.onto.short_hex())),
        Effect::ParkWork(park) => Some(match park.mode {
            ParkMode::Park => "taking the work out of the checkout".into(),
            ParkMode::Return | ParkMode::TakeCheckout => "putting the work into the checkout".into(),
        }),
        Effect::Integrate(integrate) => Some(format!("moving {} to the work", integrate.branch.name)),
        _ => None,
    }
}

/// Describes such an effect as it was asked for; `None` if it is another one.
pub(crate) fn describe_request(effect: &Effect) -> Option<String> {
    let text = match effect {
        Effect::OpenWorkspace(open) => {
            format!("open the workspace {} ({}) on {}", open.workspace, open.place, open.branch.name)
        }
        Effect::CloseWorkspace(close) => format!("remove the workspace {}", close.workspace),
        Effect::Checks(RunChecks { place, checks }) => {
            let place_text = match place {
                CheckPlace::Copy { .. } => "in a copy".to_string(),
                CheckPlace::Workspace { workspace, .. } => format!("in {workspace}"),
                CheckPlace::FreshClone { commit, .. } => format!("in a fresh clone of {}", commit.short_hex()),
                CheckPlace::BaseScripts { commit, base, .. } => {
                    format!("in a fresh clone of {} with the scripts of {}", commit.short_hex(), base.short_hex())
                }
            };
            format!("run {} {place_text}", phrases::format_count(checks.len() as u32, "check"))
        }
        Effect::FreezeWork(freeze) => format!("freeze the content of {}", freeze.workspace),
        Effect::Commit(commit) => {
            format!("commit {}: {}", commit.workspace, commit.message.lines().next().unwrap_or_default())
        }
        Effect::Rebase(rebase) => format!("rebase {} onto {}", rebase.workspace, rebase.onto.short_hex()),
        Effect::ParkWork(park) => match park.mode {
            ParkMode::Park => format!("park the work of {}", park.workspace),
            ParkMode::Return => format!("put the work of {} into the checkout", park.workspace),
            ParkMode::TakeCheckout => format!("take the checkout as the work of {}", park.workspace),
        },
        Effect::Integrate(integrate) => {
            format!("move {} to {}", integrate.branch.name, integrate.commit.short_hex())
        }
        Effect::ReadChange(read_change) => format!("list the change {}", read_change.title),
        Effect::Notify(notify) => format!("notify: {}", notify.text),
        Effect::ReadStory(read_story) => format!("read the story {}", read_story.story.key),
        Effect::ReadSprint(_) => "read the board".to_string(),
        Effect::PlanStory(plan_story) => format!("plan the story {}", plan_story.story),
        Effect::FinishRetrospective(finish) => format!("read the retrospective of epic {}", finish.epic),
        Effect::RestoreBoard(restore) => format!("restore the board in {}", restore.workspace),
        Effect::WriteStory(write) => format!("write the story {} ({})", write.story.key, write.stage),
        _ => return None,
    };
    Some(text)
}

/// Describes the reply to such an effect; `None` if it failed or belongs to another one.
pub(crate) fn describe_reply(reply: &Reply) -> Option<String> {
    let text = match reply {
        Reply::OpenWorkspace(OpenOutcome::Opened(opened)) => {
            format!("{} at {}", opened.path, opened.base.short_hex())
        }
        Reply::OpenWorkspace(OpenOutcome::SetupFailed(result)) => format!("set-up failed: {}", result.describe()),
        Reply::CloseWorkspace(_) => "removed".into(),
        Reply::Checks(ChecksOutcome::Ran(report)) => describe_checks(report),
        Reply::FreezeWork(WorkFreezing::Frozen { tree, .. }) => tree.short_hex().to_string(),
        Reply::Checks(ChecksOutcome::Edited { paths }) | Reply::Commit(CommitOutcome::Edited { paths }) => {
            format!("stopped: you edited {}", name_files(paths))
        }
        Reply::Commit(CommitOutcome::Committed { commit }) => commit.short_hex().to_string(),
        Reply::Commit(CommitOutcome::Rewritten { paths, .. }) => format!("a hook changed {}", name_files(paths)),
        Reply::Commit(CommitOutcome::Unchanged { .. }) => "nothing to commit".into(),
        Reply::Commit(CommitOutcome::Refused(result)) => format!("refused by a hook: {}", result.describe()),
        Reply::Rebase(RebaseOutcome::Rebased { commit }) => commit.short_hex().to_string(),
        Reply::Rebase(RebaseOutcome::Conflict(conflict)) => format!("conflicts in {}", conflict.paths.join(", ")),
        Reply::ParkWork(ParkOutcome::Parked { commit, .. }) => format!("parked as {}", commit.short_hex()),
        Reply::ParkWork(ParkOutcome::Returned { commit, .. }) => commit.short_hex().to_string(),
        Reply::ParkWork(ParkOutcome::InTheWay { paths }) => format!("stopped by {}", name_files(paths)),
        Reply::ParkWork(ParkOutcome::Conflict { paths }) => format!("conflicts in {}", name_files(paths)),
        Reply::Integrate(IntegrateOutcome::Integrated { .. }) => "moved".into(),
        Reply::Integrate(IntegrateOutcome::Waits { branch, .. }) => format!("waits on {branch}"),
        Reply::Integrate(IntegrateOutcome::ChecksChanged { scripts }) => {
            format!("stopped: it changes {}", describe_changed_scripts(scripts))
        }
        Reply::Integrate(IntegrateOutcome::Questionable { concerns }) => {
            format!("stopped: {}", describe_concerns(concerns))
        }
        Reply::Integrate(IntegrateOutcome::Moved { tip }) => format!("the branch has moved to {}", tip.short_hex()),
        Reply::ReadChange(ChangeOutcome::Listed { change }) => phrases::format_count(change.files.len() as u32, "file"),
        Reply::ReadChange(ChangeOutcome::Empty) => "nothing to review".into(),
        Reply::Notify(_) => "notified".into(),
        Reply::ReadStory(StoryReading::Read(facts)) => {
            let board_word = facts.board.as_ref().map_or("not on the board", |fact| fact.word.as_str());
            format!("{board_word}, {} changed", phrases::format_count(facts.work.changed_count, "file"))
        }
        Reply::ReadSprint(SprintReading::Read(facts)) => {
            format!("{} open, {} done", facts.open_count, facts.done_count)
        }
        Reply::PlanStory(StoryPlanning::Planned(planned)) => planned.name.title.clone(),
        Reply::PlanStory(StoryPlanning::Refused { detail }) => detail.clone(),
        Reply::PlanStory(StoryPlanning::Claimed { claimant }) => format!("run {claimant} works on it"),
        Reply::FinishRetrospective(RetrospectiveOutcome::Held { lesson, .. }) => lesson.describe(),
        Reply::FinishRetrospective(RetrospectiveOutcome::Missing { .. }) => "there is no document".to_string(),
        Reply::FinishRetrospective(RetrospectiveOutcome::Strayed { paths }) => {
            format!("it also changed {}", paths.join(", "))
        }
        Reply::WriteStory(StoryWriting::Written { paths, .. })
        | Reply::RestoreBoard(StoryWriting::Written { paths, .. }) => {
            if paths.is_empty() {
                "nothing to write".into()
            } else {
                paths.join(", ")
            }
        }
        _ => return None,
    };
    Some(text)
}

pub(crate) fn describe_checks(report: &ChecksReport) -> String {
    let failures: Vec<String> = report.list_failures().map(|result| result.describe()).collect();
    if failures.is_empty() {
        return format!("{} passed", phrases::format_count(report.results.len() as u32, "check"));
    }
    failures.join("; ")
}
