//! Steps that every kind of run takes when it develops.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        checks::{CheckPlace, CheckSpec, ChecksOutcome, ChecksReport, FailureAction, RunChecks},
        frozen_work::{FreezeWork, MAX_VERIFICATIONS, WorkFreezing},
        workspace::{CloseOutcome, CloseWorkspace, OpenOutcome, OpenWorkspace, OpenedWorkspace},
    },
    runs::{kind_host::KindHost, run_kind::RunKind},
    stages::exit::{StageExit, Staged},
};
use tribunal_engine::{
    host::ParkedRun,
    ids::{CommitId, Key, TreeId},
    reason::RunReason,
};

/// A kind of run that develops in one workspace.
pub trait DevelopingOrder: RunKind {
    const WORKSPACE_NAME: &'static str;
}

impl<O: DevelopingOrder> KindHost<'_, O> {
    pub async fn open_workspace(&self, open_key: Key, open: OpenWorkspace) -> Staged<OpenedWorkspace> {
        match self.perform(open_key, open).await? {
            OpenOutcome::Opened(opened) => Ok(opened),
            OpenOutcome::SetupFailed(result) => {
                let detail = format!("a set-up command failed: {}", result.describe_with_output());
                Err(StageExit::halt_run(RunReason::Environment, detail))
            }
            OpenOutcome::Failed { fault } => Err(StageExit::from_fault(&fault)),
        }
    }

    /// Freezes the content of the workspace.
    pub async fn freeze_work(&self, freeze_key: Key) -> Staged<TreeId> {
        self.freeze_content(freeze_key, None).await
    }

    /// Freezes the content of a commit of the workspace, not that of the files.
    pub async fn freeze_commit(&self, freeze_key: Key, commit: &CommitId) -> Staged<TreeId> {
        self.freeze_content(freeze_key, Some(commit.clone())).await
    }

    async fn freeze_content(&self, freeze_key: Key, commit: Option<CommitId>) -> Staged<TreeId> {
        match self.perform(freeze_key, FreezeWork { workspace: String::from(O::WORKSPACE_NAME), commit }).await? {
            WorkFreezing::Frozen { tree, remarks } => {
                remarks.into_iter().for_each(|remark| self.note_warning(remark));
                Ok(tree)
            }
            WorkFreezing::Failed { fault } => Err(StageExit::from_fault(&fault)),
        }
    }

    /// Freezes the content of the workspace and runs checks on it. Returns what was checked.
    pub async fn freeze_and_check(&self, key: &Key, checks: Vec<CheckSpec>) -> Staged<(TreeId, ChecksReport)> {
        let mut attempt = 1;
        loop {
            let attempt_key = if attempt == 1 { key.clone() } else { key.numbered_child("again", attempt) };
            let tree = self.freeze_work(attempt_key.child_key("freeze")).await?;
            if checks.is_empty() {
                return Ok((tree, ChecksReport::default()));
            }
            match self.run_checks(attempt_key.child_key("checks"), checks.clone(), &tree).await {
                // Nothing else depends on this tree yet, so the next one is as good.
                Err(StageExit::Edited { .. }) if attempt < MAX_VERIFICATIONS => attempt += 1,
                report => return Ok((tree, report?)),
            }
        }
    }

    /// Runs checks on frozen content of the workspace. A check whose program is missing says nothing about the work: it is a failure of
    /// the environment.
    pub async fn run_checks(&self, checks_key: Key, checks: Vec<CheckSpec>, tree: &TreeId) -> Staged<ChecksReport> {
        let place = CheckPlace::Workspace { workspace: String::from(O::WORKSPACE_NAME), tree: Some(tree.clone()) };
        let report = match self.perform(checks_key, RunChecks { place, checks }).await? {
            ChecksOutcome::Ran(report) => report,
            ChecksOutcome::Edited { paths } => return Err(StageExit::Edited { paths }),
            ChecksOutcome::Failed { fault } => return Err(StageExit::from_fault(&fault)),
        };
        for remark in &report.remarks {
            self.note_warning(remark.clone());
        }
        match report.find_unrunnable() {
            Some(result) => Err(StageExit::halt_run(RunReason::Environment, result.describe_with_output())),
            None => Ok(report),
        }
    }

    /// Removes a workspace that is about to be opened anew.
    pub async fn discard_workspace(&self, close_key: Key) -> Staged<()> {
        match self.perform(close_key, close_workspace::<O>()).await? {
            CloseOutcome::Closed => Ok(()),
            CloseOutcome::Failed { fault } => Err(StageExit::from_fault(&fault)),
        }
    }

    /// Removes the workspace of a run that is about to end, and returns whether it is gone. Nothing depends on it: `gc` removes
    /// what is left.
    pub async fn close_workspace(&self, close_key: Key) -> Result<bool, ParkedRun> {
        if let CloseOutcome::Failed { fault } = self.perform(close_key, close_workspace::<O>()).await? {
            self.note_warning(format!("could not remove the workspace: {}", fault.detail));
            return Ok(false);
        }
        Ok(true)
    }
}

fn close_workspace<O: DevelopingOrder>() -> CloseWorkspace {
    CloseWorkspace { workspace: String::from(O::WORKSPACE_NAME) }
}

/// Halts a run if a check fails on the untouched workspace that no agent is to repair: no work could pass it.
pub fn judge_baseline(report: &ChecksReport) -> Staged<()> {
    let Some(failure) = report.list_failures().find(|result| result.on_failure == FailureAction::Block) else {
        return Ok(());
    };
    let mut detail = failure.describe();
    if !report.differences.is_empty() {
        detail.push_str("; your checkout has what the workspace lacks: ");
        detail.push_str(&report.differences.join(", "));
    }
    detail.push_str("; repair it and resume, or start a new run with --skip-baseline");
    Err(StageExit::halt_run(RunReason::Baseline, detail))
}

/// The end of a run whose user does not want its work on the branch.
pub fn end_without_landing(branch_name: &str, kept: Option<&CommitId>) -> StageExit {
    StageExit::abandon_run(format!("{branch_name} was left alone, {}", describe_kept_work(kept)))
}

/// Says where the work of a run is that its user has ended; `None` if there is none.
pub fn describe_kept_work(kept: Option<&CommitId>) -> String {
    match kept {
        Some(commit) => {
            let commit = commit.short_hex();
            format!("its work is kept as commit {commit}: take it with `git merge {commit}`")
        }
        None => String::from("it had no work to keep"),
    }
}
