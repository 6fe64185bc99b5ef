//! A story that works in the user's checkout makes room there while it waits for the user, and takes its work back when it continues.
//!
//! Work in a private clone stays where it is.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        land_work::{LandingOrder, LandingTopic},
        parking::{ParkMode, ParkOutcome, ParkWork, name_files},
        workspace::DevelopmentPlace,
    },
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic},
    },
    stages::exit::{StageExit, Staged},
    story::{
        facts::{RestoreBoard, StoryWriting},
        order::{StoryOrder, StoryTopic},
        review_cycle,
        state::{StoryState, StoryStep},
        story_host::{StoryHost, WORKSPACE_NAME},
    },
};
use tribunal_engine::{answer::ChoiceKey, decision::build_choices, host::ParkedRun, ids::Key, reason::RunReason};

/// How parked work came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReturnedWork {
    /// The work is what it was.
    Unchanged,
    /// The work follows another commit now, so checks that passed before do not hold for it.
    Rebased,
}

/// Commits what there is, so that it can be looked at, and takes it out of the user's checkout. What fails is only a warning: it must
/// not hide why the story halted, and the work is still where it was.
pub(super) async fn put_work_aside(
    host: StoryHost<'_>,
    state: &mut StoryState,
    halt_key: &Key,
) -> Result<(), ParkedRun> {
    // While the work is parked, a commit would be one of the checkout without it.
    if state.step <= StoryStep::Baseline || state.has_parked_work() {
        return Ok(());
    }
    let is_in_place = host.order.place == DevelopmentPlace::InPlace;
    // Other stories move their lines on the board meanwhile, and the line of this one is written when it lands. Without the board there
    // is less that the work can conflict with when it comes back.
    if is_in_place {
        let restore = RestoreBoard { workspace: String::from(WORKSPACE_NAME), story: host.order.story.clone() };
        if let StoryWriting::Failed { fault } = host.perform(halt_key.child_key("board"), restore).await? {
            host.note_warning(format!("could not restore the board: {}", fault.detail));
        }
    }
    if let Some(fault) = review_cycle::try_keep_work(host, state, halt_key.child_key("keep"), None).await? {
        host.note_warning(format!("could not commit the work: {}", fault.detail));
        return Ok(());
    }
    if !is_in_place {
        return Ok(());
    }
    let park = ParkWork { workspace: String::from(WORKSPACE_NAME), mode: ParkMode::Park };
    match host.perform(halt_key.child_key("park"), park).await? {
        ParkOutcome::Parked { left, .. } => {
            if let Some(work) = &mut state.work {
                work.is_parked = true;
            }
            if !left.is_empty() {
                let left_text = name_files(&left);
                host.note_warning(format!("the work is parked; these files stay in your checkout: {left_text}"));
            }
        }
        ParkOutcome::InTheWay { paths } | ParkOutcome::Conflict { paths } => host.note_warning(format!(
            "the work stays in your checkout, because these files were changed there meanwhile: {}",
            name_files(&paths)
        )),
        ParkOutcome::Failed { fault } => {
            host.note_warning(format!("could not take the work out of your checkout: {}", fault.detail));
        }
        // The request was another one.
        ParkOutcome::Returned { .. } => {}
    }
    Ok(())
}

/// Puts parked work into the checkout again. If the user worked by hand, the user's version takes its place.
pub(super) async fn take_work_back(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
) -> Staged<ReturnedWork> {
    if !state.has_parked_work() {
        return Ok(ReturnedWork::Unchanged);
    }
    let mode = if state.attempts.by_hand { ParkMode::TakeCheckout } else { ParkMode::Return };
    let park = ParkWork { workspace: String::from(WORKSPACE_NAME), mode };
    match host.perform(stage_key.child_key("return"), park).await? {
        ParkOutcome::Returned { base, commit } => {
            let Some(work) = &mut state.work else { return Ok(ReturnedWork::Unchanged) };
            let is_rebased = work.base != base;
            work.is_parked = false;
            // The board is that of the branch now, and the user may have edited what came back.
            work.proof.verified = None;
            (work.base, work.tip) = (base, commit);
            Ok(if is_rebased { ReturnedWork::Rebased } else { ReturnedWork::Unchanged })
        }
        ParkOutcome::InTheWay { paths } => {
            let detail = format!(
                "files in your checkout are in the way of the parked work: {}; commit, move or stash them (`git stash -u`), then resume",
                name_files(&paths)
            );
            Err(StageExit::halt_run(RunReason::CheckoutNotReady, detail))
        }
        ParkOutcome::Conflict { paths } => Err(ask_about_conflict(host, state, stage_key, paths).await),
        ParkOutcome::Failed { fault } => Err(StageExit::from_fault(&fault)),
        // The request was another one.
        ParkOutcome::Parked { .. } => Ok(ReturnedWork::Unchanged),
    }
}

/// Asks what to do about parked work that conflicts with its branch, unless that is asked already.
async fn ask_about_conflict(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
    paths: Vec<String>,
) -> StageExit {
    let branch_name = &host.order.branch.name;
    let detail = format!(
        "{branch_name} has moved, and the parked work of the story conflicts with it in {}",
        name_files(&paths)
    );
    if !state.dialog.open_decisions().any(|decision| is_conflict(&decision.about)) {
        let by_hand = describe_work_by_hand(state);
        let decision = Decision {
            id: state.dialog.next_decision_id(),
            about: DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryConflict { paths })),
            owner: String::from("the user of this repository"),
            question: detail.clone(),
            choices: build_choices(&[
                (ChoiceKey::Hand, by_hand.as_str()),
                (ChoiceKey::Retry, "try once more to put the work back (after you changed the branch)"),
                (ChoiceKey::Keep, "end the story; its commits stay under refs/tribunal/work"),
            ]),
            answer: None,
        };
        let ask_key = stage_key.child_key("ask");
        if let Err(parked) = state.dialog.post_decision(host.run_host(), &ask_key, decision).await {
            return parked.into();
        }
    }
    StageExit::halt_run(RunReason::Blocked, detail)
}

fn is_conflict(topic: &DecisionTopic) -> bool {
    matches!(StoryOrder::find_landing_topic(topic), Some(LandingTopic::Conflict { .. }))
}

/// Says how the user can work on the story by hand.
pub(super) fn describe_work_by_hand(state: &StoryState) -> String {
    let workspace_path = state.work.as_ref().map(|work| work.path.as_str()).unwrap_or_default();
    match &state.work {
        Some(work) if work.is_parked && work.tip != work.base => format!(
            "fix it by hand in {workspace_path}: get the work with `git merge --squash {}`, unstage it with `git reset`, edit it and \
             commit nothing, then answer this: what is not committed there is verified as the work",
            work.tip.short_hex()
        ),
        Some(work) if work.is_parked => format!(
            "do it by hand in {workspace_path} and commit nothing, then answer this: what is not committed there is verified as the \
             work"
        ),
        _ => format!("fix it by hand in {workspace_path}, then answer this: the work is verified again"),
    }
}
