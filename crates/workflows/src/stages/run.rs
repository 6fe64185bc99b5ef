//! The loop over the stages of a run, and its wait for the user. What a stage does is up to the kind of run.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::parking::name_files,
    runs::{
        kind_host::KindHost,
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic, UserDialog},
        user_request::UserRequest,
    },
    stages::exit::{StageExit, Staged},
    workflows::Workflow,
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::DecisionChoice,
    dialog::user_dialog,
    host::{ParkedRun, cross_boundary},
    ids::Key,
    limits::{RemainingLimits, RunUsage},
    reason::{RunEnding, RunOutcome, RunReason},
};

/// What the state of every run that works in stages has.
pub trait StageState {
    fn parts(&mut self) -> StageParts<'_>;
}

pub struct StageParts<'s> {
    /// The ending that waits for the user.
    pub waiting: &'s mut Option<RunEnding>,
    pub dialog: &'s mut UserDialog,
    pub spent: &'s mut RunUsage,
}

/// A question to the user of a run that has halted.
pub struct HaltQuestion {
    pub topic: WorkflowTopic,
    pub owner: &'static str,
    pub question: String,
    pub choices: Vec<DecisionChoice>,
}

/// What the user sent to a run that waited.
pub struct UserNews {
    pub requests: Vec<UserRequest>,
    /// Whether a question was answered.
    pub is_answered: bool,
}

impl UserNews {
    pub fn is_resumed(&self) -> bool {
        self.requests.contains(&UserRequest::Resume)
    }

    /// Whether the user has answered a child run.
    pub fn is_child_answered(&self) -> bool {
        self.requests.iter().any(|request| matches!(request, UserRequest::ContinueChild { .. }))
    }
}

/// A run that works in stages.
pub trait StagedOrder: Workflow<State: StageState> + Sized {
    /// Names the next stage, by a number where there may be several of its kind.
    fn stage_key(&self, state: &mut Self::State) -> Key;

    async fn run_stage(host: KindHost<'_, Self>, state: &mut Self::State, stage_key: &Key) -> Staged<()>;

    /// Settles what depends on settings that may have been read again, before a boundary. Within a stage that would change what a
    /// resumed run requests.
    fn settle_stage(_host: KindHost<'_, Self>, _state: &mut Self::State) {}

    /// Has the work verified anew, because the user has edited these files of the checkout meanwhile.
    fn verify_again(_host: KindHost<'_, Self>, _state: &mut Self::State, paths: &[String]) -> Staged<()> {
        Err(StageExit::Edited { paths: paths.to_vec() })
    }

    /// Makes sure that the work of a run that halts can be looked at and is not lost.
    async fn keep_work(
        _host: KindHost<'_, Self>,
        _state: &mut Self::State,
        _halt_key: &Key,
        _ending: &RunEnding,
    ) -> Result<(), ParkedRun> {
        Ok(())
    }

    /// What is left of the limits.
    fn count_remaining(host: KindHost<'_, Self>, state: &mut Self::State) -> RemainingLimits {
        RemainingLimits::calculate(&host.settings().limits, state.parts().spent, host.last_timestamp().awake_ms)
    }

    /// What a run that halts asks; `None` if the ending says by itself what to do, or if it is asked already.
    fn find_question(host: KindHost<'_, Self>, state: &Self::State, ending: &RunEnding) -> Option<HaltQuestion>;

    /// Applies what the user sent: by default remarks, and answers with [`apply_answer`](StagedOrder::apply_answer).
    fn apply_request(host: KindHost<'_, Self>, state: &mut Self::State, request: UserRequest) -> Staged<()> {
        match state.parts().dialog.take_request(host.run_host(), request) {
            Some(answered) => Self::apply_answer(host, state, &answered.topic, answered.choice),
            None => Ok(()),
        }
    }

    fn apply_answer(
        host: KindHost<'_, Self>,
        state: &mut Self::State,
        topic: &DecisionTopic,
        choice: ChoiceKey,
    ) -> Staged<()>;

    /// Whether a run that waited goes on after this. A remark alone does not lift a limit.
    fn can_continue(_state: &Self::State, news: &UserNews) -> bool {
        news.is_answered || news.is_resumed()
    }

    /// Prepares a run that waited with this ending to go on.
    fn continue_run(_state: &mut Self::State, _ending: &RunEnding, _news: &UserNews) {}

    /// Closes what a run has in hand that the user has ended.
    async fn close_abandoned(
        _host: KindHost<'_, Self>,
        _state: &mut Self::State,
        _stage_key: &Key,
    ) -> Result<(), ParkedRun> {
        Ok(())
    }
}

/// Runs stage after stage to the end of the run. A boundary follows every stage, so that a resumed run repeats at most one of them.
pub async fn run_stages<O: StagedOrder>(host: KindHost<'_, O>, mut state: O::State) -> Result<RunEnding, ParkedRun> {
    loop {
        let stage_key = name_stage(host, &mut state);
        let left = match run_one_stage(host, &mut state, &stage_key).await {
            Err(StageExit::Edited { paths }) => O::verify_again(host, &mut state, &paths),
            left => left,
        };
        match left {
            Ok(()) | Err(StageExit::Next) => {}
            // The work was not verified again, so the user has to say when it can be.
            Err(StageExit::Edited { paths }) => {
                begin_wait(host, &mut state, &stage_key, describe_edits(&paths)).await?;
            }
            Err(StageExit::Ended(ending)) => return Ok(ending),
            Err(StageExit::Abandoned(ending)) => {
                O::close_abandoned(host, &mut state, &stage_key).await?;
                return Ok(ending);
            }
            Err(StageExit::Halted(ending)) => begin_wait(host, &mut state, &stage_key, ending).await?,
            Err(StageExit::Parked(parked)) => return Err(parked),
        }
        O::settle_stage(host, &mut state);
        cross_boundary(host.run_host(), stage_key, &state).await?;
    }
}

fn describe_edits(paths: &[String]) -> RunEnding {
    let paths = name_files(paths);
    let detail =
        format!("these files change again and again while the work is verified: {paths}; resume when they are done");
    RunEnding::new(RunReason::CheckoutNotReady, detail)
}

fn name_stage<O: StagedOrder>(host: KindHost<'_, O>, state: &mut O::State) -> Key {
    let parts = state.parts();
    if parts.waiting.is_some() {
        return Key::for_user_wait();
    }
    if parts.dialog.has_edits_to_restore() {
        return Key::new("restore");
    }
    host.order.stage_key(state)
}

async fn run_one_stage<O: StagedOrder>(host: KindHost<'_, O>, state: &mut O::State, stage_key: &Key) -> Staged<()> {
    let parts = state.parts();
    if let Some(ending) = parts.waiting.take() {
        return wait_for_user(host, state, ending).await;
    }
    // The user's files come first: a landing would otherwise find the stray edits in its way.
    if parts.dialog.has_edits_to_restore() {
        return Ok(parts.dialog.restore_strays(host.run_host()).await?);
    }
    O::run_stage(host, state, stage_key).await
}

/// Prepares the wait for the user: keeps what there is, asks how to go on, and tells the user.
async fn begin_wait<O: StagedOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    stage_key: &Key,
    mut ending: RunEnding,
) -> Result<(), ParkedRun> {
    let halt_key = stage_key.child_key("halt");
    O::keep_work(host, state, &halt_key, &ending).await?;
    if ending.reason.outcome() == Some(RunOutcome::Halted) {
        ending.left = Some(O::count_remaining(host, state));
    }
    if let Some(question) = O::find_question(host, state, &ending) {
        let HaltQuestion { topic, owner, question, choices } = question;
        let dialog = state.parts().dialog;
        let decision = Decision {
            id: dialog.next_decision_id(),
            about: DecisionTopic::Workflow(topic),
            owner: String::from(owner),
            question,
            choices,
            answer: None,
        };
        dialog.post_decision(host.run_host(), &halt_key.child_key("ask"), decision).await?;
    }
    host.notify_user(halt_key.child_key("notify"), &ending.detail).await?;
    *state.parts().waiting = Some(ending);
    Ok(())
}

/// Parks the run until the user sends something that lets it go on.
async fn wait_for_user<O: StagedOrder>(host: KindHost<'_, O>, state: &mut O::State, ending: RunEnding) -> Staged<()> {
    let requests = user_dialog::wait_for_user(host.run_host(), ending.clone()).await?;
    let open_count = state.parts().dialog.open_decisions().count();
    apply_requests(host, state, requests.clone())?;
    let is_answered = state.parts().dialog.open_decisions().count() < open_count;
    let news = UserNews { requests, is_answered };
    if !O::can_continue(state, &news) {
        *state.parts().waiting = Some(ending);
        return Ok(());
    }
    if ending.reason == RunReason::Environment {
        // The user has repaired something, so every agent may be tried again.
        state.parts().spent.failing.clear();
    }
    O::continue_run(state, &ending, &news);
    Ok(())
}

/// Applies what the user sent since the last time.
pub async fn hear_user<O: StagedOrder>(host: KindHost<'_, O>, state: &mut O::State, stage_key: &Key) -> Staged<()> {
    let requests = user_dialog::read_inbox(host.run_host(), stage_key).await?;
    apply_requests(host, state, requests)
}

pub fn apply_requests<O: StagedOrder>(
    host: KindHost<'_, O>,
    state: &mut O::State,
    requests: Vec<UserRequest>,
) -> Staged<()> {
    requests.into_iter().try_for_each(|request| O::apply_request(host, state, request))
}

/// Halts a run whose agents have changed files outside their workspace, until the user has said what is to become of them.
pub fn stop_for_strays(dialog: &UserDialog) -> Staged<()> {
    match dialog.describe_unanswered_strays() {
        Some(description) => Err(StageExit::halt_run(RunReason::Blocked, description)),
        None => Ok(()),
    }
}
