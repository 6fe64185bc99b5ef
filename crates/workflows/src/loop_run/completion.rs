//! What counts as the claim that the task is done. The claim alone ends nothing: [`super::iteration`] verifies it.

use alloc::{format, string::String};

use crate::{
    development::workspace::WorkspaceState,
    loop_run::{order::LoopOrder, state::LoopWork},
    session::promise::{AnswerTags, has_completion_word, remove_prompt_echo},
};

/// The word that some loops accept in place of a promise.
const COMPLETION_WORD: &str = "LOOP_COMPLETE";

/// Whether an iteration claims that the task is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CompletionClaim {
    None,
    Claimed,
    /// It is claimed, but the plan says otherwise.
    Contradicted {
        why: String,
    },
}

/// Finds the claim in an answer and in the files that the agent left behind.
pub(super) fn find_claim(
    order: &LoopOrder,
    answer_text: &str,
    workspace: Option<&WorkspaceState>,
    work: &LoopWork,
) -> CompletionClaim {
    let rule = &order.completion;
    let is_ticked = rule.checkbox_file.as_deref().is_some_and(|checkbox_file| {
        workspace.and_then(|state| state.checkboxes_of(checkbox_file)).is_some_and(|boxes| boxes.says_complete)
    });
    let has_promised = AnswerTags::from_answer(answer_text).has_promised(&rule.promise)
        || (rule.accepts_word && says_completion_word(answer_text, &order.prompt))
        || is_ticked;
    let Some(plan_file) = &rule.plan_file else {
        return if has_promised { CompletionClaim::Claimed } else { CompletionClaim::None };
    };
    match work.plan {
        Some(plan) if plan.is_complete() => CompletionClaim::Claimed,
        _ if !has_promised => CompletionClaim::None,
        Some(plan) => CompletionClaim::Contradicted {
            why: format!("{} of {} boxes in {plan_file} are not ticked", plan.total - plan.done, plan.total),
        },
        None => CompletionClaim::Contradicted { why: format!("{plan_file} cannot be read") },
    }
}

fn says_completion_word(answer_text: &str, prompt: &str) -> bool {
    // An agent may repeat its task, and the task may say how to declare completion.
    has_completion_word(&remove_prompt_echo(answer_text, prompt), COMPLETION_WORD)
}
