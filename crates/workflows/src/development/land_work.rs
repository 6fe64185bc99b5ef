//! Landing as every kind of run does it: the result is committed and checked, the branch moves to it or the work is rebased, and what
//! stands in the way goes back to an agent or is asked.

use alloc::{format, string::String, vec::Vec};
use core::mem;

use crate::{
    development::{
        base_scripts::run_base_scripts,
        check_scripts::{ChangedScript, describe_changed_scripts},
        checks::{CheckPlace, CheckResult, CheckSpec, ChecksOutcome, ChecksReport, FailureAction, RunChecks},
        commits::{CommitOutcome, CommitWork, Integrate, RebaseConflict},
        concerns::{ConcernLog, ConcernStep, LandingConcern, LandingGate, advise_agent, describe_concerns},
        frozen_work::{MAX_VERIFICATIONS, VerifiedWork},
        landing::{self, BranchConflict, LandedWork, LandingAttempt, RebaseAttempt},
        parking::name_files,
        performing::{DevelopingOrder, end_without_landing},
    },
    runs::{
        kind_host::KindHost,
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic},
    },
    stages::{
        exit::{StageExit, Staged},
        run::{StageState, StagedOrder},
    },
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::build_choices,
    ids::{CommitId, Key, TreeId},
    reason::RunReason,
};

/// What is asked about work that cannot land.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LandingTopic {
    /// The work cannot be rebased onto the branch.
    Conflict { paths: Vec<String> },
    /// The work changes what a check runs.
    ChecksChanged { scripts: Vec<ChangedScript> },
    /// Something about the work is questionable.
    Questionable { concerns: Vec<LandingConcern> },
}

/// Why work is not good enough to land.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    CheckFailed(CheckResult),
    FailedInClone(CloneFailure),
    HookRefused(CheckResult),
    /// Something about the work is questionable; this is what an agent is to do about it.
    Questionable {
        advice: String,
    },
}

/// A kind of run whose work lands on a branch of the user.
pub trait LandingOrder: DevelopingOrder + StagedOrder {
    /// How users call the run: `loop`, `story`.
    const RUN_WORD: &'static str;
    /// Whether the work lands as one commit, which has nothing that the result does not have.
    const LANDS_ONE_COMMIT: bool;

    fn branch_name(&self) -> &str;

    fn make_topic(topic: LandingTopic) -> WorkflowTopic;

    /// Which of these questions a topic is; `None` if it is another one.
    fn find_landing_topic(topic: &DecisionTopic) -> Option<LandingTopic>;

    fn concern_log(state: &mut Self::State) -> &mut ConcernLog;

    /// The last commit of the work, if there is any.
    fn find_kept(state: &Self::State) -> Option<&CommitId>;

    /// Remembers the last commit of the work.
    fn set_tip(state: &mut Self::State, tip: CommitId);

    /// Notes that a commit was made.
    fn note_commit(_host: KindHost<'_, Self>, _state: &Self::State, _commit: &CommitId) {}

    /// What has passed all checks, if it is what is to land.
    fn find_verified(state: &Self::State) -> Option<&VerifiedWork>;

    fn set_verified(state: &mut Self::State, verified: Option<VerifiedWork>);

    /// The checks that an agent is told to repair.
    fn failed_checks(state: &mut Self::State) -> &mut Vec<CheckResult>;

    /// Whether an agent may still repair what is questionable.
    fn may_send_back(host: KindHost<'_, Self>, state: &Self::State) -> bool;

    /// Has an agent repair work that is not good enough.
    fn send_back(host: KindHost<'_, Self>, state: &mut Self::State, refusal: Refusal) -> StageExit;

    /// Has an agent take back what the user does not want.
    fn take_back(state: &mut Self::State, wish: String);

    /// Makes the work known that the user is about to be asked about, so that it can be looked at.
    fn note_question(_host: KindHost<'_, Self>, _state: &mut Self::State) {}

    /// Takes note that the work conflicts with its branch.
    fn note_conflict(_state: &mut Self::State) {}

    /// Remembers that the user accepts the work as it is although it changes what a check runs.
    fn accept_scripts(state: &mut Self::State);

    /// Applies an answer about a conflict other than the end of the run.
    fn apply_conflict_answer(_state: &mut Self::State, _choice: ChoiceKey) {}
}

/// Commits what was verified. What a hook of the user changes in it is checked and committed instead.
pub async fn commit_result<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    stage_key: &Key,
    commit_work: CommitWork,
) -> Staged<()> {
    let mut rewritten_paths = Vec::new();
    for attempt in 1..=MAX_VERIFICATIONS {
        let tree = O::find_verified(state).map(|verified| verified.current_tree().clone());
        let commit_work = CommitWork { tree, ..commit_work.clone() };
        let commit_key =
            if attempt == 1 { stage_key.child_key("commit") } else { stage_key.numbered_child("commit", attempt) };
        match host.perform(commit_key, commit_work).await? {
            CommitOutcome::Committed { commit } => {
                O::set_tip(state, commit.clone());
                O::note_commit(host, state, &commit);
                return Ok(());
            }
            CommitOutcome::Unchanged { tip } => {
                O::set_tip(state, tip);
                return Ok(());
            }
            CommitOutcome::Refused(result) => {
                *O::failed_checks(state) = Vec::from([result.clone()]);
                return Err(O::send_back(host, state, Refusal::HookRefused(result)));
            }
            CommitOutcome::Rewritten { tree, paths } => {
                host.note_warning(format!("a commit hook changed {}", name_files(&paths)));
                check_tree(host, state, &stage_key.numbered_child("rewritten", attempt), tree).await?;
                rewritten_paths = paths;
            }
            CommitOutcome::Edited { paths } => return Err(StageExit::Edited { paths }),
            CommitOutcome::Failed { fault } => return Err(StageExit::from_fault(&fault)),
        }
    }
    let paths = name_files(&rewritten_paths);
    Err(StageExit::halt_run(
        RunReason::Blocked,
        format!(
            "a commit hook changes files every time that it runs ({paths}), so nothing can be committed; repair the hook, then resume"
        ),
    ))
}

/// Says that the user has edited files while the work was verified, and that it is verified again. After a few times in a row the run
/// waits instead.
pub fn note_edits<O: DevelopingOrder>(host: KindHost<'_, O>, edits: &mut u32, paths: &[String]) -> Staged<()> {
    *edits += 1;
    if *edits >= MAX_VERIFICATIONS {
        *edits = 0;
        return Err(StageExit::Edited { paths: paths.to_vec() });
    }
    let paths = name_files(paths);
    host.note_warning(format!("you edited {paths} while the work was verified; it is verified again with that"));
    Ok(())
}

/// Runs all checks on a content that differs from what they passed on. If one fails, the work goes back to an agent.
pub async fn check_again<O: LandingOrder>(host: KindHost<'_, O>, state: &mut O::State, checks_key: &Key) -> Staged<()> {
    // If the environment breaks them, the user resumes behind the boundary, and they must run then.
    O::set_verified(state, None);
    let (tree, report) = host.freeze_and_check(checks_key, host.settings().checks.clone()).await?;
    judge_checks(host, state, tree, &report)
}

/// Runs all checks on a frozen content.
async fn check_tree<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    checks_key: &Key,
    tree: TreeId,
) -> Staged<()> {
    O::set_verified(state, None);
    let checks = host.settings().checks.clone();
    let report = match checks.is_empty() {
        true => ChecksReport::default(),
        false => host.run_checks(checks_key.child_key("checks"), checks, &tree).await?,
    };
    judge_checks(host, state, tree, &report)
}

/// Remembers what has passed the checks, or hands the work back to an agent.
fn judge_checks<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    tree: TreeId,
    report: &ChecksReport,
) -> Staged<()> {
    for result in report.list_warnings() {
        host.note_warning(result.describe());
    }
    let failed_checks: Vec<CheckResult> = report.counting_failures().cloned().collect();
    O::failed_checks(state).clone_from(&failed_checks);
    match failed_checks.into_iter().next() {
        Some(failure) => Err(O::send_back(host, state, Refusal::CheckFailed(failure))),
        None => {
            O::set_verified(state, Some(VerifiedWork::new(tree, report.stands_alone)));
            Ok(())
        }
    }
}

/// Runs the checks in a fresh clone of the commit that is to land, unless they have passed in one: the workspace may have files that
/// they need and that git does not commit.
async fn check_fresh_clone<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    checks_key: &Key,
    commit: CommitId,
) -> Staged<()> {
    let settings = host.settings();
    let Some(verified) = O::find_verified(state).filter(|verified| !verified.in_fresh_clone).cloned() else {
        return Ok(());
    };
    let is_blocking = |check: &&CheckSpec| check.on_failure != FailureAction::Warn;
    let checks: Vec<CheckSpec> = settings.checks.iter().filter(is_blocking).cloned().collect();
    if checks.is_empty() || !settings.workspace.fresh_clone {
        return Ok(());
    }
    let place = CheckPlace::FreshClone { workspace: String::from(O::WORKSPACE_NAME), commit };
    let report = match host.perform(checks_key.clone(), RunChecks { place, checks }).await? {
        ChecksOutcome::Ran(report) => report,
        // No user works there.
        ChecksOutcome::Edited { .. } => ChecksReport::default(),
        ChecksOutcome::Failed { fault } => return Err(StageExit::from_fault(&fault)),
    };
    for remark in &report.remarks {
        host.note_warning(remark.clone());
    }
    let failed_checks: Vec<CheckResult> = report.counting_failures().cloned().collect();
    let Some(result) = failed_checks.first().cloned() else {
        let is_excused = report.has_excused;
        O::set_verified(state, Some(VerifiedWork { in_fresh_clone: true, is_excused, ..verified }));
        return Ok(());
    };
    *O::failed_checks(state) = failed_checks;
    let refusal = Refusal::FailedInClone(CloneFailure { result, extra_files: report.differences });
    Err(O::send_back(host, state, refusal))
}

/// A check that passes in the workspace, and not in a fresh clone of its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneFailure {
    pub result: CheckResult,
    /// Files of the workspace that the clone lacks.
    pub extra_files: Vec<String>,
}

impl CloneFailure {
    pub fn describe(&self) -> String {
        let place = match self.extra_files.as_slice() {
            [] => String::from("in a fresh clone of the commit, which has only what git commits"),
            files => format!(
                "in a fresh clone of the commit, which has only what git commits (only the workspace has {})",
                files.join(", ")
            ),
        };
        self.result.describe_in(&place)
    }
}

/// What came of an attempt to move the branch to work that may land.
#[derive(Debug)]
pub enum BranchMove {
    Landed(LandedWork),
    /// The branch has moved to this commit: the work has to be rebased first.
    Outdated(CommitId),
    /// Only commits on the way to the result are questionable, not the result.
    PastQuestionable,
}

/// Moves the branch to the work. What speaks against it goes back to an agent, or is asked.
pub async fn move_branch<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    attempt_key: &Key,
    integrate: Integrate,
) -> Staged<BranchMove> {
    if !integrate.only_looks {
        check_fresh_clone(host, state, &attempt_key.child_key("fresh"), integrate.commit.clone()).await?;
    }
    let mut attempt =
        landing::move_branch(host.run_host(), attempt_key.child_key("integrate"), integrate.clone()).await?;
    if let LandingAttempt::Questionable(concerns) = &attempt
        && concerns.iter().all(LandingConcern::is_note)
    {
        // The user need not decide about them; the report names them.
        let log = O::concern_log(state);
        log.accepted.extend(concerns.iter().cloned());
        let gate = LandingGate { accepted: log.accepted.clone(), ..integrate.gate.clone() };
        let noted = Integrate { gate, ..integrate.clone() };
        attempt = landing::move_branch(host.run_host(), attempt_key.child_key("noted"), noted).await?;
    }
    match attempt {
        LandingAttempt::Landed(landed) => Ok(BranchMove::Landed(landed)),
        LandingAttempt::Moved(tip) => Ok(BranchMove::Outdated(tip)),
        LandingAttempt::ChecksChanged(scripts) => {
            let tried = run_base_scripts(host, attempt_key.child_key("base-scripts"), &integrate, &scripts).await?;
            Err(ask_about_scripts(host, state, attempt_key, scripts, &tried).await)
        }
        LandingAttempt::Questionable(concerns)
            if !O::LANDS_ONE_COMMIT && concerns.iter().all(LandingConcern::is_past) =>
        {
            Ok(BranchMove::PastQuestionable)
        }
        LandingAttempt::Questionable(concerns) => {
            if O::may_send_back(host, state) && O::concern_log(state).choose_step(&concerns) == ConcernStep::TellAgent {
                let is_for_agents = |concern: &LandingConcern| !concern.is_note() && !concern.is_on_branch();
                let told: Vec<LandingConcern> = concerns.into_iter().filter(is_for_agents).collect();
                return Err(O::send_back(host, state, Refusal::Questionable { advice: advise_agent(&told) }));
            }
            Err(ask_about_concerns(host, state, attempt_key, concerns).await)
        }
        LandingAttempt::Failed(fault) => Err(StageExit::from_fault(&fault)),
    }
}

/// Rebases the work onto the branch and returns its last commit. The user is asked about a conflict.
pub async fn rebase_work<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    attempt_key: &Key,
    onto: &CommitId,
) -> Staged<CommitId> {
    let rebase_key = attempt_key.child_key("rebase");
    match landing::rebase_onto(host.run_host(), rebase_key, O::WORKSPACE_NAME, onto).await? {
        RebaseAttempt::Rebased(commit) => Ok(commit),
        RebaseAttempt::Conflict(conflict) => {
            O::note_question(host, state);
            let commit = O::find_kept(state).unwrap_or(onto).clone();
            Err(ask_about_conflict(host, state, attempt_key, &commit, &conflict).await)
        }
        RebaseAttempt::Failed(fault) => Err(StageExit::from_fault(&fault)),
    }
}

/// Applies the answer to a question about work that cannot land.
pub fn apply_landing_answer<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    topic: LandingTopic,
    choice: ChoiceKey,
) -> Staged<()> {
    match (topic, choice) {
        (_, ChoiceKey::Keep) => return Err(end_without_landing(host.order.branch_name(), O::find_kept(state))),
        (LandingTopic::ChecksChanged { .. }, ChoiceKey::Approve) => O::accept_scripts(state),
        (LandingTopic::ChecksChanged { scripts }, _) => {
            let described = describe_changed_scripts(&scripts);
            O::take_back(state, format!("the user wants this change undone: {described}"));
        }
        (LandingTopic::Questionable { concerns }, ChoiceKey::Approve) => {
            O::concern_log(state).accepted.extend(concerns);
        }
        // The next attempt finds what the user has done.
        (LandingTopic::Questionable { .. }, ChoiceKey::Retry) => {}
        (LandingTopic::Questionable { mut concerns }, _) => {
            concerns.retain(|concern| !concern.is_on_branch());
            let described = describe_concerns(&concerns);
            O::take_back(state, format!("the user wants this taken back: {described}"));
        }
        (LandingTopic::Conflict { .. }, choice) => O::apply_conflict_answer(state, choice),
    }
    Ok(())
}

/// Asks about changed scripts. `tried` says what the check says with the scripts of the branch.
async fn ask_about_scripts<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    attempt_key: &Key,
    scripts: Vec<ChangedScript>,
    tried: &[String],
) -> StageExit {
    for line in tried {
        host.note_warning(line.clone());
    }
    let mut summary = format!("the work changes {}", describe_changed_scripts(&scripts));
    if !tried.is_empty() {
        summary = format!("{summary}; {}", tried.join("; "));
    }
    let choices = [
        (ChoiceKey::Approve, "the change is right: land the work"),
        (ChoiceKey::Reject, "the next agent is told to undo that change"),
    ];
    let question = LandingQuestion { text: summary.clone(), summary, choices: &choices };
    O::note_question(host, state);
    ask_once(host, state, attempt_key, LandingTopic::ChecksChanged { scripts }, question).await
}

async fn ask_about_concerns<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    attempt_key: &Key,
    concerns: Vec<LandingConcern>,
) -> StageExit {
    let asked: Vec<LandingConcern> = concerns.iter().filter(|concern| !concern.is_note()).cloned().collect();
    let summary = describe_concerns(&asked);
    let approve = (ChoiceKey::Approve, "that is right: land the work");
    let reject = (ChoiceKey::Reject, "the next agent is told to take that back");
    let retry = (ChoiceKey::Retry, "look again, after you took it off the branch");
    let choices: &[(ChoiceKey, &str)] = match asked.iter().filter(|concern| concern.is_on_branch()).count() {
        0 => &[approve, reject],
        count if count == asked.len() => &[approve, retry],
        _ => &[approve, reject, retry],
    };
    let question = LandingQuestion { text: summary.clone(), summary, choices };
    O::note_question(host, state);
    ask_once(host, state, attempt_key, LandingTopic::Questionable { concerns }, question).await
}

/// Asks what to do about work that conflicts with its branch. `commit` is the last one of the work.
pub async fn ask_about_conflict<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    attempt_key: &Key,
    commit: &CommitId,
    conflict: &RebaseConflict,
) -> StageExit {
    O::note_conflict(state);
    let topic = LandingTopic::Conflict { paths: conflict.paths.clone() };
    let is_asked_again = state.parts().dialog.decisions.iter().any(|decision| is_same::<O>(&decision.about, &topic));
    let conflict = BranchConflict { branch_name: host.order.branch_name(), commit, conflict };
    let summary = conflict.summarize(O::RUN_WORD, is_asked_again);
    let text = match conflict.describe_sides() {
        sides_text if sides_text.is_empty() => summary.clone(),
        sides_text => format!("{summary}.{sides_text}"),
    };
    // A merge by hand is found on the branch by the next attempt; a solution in the workspace could not be told from the work.
    let hand_text = conflict.describe_solution();
    let choices = [
        (ChoiceKey::Hand, hand_text.as_str()),
        (ChoiceKey::Retry, "try to rebase once more (after you changed the branch)"),
    ];
    ask_once(host, state, attempt_key, topic, LandingQuestion { summary, text, choices: &choices }).await
}

struct LandingQuestion<'a> {
    /// What the ending of the run says.
    summary: String,
    text: String,
    /// The choices besides the end of the run.
    choices: &'a [(ChoiceKey, &'a str)],
}

/// Asks, unless that is asked already.
async fn ask_once<O: LandingOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    attempt_key: &Key,
    topic: LandingTopic,
    question: LandingQuestion<'_>,
) -> StageExit {
    let LandingQuestion { summary, text, choices } = question;
    let dialog = state.parts().dialog;
    if !dialog.open_decisions().any(|decision| is_same::<O>(&decision.about, &topic)) {
        let end_text = format!("end the {}; its commits stay under refs/tribunal/work", O::RUN_WORD);
        let end_choice = (ChoiceKey::Keep, end_text.as_str());
        let decision = Decision {
            id: dialog.next_decision_id(),
            about: DecisionTopic::Workflow(O::make_topic(topic)),
            owner: String::from("the user of this repository"),
            question: text,
            choices: build_choices(&[choices, &[end_choice]].concat()),
            answer: None,
        };
        if let Err(parked) = dialog.post_decision(host.run_host(), &attempt_key.child_key("ask"), decision).await {
            return parked.into();
        }
    }
    StageExit::halt_run(RunReason::Blocked, summary)
}

/// Whether a question is about the same thing, though perhaps about other files.
fn is_same<O: LandingOrder>(about: &DecisionTopic, topic: &LandingTopic) -> bool {
    O::find_landing_topic(about).is_some_and(|known| mem::discriminant(&known) == mem::discriminant(topic))
}
