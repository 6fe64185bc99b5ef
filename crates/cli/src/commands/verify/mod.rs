//! `tribunal verify STORY`: makes the check that a run makes after a story was developed: from files and git, and with the checks.

mod document;

use tribunal_bmad::{keys::BoardKey, project_files::ProjectFiles, story};
use tribunal_engine::{
    ids::{CommitId, RunId},
    text::truncate_chars,
};
use tribunal_runner::{
    InspectedStory, Project, Runner, StoryInspection,
    git::heads,
    housekeeping::discarded_runs::{is_discarded, list_discarded},
    project::story_facts::{self, ObservedTree},
};
use tribunal_store::Store;
use tribunal_workflows::{
    development::{
        checks::{CheckResult, list_commands},
        workspace::{DevelopmentPlace, PathChange, WorkspaceState},
    },
    findings::finding::{Finding, FindingStatus, Severity},
    runs::{kinds::RunOrder, view::RunView},
    story::{
        facts::{StoryFacts, StoryFollowUp, StoryName, StoryStage},
        order::StoryOrder,
        verification::{StoryMilestone, StoryProblem, verify_story},
    },
};

use crate::{
    bmad::{BmadProject, BoardLookup},
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_ENVIRONMENT, EXIT_INTERRUPTED, EXIT_NEGATIVE, UserError},
    },
    runs::engine::RunEngine,
    settings::{ResolvedSettings, RunInputs, resolve_check_settings},
    trust::{
        self,
        trust_item::{CommandPurpose, TrustItem},
    },
};

pub(crate) use document::VerifyDocument;
use document::{VerifyCheck, describe_failed_base_check, describe_new_scripts, print_document};

/// The most files that a reason names.
const MAX_NAMED_FILES: usize = 5;
/// The most characters of a finding in a reason.
const MAX_FINDING_CHARS: usize = 300;

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArguments {
    /// Story by number, key or slug
    #[arg(value_name = "STORY")]
    story: String,
    /// Commit with which the work began (default: that of its run, or the baseline in its file)
    #[arg(long, value_name = "COMMIT")]
    base: Option<String>,
    /// Leave the checks out: only files and git are looked at
    #[arg(long)]
    skip_checks: bool,
}

/// Where the work on a story is, and where it began.
struct StoryRange {
    base: String,
    commit: Option<String>,
    /// The order of the last run, if that has a workspace or landed.
    order: Option<Box<StoryOrder>>,
    workspace: Option<RunWorkspace>,
    /// The critical findings that the review of the last run has left open, one line each.
    critical_findings: Vec<String>,
}

impl StoryRange {
    fn in_checkout(base: String) -> StoryRange {
        StoryRange { base, commit: None, order: None, workspace: None, critical_findings: Vec::new() }
    }
}

/// The workspace of a run that waits.
struct RunWorkspace {
    run_id: RunId,
    path: String,
    /// What the run waits for.
    waits_for: String,
}

pub(crate) fn run(arguments: &VerifyArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let bmad = BmadProject::read_project(&project);
    let name = find_name(&bmad, &arguments.story)?;
    let range = find_range(&project, &bmad, &name, arguments, context)?;
    let mut resolved = resolve_check_settings(project.root(), &RunInputs::from_environment(context))?;
    let rules = resolved.plan.order.rules;
    if arguments.skip_checks {
        resolved.plan.settings.checks.clear();
    }
    resolved.plan.order = match &range.order {
        Some(order) => (**order).clone(),
        None => StoryOrder { story: name.clone(), ..resolved.plan.order },
    };
    let inspected = inspect_work(&project, resolved, &range, context)?;
    if let Some(result) = inspected.checks.find_unrunnable() {
        // A missing program says nothing about the work.
        return Err(UserError::new(EXIT_ENVIRONMENT, result.describe())
            .with_step("repair it, or leave the checks out: add `--skip-checks`"));
    }
    let is_workspace = inspected.facts.is_some();
    let checkout_facts = read_facts(&project, &name, &range)?;
    let gone_files = find_gone_files(&project, &name, &range, &checkout_facts);
    // The board of a workspace says what the run has prepared; what holds is the board of the checkout.
    let facts = match inspected.facts {
        Some(facts) => StoryFacts { board: checkout_facts.board, ..*facts },
        None => checkout_facts,
    };
    let verdict = verify_story(&name, &facts, StoryMilestone::Developed, None, rules);
    let board_stage = facts.board.as_ref().and_then(|fact| fact.stage);
    let file_status = facts.file.as_ref().and_then(|file| file.status.as_ref());
    let said_stage = if name.board.is_some() { board_stage } else { file_status.and_then(|fact| fact.stage) };
    let failed_checks = inspected.checks.counting_failures().map(CheckResult::describe);
    let failed_base_checks = inspected.base_checks.iter().filter_map(describe_failed_base_check);
    let problems = verdict.problems.iter().map(StoryProblem::describe);
    let reasons: Vec<String> = problems
        .chain(range.critical_findings)
        .chain(gone_files)
        .chain(failed_checks)
        .chain(failed_base_checks)
        .collect();
    let is_verified = reasons.is_empty();
    let warned_checks = inspected.checks.list_warnings().map(CheckResult::describe);
    let waiting = range
        .workspace
        .as_ref()
        .map(|workspace| format!("nothing has landed: run {} waits ({})", workspace.run_id, workspace.waits_for));
    let unchecked = inspected.checks.results.is_empty().then(|| "no checks ran".to_string());
    let check_remarks = inspected.checks.remarks.iter().cloned();
    let document = VerifyDocument {
        schema: "tribunal.verify/1",
        story: name.key.clone(),
        verified: is_verified,
        sprint_status: facts.board.as_ref().map(ToString::to_string),
        story_file_status: file_status.map(ToString::to_string),
        done: is_verified && !is_workspace && said_stage == Some(StoryStage::Done),
        reasons,
        remarks: verdict
            .remarks
            .into_iter()
            .chain(warned_checks)
            .chain(inspected.base_checks.iter().filter_map(describe_new_scripts))
            .chain(check_remarks)
            .chain(unchecked)
            .chain(waiting)
            .collect(),
        checks: VerifyCheck::list_checks(&inspected.checks, &inspected.base_checks),
        base: range.base,
        commit: range.commit,
        workspace: range.workspace.map(|workspace| workspace.path),
    };
    match context.wants_json {
        true => json_documents::print_document(&document)?,
        false => print_document(&document)?,
    }
    Ok(if document.verified { 0 } else { EXIT_NEGATIVE })
}

/// Says which files of a commit that has landed are gone from the checkout.
fn find_gone_files(project: &Project, name: &StoryName, range: &StoryRange, facts: &StoryFacts) -> Option<String> {
    range.commit.as_ref()?;
    let written = facts.work.changed.iter().filter(|change| change.change != PathChange::Deleted);
    let is_gone = |path: &&str| std::fs::symlink_metadata(project.root().join(path)).is_err();
    let gone: Vec<&str> = written
        .map(|change| change.path.as_str())
        .filter(|path| !name.is_bookkeeping(path))
        .filter(is_gone)
        .take(MAX_NAMED_FILES)
        .collect();
    (!gone.is_empty()).then(|| format!("files of its commit are gone from your checkout: {}", gone.join(", ")))
}

/// Runs the checks where the work is, and reads what files and git say if that is in a workspace.
fn inspect_work(
    project: &Project,
    resolved: ResolvedSettings<StoryOrder>,
    range: &StoryRange,
    context: &CommandContext,
) -> Result<InspectedStory, UserError> {
    let ResolvedSettings { plan, share, items, .. } = resolved;
    // Agents and other commands are not started.
    let needs_trust = |item: &TrustItem| match item {
        TrustItem::Command { purpose, .. } => *purpose == CommandPurpose::Check && !plan.settings.checks.is_empty(),
        TrustItem::Sandbox(_) => !plan.settings.checks.is_empty(),
        _ => false,
    };
    let items: Vec<TrustItem> = items.into_iter().filter(needs_trust).collect();
    trust::require_trust(context, project.root(), &items)
        .map_err(|untrusted| untrusted.with_step("or leave the checks out: `--skip-checks`"))?;
    let checks = plan.settings.checks.clone();
    if !checks.is_empty() {
        let place = match &range.workspace {
            Some(workspace) => workspace.path.as_str(),
            None => "your checkout",
        };
        context.print_note(&format!("running {} in {place}", list_commands(&checks)))?;
    }
    let run_id = range.workspace.as_ref().map(|workspace| workspace.run_id.clone());
    let changed = heads::list_changes(project.root(), &range.base, range.commit.as_deref())?;
    let changed_paths = changed.into_iter().map(|change| change.path).collect();
    let base = CommitId::new(range.base.as_str());
    let inspection = StoryInspection { plan, run_id, checks, base, changed_paths };
    let inspected = RunEngine::new(context, share)?
        .block_on_all(async |run_engine| run_engine.inspect_story(context, project.clone(), inspection).await)?;
    inspected.ok_or_else(|| {
        UserError::new(EXIT_INTERRUPTED, "the checks were interrupted").with_reason("Nothing was verified.")
    })
}

fn find_name(bmad: &BmadProject, typed_name: &str) -> Result<StoryName, UserError> {
    let key = match &bmad.board {
        Some(board) => match bmad.find_key(typed_name)? {
            board_key @ BoardKey::Story(_) => {
                board.find_entry(&board_key).map_or_else(|| board_key.to_string(), |entry| entry.raw_key.clone())
            }
            _ => {
                return Err(UserError::usage(format!("`{typed_name}` is not a story"))
                    .with_step("list the stories: `tribunal status`"));
            }
        },
        None => bmad
            .find_file_by_name(typed_name)?
            .as_deref()
            .and_then(story::key_from_path)
            .map(|story_key| story_key.to_string())
            .ok_or_else(|| UserError::usage(format!("no story `{typed_name}` in this project")))?,
    };
    Ok(StoryName {
        board: bmad.board.as_ref().map(|board| board.path.clone()),
        bookkeeping: bmad.bookkeeping_folders(),
        ..StoryName::from_key(key)
    })
}

/// Finds out where the work on a story began: what the user says, what its last run recorded, what its file says.
fn find_range(
    project: &Project,
    bmad: &BmadProject,
    name: &StoryName,
    arguments: &VerifyArguments,
    context: &CommandContext,
) -> Result<StoryRange, UserError> {
    let require_commit = |commit_name: &str| {
        heads::find_commit(project.root(), commit_name)?
            .map(|commit| commit.as_str().to_string())
            .ok_or_else(|| UserError::usage(format!("`{commit_name}` is not a commit")))
    };
    if let Some(typed_base) = arguments.base.as_deref() {
        return Ok(StoryRange::in_checkout(require_commit(typed_base)?));
    }
    if let Some(range) = find_last_run(project, name, context)? {
        return Ok(range);
    }
    let file_baseline = read_baseline(bmad, name).filter(|baseline| baseline != "NO_VCS");
    match file_baseline {
        Some(baseline) => Ok(StoryRange::in_checkout(require_commit(&baseline)?)),
        None => Err(UserError::usage(format!("it is not known where the work on {} began", name.key))
            .with_reason("No run has developed it, and its file has no baseline.")
            .with_step("name the commit: `--base COMMIT`")),
    }
}

fn find_last_run(
    project: &Project,
    name: &StoryName,
    context: &CommandContext,
) -> Result<Option<StoryRange>, UserError> {
    let Some(store) = context.open_journal(project)? else { return Ok(None) };
    let discarded_runs = list_discarded(project);
    let mut last_range = None;
    for run_id in store.list_runs()? {
        let start = RunView::from_entries(&store.last_entry_of(&run_id, &["run_started"])?);
        if !matches!(&start.order, Some(RunOrder::Story(order)) if order.story.key == name.key)
            || is_discarded(&discarded_runs, &run_id, &start)
        {
            continue;
        }
        let run_view = store.read_view(&run_id)?;
        let Some(view) = run_view.as_story() else { continue };
        if let Some(base) = &view.base {
            let landed = view.summary.commit.clone();
            let ending = run_view.run_summary();
            // While such a story waits, its work is parked as a commit.
            let is_put_aside = view.order.as_ref().is_some_and(|order| order.place == DevelopmentPlace::InPlace)
                && ending.is_some_and(|summary| summary.outcome.is_some());
            let has_workspace = landed.is_none() && !view.workspace_path.is_empty() && !is_put_aside;
            let (path, parent) = (view.workspace_path.clone(), run_view.parent.as_ref().map(|parent| &parent.run));
            let waits_for = ending.map(|summary| summary.detail.clone()).unwrap_or_default();
            let worker = [Some(&run_id), parent].into_iter().flatten().find(|worker| Runner::is_live(project, worker));
            last_range = Some(LastRun {
                kept: view.kept.clone().filter(|_| landed.is_none() && !has_workspace),
                worker: worker.filter(|_| has_workspace).cloned(),
                range: StoryRange {
                    base: base.as_str().to_string(),
                    commit: landed.map(|commit| commit.as_str().to_string()),
                    order: view.order.clone(),
                    workspace: has_workspace.then_some(RunWorkspace { run_id, path, waits_for }),
                    critical_findings: list_critical_findings(&store, &run_view)?,
                },
            });
        }
    }
    let Some(LastRun { range, kept, worker }) = last_range else { return Ok(None) };
    // Its workspace may be used at any moment, and a lock on it would hold the run up.
    if let Some(worker) = worker {
        return Err(UserError::usage(format!("run {worker} is working on {}", name.key))
            .with_reason("Its workspace cannot be checked meanwhile. Nothing was verified.")
            .with_step(format!("see what it does: `tribunal status {worker}`")));
    }
    // Files are read from the checkout, which must have the work.
    let work_commit = range.commit.clone().or_else(|| kept.map(|commit| commit.as_str().to_string()));
    match work_commit {
        Some(commit) if !heads::is_in_history(project.root(), &CommitId::new(commit.as_str())) => {
            let short_commit: String = commit.chars().take(8).collect();
            let short_base: String = range.base.chars().take(8).collect();
            Err(UserError::usage(format!("the work on {} is not in your checkout", name.key))
                .with_reason(format!("It is kept as commit {short_commit}."))
                .with_step(format!("check that commit out: `git switch --detach {short_commit}`"))
                .with_step(format!("then verify it: `tribunal verify {} --base {short_base}`", name.key)))
        }
        _ => Ok(Some(range)),
    }
}

/// Describes the critical findings that the last review of a story has left open: with one of them a story is not done.
fn list_critical_findings(store: &Store, run_view: &RunView) -> Result<Vec<String>, UserError> {
    let mut reviews = Vec::new();
    for child in run_view.children.values() {
        let child_view = store.read_view(&child.run)?;
        if child_view.as_review().is_some() {
            reviews.push(child_view);
        }
    }
    // A later review has looked at the work of an earlier one again.
    reviews.sort_by_key(|review| review.start_time);
    let Some(review) = reviews.pop() else { return Ok(Vec::new()) };
    let review_name = review.run_id.as_ref().map(RunId::as_str).unwrap_or_default();
    let is_left = |finding: &&Finding| {
        finding.severity == Severity::Critical
            && (finding.status.is_open() || matches!(finding.status, FindingStatus::Blocked { .. }))
    };
    let describe = |finding: &Finding| {
        let follow_up = StoryFollowUp {
            severity: finding.severity,
            text: truncate_chars(&finding.description, MAX_FINDING_CHARS),
            place: finding.place.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        format!("{} of review {review_name} is open: {}", finding.id, follow_up.describe())
    };
    Ok(review.all_findings().filter(is_left).map(describe).collect())
}

/// The last run over a story.
struct LastRun {
    range: StoryRange,
    /// The commit that keeps its work, if it has neither landed nor a workspace.
    kept: Option<CommitId>,
    /// The run that works in its workspace, or may do so at any moment.
    worker: Option<RunId>,
}

fn read_baseline(bmad: &BmadProject, name: &StoryName) -> Option<String> {
    let story_key = tribunal_bmad::keys::StoryKey::parse(&name.key)?;
    let story_path = bmad.find_story_file(&story_key)?;
    let story_text = bmad.project_files.read_file(&story_path).ok().flatten()?;
    story::read_story(&story_path, &story_text).baseline
}

fn read_facts(project: &Project, name: &StoryName, range: &StoryRange) -> Result<StoryFacts, UserError> {
    let changed = heads::list_changes(project.root(), &range.base, range.commit.as_deref())?;
    let changed_count = u32::try_from(changed.len()).unwrap_or(u32::MAX);
    let work = WorkspaceState { changed, changed_count, ..WorkspaceState::default() };
    let read_base = |path: &str| heads::read_file_at(project.root(), &range.base, path);
    let observed = ObservedTree { root: project.root(), work, read_base: &read_base, check_commands: &[] };
    Ok(story_facts::read_facts(name, observed))
}
