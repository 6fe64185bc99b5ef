//! What was sent to an agent, and where.

use tribunal_engine::ids::Hash;
use tribunal_workflows::runs::effect::AskOutcome;

use crate::effects::PerformedEffect;

/// What an agent was sent.
pub(super) struct SentText {
    /// The masked prompt.
    pub prompt: String,
    /// Where it was sent; `None` for the default of the vendor, or if that is not known.
    pub endpoint: Option<String>,
}

/// Adds what was sent to an outcome. The prompt becomes a blob.
pub(super) fn attach_sent_text(
    mut effect_result: PerformedEffect<AskOutcome>,
    sent_text: SentText,
) -> PerformedEffect<AskOutcome> {
    let SentText { prompt, endpoint } = sent_text;
    let prompt_hash = Hash::digest_of(prompt.as_bytes());
    effect_result.blobs.push(prompt.into_bytes());
    match &mut effect_result.reply {
        AskOutcome::Answered(reply) => {
            reply.prompt = prompt_hash;
            reply.endpoint = endpoint;
        }
        AskOutcome::Failed(failed_task) => {
            failed_task.prompt = Some(prompt_hash);
            failed_task.endpoint = endpoint;
        }
        AskOutcome::Postponed(_) => {}
    }
    effect_result
}
