//! The retrospective at the end of an epic: an agent writes it in a workspace of its own, it lands as a commit, and later stories are
//! told what it says. Nothing depends on it: one that cannot be held is left out with a remark.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use crate::{
    development::{
        commits::{CommitOutcome, CommitWork, Integrate},
        concerns::{LandingGate, describe_concerns},
        landing::{self, LandingAttempt, RebaseAttempt},
        workspace::{CloseOutcome, CloseWorkspace, DevelopmentPlace, OpenOutcome, OpenWorkspace, OpenedWorkspace},
    },
    sprint::{
        event::SprintEvent,
        facts::{EpicLesson, FinishRetrospective, RetrospectiveOutcome, SprintFacts},
        sprint_host::SprintHost,
        state::SprintState,
    },
    stages::exit::Staged,
    tasks::{
        asking::{AgentConsultation, consult_agent},
        brief::{AgentTask, WorkspaceKind},
        client::JobKind,
        instructions::{InstructionBrief, TaskOpening},
        purpose::{ExpectedAnswer, TaskPurpose},
        selection,
    },
};
use tribunal_engine::{
    host::ParkedRun,
    ids::{CommitId, Key},
};

/// The most action items of one epic that later stories are told.
const MAX_ITEMS: usize = 12;
/// The most earlier epics that later stories are told about.
const MAX_EPICS: usize = 3;

/// A retrospective that was held.
struct Held {
    lesson: EpicLesson,
    detail: String,
}

/// Why a retrospective was not held.
enum RetroExit {
    /// The sprint goes on without it.
    Missed(String),
    Parked(ParkedRun),
}

impl From<ParkedRun> for RetroExit {
    fn from(parked: ParkedRun) -> RetroExit {
        RetroExit::Parked(parked)
    }
}

/// The epic whose retrospective is due: this sprint has done its last story, or an earlier sprint could not hold it.
pub(super) fn find_due(host: SprintHost<'_>, state: &SprintState, facts: &SprintFacts) -> Option<String> {
    host.order.retrospective.as_ref()?;
    let is_missed = |epic: &str| host.order.repeats_retrospective(epic) && !state.epics.tried.contains(epic);
    facts.finished_epics.iter().find(|epic| state.epics.worked_on.contains(*epic) || is_missed(epic)).cloned()
}

/// What the agents of a story are told about earlier epics.
pub(super) fn list_lessons(state: &SprintState, facts: &SprintFacts, key: &str) -> Vec<String> {
    let own_epic = facts.find_story(key).map(|story| story.epic.as_str()).unwrap_or_default();
    let mut lessons: Vec<&EpicLesson> = facts.lessons.iter().collect();
    for lesson in &state.epics.lessons {
        // What this sprint has just read is newer than what is in the checkout.
        lessons.retain(|known| known.epic != lesson.epic);
        lessons.push(lesson);
    }
    lessons.retain(|lesson| lesson.epic != own_epic);
    let first = lessons.len().saturating_sub(MAX_EPICS);
    let mut lines = Vec::new();
    for lesson in lessons.into_iter().skip(first) {
        lines.push(lesson.describe());
        lines.extend(lesson.action_items.iter().take(MAX_ITEMS).map(|item| format!("- {item}")));
    }
    lines
}

pub(super) async fn hold_retrospective(
    host: SprintHost<'_>,
    state: &mut SprintState,
    stage_key: &Key,
    epic: &str,
) -> Staged<()> {
    // It is tried once: the sprint does not depend on it.
    state.epics.worked_on.remove(epic);
    state.epics.tried.insert(String::from(epic));
    let (lesson, detail) = match write_and_land(host, state, stage_key, epic).await {
        Ok(Held { lesson, detail }) => (Some(lesson), detail),
        Err(RetroExit::Missed(detail)) => (None, detail),
        Err(RetroExit::Parked(parked)) => return Err(parked.into()),
    };
    state.epics.lessons.extend(lesson.clone());
    host.note_own_event(SprintEvent::SprintRetrospective { epic: String::from(epic), lesson, detail });
    Ok(())
}

async fn write_and_land(
    host: SprintHost<'_>,
    state: &mut SprintState,
    stage_key: &Key,
    epic: &str,
) -> Result<Held, RetroExit> {
    let workspace_name = format!("retrospective-{epic}");
    let open = OpenWorkspace {
        workspace: workspace_name.clone(),
        // Stories may work in the checkout; a document needs no files that only the checkout has.
        place: DevelopmentPlace::Clone,
        branch: host.order.story_branch(state.done > 0),
        scratchpad: None,
    };
    let opened = match host.perform(stage_key.child_key("workspace"), open).await? {
        OpenOutcome::Opened(opened) => opened,
        OpenOutcome::SetupFailed(result) => return Err(RetroExit::Missed(result.describe())),
        OpenOutcome::Failed { fault } => return Err(RetroExit::Missed(fault.detail)),
    };
    let turn = RetroTurn { epic, workspace_name: &workspace_name, opened };
    let held = match ask_and_land(host, state, stage_key, turn).await {
        // What was not held leaves a workspace, too.
        Err(RetroExit::Parked(parked)) => return Err(parked.into()),
        held => held,
    };
    let close = CloseWorkspace { workspace: workspace_name };
    if let CloseOutcome::Failed { fault } = host.perform(stage_key.child_key("close"), close).await? {
        host.note_warning(format!("could not remove the workspace: {}", fault.detail));
    }
    held
}

/// The epic, and where its retrospective is written.
struct RetroTurn<'a> {
    epic: &'a str,
    workspace_name: &'a str,
    opened: OpenedWorkspace,
}

async fn ask_and_land(
    host: SprintHost<'_>,
    state: &mut SprintState,
    stage_key: &Key,
    turn: RetroTurn<'_>,
) -> Result<Held, RetroExit> {
    ask_agent(host, state, stage_key, &turn).await?;
    let finish = FinishRetrospective { workspace: String::from(turn.workspace_name), epic: String::from(turn.epic) };
    let (path, lesson, is_ignored) = match host.perform(stage_key.child_key("document"), finish).await? {
        RetrospectiveOutcome::Held { path, lesson, is_ignored } => (path, lesson, is_ignored),
        RetrospectiveOutcome::Missing { .. } => {
            return Err(RetroExit::Missed(String::from("the agent wrote no document about it")));
        }
        RetrospectiveOutcome::Strayed { paths } => {
            let detail = format!("rejected: it also changed {} (only documents may change)", paths.join(", "));
            return Err(RetroExit::Missed(detail));
        }
        RetrospectiveOutcome::Failed { fault } => return Err(RetroExit::Missed(fault.detail)),
    };
    let commit_work = CommitWork {
        workspace: String::from(turn.workspace_name),
        message: format!("Retrospective of epic {}\n", turn.epic),
        run_hooks: true,
        squash: true,
        keeps_ref: false,
        tree: None,
    };
    let mut outcome = host.perform(stage_key.child_key("commit"), commit_work.clone()).await?;
    if let CommitOutcome::Rewritten { tree, .. } = outcome {
        // No check is about a document, so what a hook makes of it is committed.
        let commit_work = CommitWork { tree: Some(tree), ..commit_work };
        outcome = host.perform(stage_key.child_key("commit-rewritten"), commit_work).await?;
    }
    match outcome {
        CommitOutcome::Committed { commit } => {
            let branch = land_commit(host, stage_key, &turn, commit, state.done > 0).await?;
            Ok(Held { lesson, detail: format!("{path}, on {branch}") })
        }
        CommitOutcome::Unchanged { .. } if is_ignored => Ok(Held { lesson, detail: path }),
        CommitOutcome::Unchanged { .. } => Err(RetroExit::Missed(format!("{path} has not changed"))),
        CommitOutcome::Refused(result) => Err(RetroExit::Missed(result.describe())),
        CommitOutcome::Rewritten { paths, .. } | CommitOutcome::Edited { paths } => {
            let paths = paths.join(", ");
            Err(RetroExit::Missed(format!("these files changed while it was committed: {paths}")))
        }
        CommitOutcome::Failed { fault } => Err(RetroExit::Missed(fault.detail)),
    }
}

/// Has an agent write the document.
async fn ask_agent(
    host: SprintHost<'_>,
    state: &mut SprintState,
    stage_key: &Key,
    turn: &RetroTurn<'_>,
) -> Result<(), RetroExit> {
    let settings = host.settings();
    let job = JobKind::CreateStory;
    let first_agent = selection::agent_for_seat(settings, job, 0, 0);
    let agent = selection::stand_in(settings, job, &first_agent, &state.spent.failing);
    let purpose = TaskPurpose { job, expects: ExpectedAnswer::Turn };
    let place = WorkspaceKind::Development { workspace: String::from(turn.workspace_name) };
    let brief = build_brief(host, state, turn.epic);
    let task = AgentTask::new(agent, purpose, brief, place, host.order.story.pacing.timeout_ms);
    let task_key = stage_key.child_key("session");
    let consultation = AgentConsultation {
        task_key: &task_key,
        task,
        run_usage: &state.spent,
        parallel_tasks: 1,
        escalated_size: None,
        is_single_try: false,
    };
    let outcome = consult_agent(host.run_host(), consultation, |_| None).await?;
    let is_answered = outcome.last_content().is_some();
    outcome.record_result(host.run_host(), &mut state.spent, is_answered);
    match outcome.fault {
        Some(fault) if !is_answered => Err(RetroExit::Missed(fault.detail)),
        _ => Ok(()),
    }
}

fn build_brief(host: SprintHost<'_>, state: &SprintState, epic: &str) -> InstructionBrief {
    let opening = host.order.retrospective.as_ref().map(|opening| fill_opening(opening, epic));
    let board = host.order.story.story.board.iter();
    let mut lines = Vec::from([
        format!(
            "All stories of epic {epic} are done. Hold its retrospective and write its document, with a section `## Action Items`."
        ),
        String::from(
            "No one answers questions: do not wait for input, and take the recommended choice wherever you are asked for one.",
        ),
        String::from("Change no code and no other document. Do not commit and do not push."),
    ]);
    lines.extend(
        board.map(|board| format!("Do not change the board, {board}: the program that started you updates it.")),
    );
    InstructionBrief {
        title: format!("retrospective of epic {epic}"),
        opening: opening.map(Box::new),
        text: lines.join("\n"),
        said: state.dialog.remark_lines(),
        ..InstructionBrief::default()
    }
}

fn fill_opening(opening: &TaskOpening, epic: &str) -> TaskOpening {
    let mut filled = opening.clone();
    filled.text = filled.text.replace("{epic}", epic);
    for command in &mut filled.commands {
        command.text = command.text.replace("{epic}", epic);
    }
    filled
}

/// Moves the branch to the commit, after a rebase if it has moved meanwhile. Returns the branch.
async fn land_commit(
    host: SprintHost<'_>,
    stage_key: &Key,
    turn: &RetroTurn<'_>,
    commit: CommitId,
    branch_exists: bool,
) -> Result<String, RetroExit> {
    let (mut base, mut commit) = (turn.opened.base.clone(), commit);
    for attempt in 1..=landing::MAX_REBASES {
        let integrate = Integrate {
            workspace: String::from(turn.workspace_name),
            branch: host.order.story_branch(branch_exists),
            expected: base.clone(),
            commit: commit.clone(),
            unchanged_checks: landing::list_guarded_checks(host.settings(), false),
            verified: None,
            gate: LandingGate::default(),
            mergeable: host.order.story.list_mergeable_files(),
            only_looks: false,
        };
        let integrate_key = stage_key.numbered_child("integrate", attempt);
        let tip = match landing::move_branch(host.run_host(), integrate_key, integrate).await? {
            LandingAttempt::Landed(landed) => return Ok(landed.branch),
            LandingAttempt::Moved(tip) => tip,
            LandingAttempt::ChecksChanged(_) => {
                return Err(RetroExit::Missed(String::from("it changes what the checks run")));
            }
            LandingAttempt::Questionable(concerns) => return Err(RetroExit::Missed(describe_concerns(&concerns))),
            LandingAttempt::Failed(fault) => return Err(RetroExit::Missed(fault.detail)),
        };
        let rebase_key = stage_key.numbered_child("rebase", attempt);
        match landing::rebase_onto(host.run_host(), rebase_key, turn.workspace_name, &tip).await? {
            RebaseAttempt::Rebased(rebased) => (base, commit) = (tip, rebased),
            RebaseAttempt::Conflict(conflict) => {
                let paths = conflict.paths.join(", ");
                return Err(RetroExit::Missed(format!("it conflicts with the branch in {paths}")));
            }
            RebaseAttempt::Failed(fault) => return Err(RetroExit::Missed(fault.detail)),
        }
    }
    Err(RetroExit::Missed(landing::describe_moving_branch(&host.order.story.branch.name)))
}
