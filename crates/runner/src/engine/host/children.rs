//! The child runs of a workflow: naming, starting and reporting them.

use std::{future::Future, path::PathBuf, pin::Pin};

use tokio::sync::watch;
use tribunal_engine::{
    child_outcome::FailedChild,
    children::measure_waits,
    event::ParentRun,
    fault::Fault,
    ids::{Key, RunId},
    limits::UsageTotals,
    text::truncate_chars,
};
use tribunal_store::{StoreError, SyncMode};
use tribunal_workflows::{
    findings::{
        finding::{Finding, FindingStatus},
        reported_finding::{LeftFindings, MAX_REPORTED_FINDINGS, ReportedFinding},
    },
    runs::{
        effect::Reply,
        plan::RunPlan,
        types::{ChildOutcome, ChildReport, EntryDraft, JournalEntry, Replayer, RunChild, RunEvent},
        user_request::UserRequest,
        view::{RunPhase, RunView},
    },
};

use super::{HostError, WorkflowHost};
use crate::{
    effects::{environment_fault, read_trusted_answers},
    engine::updates::UpdateSink,
    run_names,
    shared::stop_level::StopLevel,
};

/// The most characters of a finding that a parent is told.
const MAX_DESCRIPTION_CHARS: usize = 600;

/// A child run that is being driven.
pub(crate) type ChildFuture<'a> = Pin<Box<dyn Future<Output = ChildEnd> + 'a>>;

/// Drives child runs.
pub(crate) trait ChildDriver {
    /// Drives a child until it ends or parks. An error says why it could not be started or continued.
    fn drive_child<'a>(
        &self,
        child: ChildPlan,
        update_sink: &'a dyn UpdateSink,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + 'a>>;
}

/// A child run that is to be started or continued.
#[derive(Debug)]
pub(crate) struct ChildPlan {
    pub child_id: RunId,
    pub parent: ParentRun,
    pub plan: RunPlan,
    /// The effect was under way when the process last ended.
    pub resumed: bool,
    /// The directory with the files that the child works on, if these are not the user's.
    pub tree: Option<PathBuf>,
    /// Tells the child to stop because its parent ends or parks.
    pub parent_end: watch::Receiver<StopLevel>,
}

/// What a workflow asks for.
pub(super) struct ChildRequest {
    pub key: Key,
    pub run_child: RunChild,
    /// The effect was under way when the process last ended.
    pub resumed: bool,
}

/// How a child run came back.
pub(crate) struct ChildEnd {
    pub(super) key: Key,
    pub(super) name: String,
    pub(super) child_id: RunId,
    result: Result<(), Fault>,
}

impl<'a> WorkflowHost<'_, 'a> {
    /// Starts or continues a child run that this run waits for.
    pub(super) async fn run_child(&mut self, request: ChildRequest) -> Result<(), HostError> {
        let (child_id, drafts) = self.name_child(&request)?;
        self.record_drafts(drafts, SyncMode::Now).await?;
        let drive = self.drive_child(child_id, request);
        self.child_runs.waited_for.push(drive);
        Ok(())
    }

    /// Returns the id of the child, with the entry for one that has none yet.
    pub(super) fn name_child(&self, request: &ChildRequest) -> Result<(RunId, Vec<EntryDraft>), HostError> {
        let ChildRequest { key, run_child, .. } = request;
        if let Some(standing) = self.journal.run_view().children.get(&run_child.name) {
            return Ok((standing.run.clone(), Vec::new()));
        }
        let child_id = self.new_child_id(run_child)?;
        let event = RunEvent::ChildStarted { key: key.clone(), name: run_child.name.clone(), child: child_id.clone() };
        Ok((child_id, vec![EntryDraft { id: format!("child_started:{}", run_child.name), event }]))
    }

    /// Drives a child until it comes back.
    pub(super) fn drive_child(&self, child_id: RunId, request: ChildRequest) -> ChildFuture<'a> {
        let ChildRequest { key, run_child, resumed } = request;
        let own_view = self.journal.run_view();
        let parent = ParentRun {
            run: self.context.run_id.clone(),
            root: own_view.parent.as_ref().map_or_else(|| self.context.run_id.clone(), |parent| parent.root.clone()),
            name: run_child.name.clone(),
            depth: own_view.parent.as_ref().map_or(0, |parent| parent.depth) + 1,
        };
        let mut settings = self.context.settings.clone();
        settings.limits.share = Some(run_child.share);
        settings.tier = run_child.tier.unwrap_or(settings.tier);
        let plan = RunPlan { settings, order: run_child.order };
        let name = run_child.name;
        let tree = match run_child.workspace.map(|workspace_name| self.open_tree(&workspace_name)).transpose() {
            Ok(tree) => tree,
            Err(fault) => return Box::pin(async move { ChildEnd { key, name, child_id, result: Err(fault) } }),
        };
        let parent_end = self.child_runs.parent_end();
        let child_plan = ChildPlan { child_id: child_id.clone(), parent, plan, resumed, tree, parent_end };
        let drive = self.child_driver.drive_child(child_plan, self.update_sink);
        Box::pin(async move { ChildEnd { key, name, child_id, result: drive.await } })
    }

    /// Prepares the files of a workspace for a child that works on them. Returns where they are.
    fn open_tree(&self, workspace_name: &str) -> Result<PathBuf, Fault> {
        let workspace = self.context.find_development_workspace(workspace_name)?;
        workspace.distrust_agent_files()?;
        Ok(workspace.agent_dir())
    }

    fn new_child_id(&self, run_child: &RunChild) -> Result<RunId, StoreError> {
        let mut taken_names = self.journal.list_runs()?;
        // A child that was named a moment ago may not have a journal yet.
        taken_names.extend(self.journal.run_view().children.values().map(|standing| standing.run.clone()));
        Ok(run_names::new_run_name(&run_child.order.file_slug(), &taken_names))
    }

    /// Records how a child came back that this run waited for. If this run itself is to stop, nothing is recorded: the next process
    /// asks for it again.
    pub(super) async fn finish_child(
        &mut self,
        replayer: &Replayer,
        child_end: ChildEnd,
        deliver: bool,
    ) -> Result<(), HostError> {
        let is_stopping = *self.stop.borrow() > StopLevel::Continue;
        let key = child_end.key.clone();
        let outcome = self.judge_child(child_end)?;
        // A child that was stopped together with this run has not come to an end of its own.
        if is_stopping && !matches!(outcome, ChildOutcome::Ended(_)) {
            return Ok(());
        }
        self.record_performed(replayer, &key, Reply::RunChild(outcome).into(), deliver).await
    }

    /// Returns how a child came back.
    pub(super) fn judge_child(&self, child_end: ChildEnd) -> Result<ChildOutcome, HostError> {
        let ChildEnd { child_id, result, .. } = child_end;
        let child_entries = self.journal.entries_of(&child_id)?;
        let child_view = RunView::from_entries(&child_entries);
        let used = self.measure_usage(&child_id, &child_entries, &child_view)?;
        let fail_with = |fault: Fault| ChildOutcome::Failed(FailedChild { run: Some(child_id.clone()), fault, used });
        Ok(match result {
            Ok(()) => report_child(&child_id, &child_view, used).unwrap_or_else(|| {
                fail_with(environment_fault(format!("child run {child_id} has neither ended nor parked")))
            }),
            Err(fault) => fail_with(fault),
        })
    }

    /// Returns what a child has used that still works; nothing if it has recorded nothing yet.
    pub(super) fn usage_so_far(&self, child_id: &RunId) -> Result<UsageTotals, HostError> {
        let child_entries = self.journal.entries_of(child_id)?;
        let child_view = RunView::from_entries(&child_entries);
        self.measure_usage(child_id, &child_entries, &child_view)
    }

    /// Returns what a child and its own children have used, with the time in which they only waited.
    fn measure_usage(
        &self,
        child_id: &RunId,
        child_entries: &[JournalEntry],
        child_view: &RunView,
    ) -> Result<UsageTotals, HostError> {
        let mut used = child_view.total_usage().usage_totals();
        let is_wait =
            |entry: &JournalEntry| matches!(entry.event, RunEvent::EffectFinished { reply: Reply::AwaitReset(_), .. });
        // What a view is built from lacks the starts of earlier effects, so the whole journal is read if the child has waited.
        if child_entries.iter().any(is_wait) {
            let own_waits_ms = measure_waits(&self.journal.all_entries_of(child_id)?);
            used.waited_ms = used.waited_ms.saturating_add(own_waits_ms);
        }
        Ok(used)
    }

    /// Returns a request for every waiting child that the user has answered meanwhile.
    pub(super) fn answered_children(&self) -> Result<Vec<UserRequest>, HostError> {
        let mut requests = Vec::new();
        for (child_name, standing) in &self.journal.run_view().children {
            // One that runs reads its own inbox, and one that has ended needs no answer.
            if !matches!(standing.outcome, Some(ChildOutcome::Waiting(_))) {
                continue;
            }
            let child_view = RunView::from_entries(&self.journal.entries_of(&standing.run)?);
            if matches!(child_view.phase, RunPhase::Parked(_)) && self.has_news(&standing.run, &child_view)? {
                requests.push(UserRequest::ContinueChild { child: child_name.clone() });
            }
        }
        Ok(requests)
    }

    /// Whether the user has sent something to a parked child.
    fn has_news(&self, child_id: &RunId, child_view: &RunView) -> Result<bool, HostError> {
        let requests = self.trusted_requests_of(child_id)?;
        Ok(requests.iter().any(|stored| !matches!(stored.request, UserRequest::Stop { .. }))
            || !read_trusted_answers(&self.context, child_view).is_empty())
    }
}

/// Describes how a child run came to an end; `None` if it has none.
fn report_child(child_id: &RunId, child_view: &RunView, used: UsageTotals) -> Option<ChildOutcome> {
    let summary = child_view.run_summary()?;
    let list_findings = |is_wanted: &dyn Fn(&FindingStatus) -> bool| {
        let mut findings: Vec<&Finding> =
            child_view.all_findings().filter(|finding| is_wanted(&finding.status)).collect();
        findings.sort_by_key(|finding| (finding.severity, finding.id));
        findings
    };
    // What only the user can decide is not resolved either.
    let open_findings = list_findings(&|status| status.is_open() || matches!(status, FindingStatus::Blocked { .. }));
    let deferred_findings = list_findings(&|status| matches!(status, FindingStatus::Deferred { .. }));
    let report = ChildReport {
        run: child_id.clone(),
        outcome: summary.outcome,
        reason: summary.reason,
        detail: summary.detail.clone(),
        used,
        worked_ms: summary.elapsed_ms.saturating_sub(used.waited_ms),
        result: LeftFindings {
            open_count: open_findings.len() as u32,
            open_findings: open_findings.into_iter().take(MAX_REPORTED_FINDINGS).map(report_finding).collect(),
            deferred_findings: deferred_findings.into_iter().take(MAX_REPORTED_FINDINGS).map(report_finding).collect(),
        },
    };
    Some(match child_view.phase {
        RunPhase::Finished(_) => ChildOutcome::Ended(report),
        _ => ChildOutcome::Waiting(report),
    })
}

fn report_finding(finding: &Finding) -> ReportedFinding {
    ReportedFinding {
        severity: finding.severity,
        description: truncate_chars(&finding.description, MAX_DESCRIPTION_CHARS),
        place: finding.place.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}
