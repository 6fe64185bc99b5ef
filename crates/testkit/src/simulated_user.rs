//! The user of a simulated world: what is answered to the question of a run, and what a run gets that waits.

use tribunal_engine::{answer::DecisionAnswer, effect::WaitForUser};
use tribunal_workflows::runs::{
    effect::Reply,
    types::{Decision, Requests},
    user_request::UserRequest,
};

use crate::{dice::Dice, trial::EffectResult};

/// Answers the open question with any of its choices, every other time.
pub(crate) fn answer_at_random(open_decision: &mut Option<Decision>, dice: &mut Dice) -> Option<UserRequest> {
    let decision = open_decision.take_if(|_| dice.roll_percent(50))?;
    let choice = decision.choices[dice.roll(decision.choices.len())].key.as_str().to_string();
    Some(make_answer(decision, choice))
}

/// Answers the open question with the next scripted answer, if there is one.
pub(crate) fn answer_by_script(
    open_decision: &mut Option<Decision>,
    answers: &mut Vec<&'static str>,
) -> Option<UserRequest> {
    let decision = open_decision.take_if(|_| !answers.is_empty())?;
    Some(make_answer(decision, answers.remove(0).to_string()))
}

fn make_answer(decision: Decision, choice: String) -> UserRequest {
    UserRequest::Answer { decision: decision.id, answer: DecisionAnswer { choice, note: String::new() } }
}

/// Ends a wait with what the user sent, or because the run was resumed. Without either the run parks.
pub(crate) fn end_wait(wait: &WaitForUser, mut requests: Vec<UserRequest>, is_resumed: bool) -> EffectResult {
    if is_resumed {
        requests.push(UserRequest::Resume);
    }
    match requests.is_empty() {
        true => EffectResult::Park(wait.ending.clone()),
        false => EffectResult::Reply(Reply::Wait(Requests { requests })),
    }
}
