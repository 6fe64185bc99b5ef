//! The dialog of a run with its user: the questions it has asked, the answers, and the remarks of the user. A workflow keeps it
//! in its state; the kind of run adds only what its own answers mean.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    answer::{ChoiceKey, DecisionAnswer},
    decision::{Decision, DecisionTopic},
    dialog::stray_edits::StrayEdits,
    effect::{PostDecision, PostOutcome, ReadInbox, WaitForUser},
    effect_set::EffectSet,
    event::RunEvent,
    host::{Host, ParkedRun},
    ids::{DecisionId, Key},
    reason::RunEnding,
    run_types::{AnyRequest, RunTypes},
    text::truncate_chars,
    user_remark::{DialogRequest, UserRemark},
};

/// The most characters that the remarks of the user take in a brief.
const MAX_REMARK_CHARS: usize = 4_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "", rename = "UserDialog")]
pub struct UserDialog<T: RunTypes> {
    pub decisions: Vec<Decision<T>>,
    /// Remarks of the user, for the next briefs.
    pub said: Vec<UserRemark>,
    /// What changed in the project while agents were at work, and not by a landing.
    #[serde(default, skip_serializing_if = "StrayEdits::is_empty")]
    pub strays: StrayEdits,
}

/// An answer of the user that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedAnswer<T: RunTypes> {
    /// What was asked.
    pub topic: DecisionTopic<T>,
    pub choice: ChoiceKey,
}

impl<T: EffectSet> UserDialog<T> {
    /// The id of the next question to the user.
    pub fn next_decision_id(&self) -> DecisionId {
        // Decisions are never removed, so the count gives a new id.
        DecisionId::new(format!("D{}", self.decisions.len() + 1))
    }

    pub fn open_decisions(&self) -> impl Iterator<Item = &Decision<T>> {
        self.decisions.iter().filter(|decision| decision.answer.is_none())
    }

    /// Posts a question to the user and remembers it; does not wait.
    pub async fn post_decision(
        &mut self,
        host: &(dyn Host<T> + '_),
        effect_key: &Key,
        decision: Decision<T>,
    ) -> Result<(), ParkedRun> {
        host.note_event(RunEvent::DecisionPosted { decision: decision.clone() });
        self.decisions.push(decision.clone());
        let decision_id = decision.id.clone();
        if let PostOutcome::Failed { fault } = host.perform(effect_key.clone(), PostDecision { decision }).await? {
            // The file is only a convenience: the decision can still be answered by its id.
            host.note_event(RunEvent::Warned { text: format!("could not write the file for {decision_id}: {fault}") });
        }
        Ok(())
    }

    /// Records the user's answer to an open decision. Returns what it was about; `None` if the answer does not count.
    pub fn record_answer(
        &mut self,
        host: &(dyn Host<T> + '_),
        decision_id: &DecisionId,
        user_answer: &DecisionAnswer,
    ) -> Option<DecisionTopic<T>> {
        // An answer counts only for an open decision that offers it; a second answer must not undo the first.
        let open_decision = self.decisions.iter_mut().find(|candidate| {
            candidate.id == *decision_id && candidate.answer.is_none() && candidate.offers_choice(&user_answer.choice)
        });
        let Some(decision) = open_decision else {
            let warning =
                format!("ignored the answer `{}` to {decision_id}: no open decision offers it", user_answer.choice);
            host.note_event(RunEvent::Warned { text: warning });
            return None;
        };
        decision.answer = Some(user_answer.clone());
        let topic = decision.about.clone();
        if let DecisionTopic::Strayed { strays } = &topic {
            self.strays.record_answer(strays.clone(), user_answer.choice_key() == Some(ChoiceKey::Restore));
        }
        host.note_event(RunEvent::DecisionAnswered { decision: decision_id.clone(), answer: user_answer.clone() });
        if !user_answer.note.is_empty() {
            // The note of an answer is for agents, too: it often says how to go on.
            self.remember_remark(host, UserRemark::new(user_answer.note.clone()));
        }
        Some(topic)
    }

    /// Takes in a remark or an answer; all other requests are up to the kind of run. Returns the answer if it counts.
    pub fn take_request(&mut self, host: &(dyn Host<T> + '_), request: T::Request) -> Option<CountedAnswer<T>> {
        match request.into_dialog().ok()? {
            DialogRequest::Say(remark) => {
                self.remember_remark(host, remark);
                None
            }
            DialogRequest::Answer { decision, answer } => {
                let topic = self.record_answer(host, &decision, &answer)?;
                Some(CountedAnswer { topic, choice: answer.choice_key()? })
            }
        }
    }

    /// Withdraws the open questions that `is_settled` selects.
    pub fn withdraw_decisions(
        &mut self,
        host: &(dyn Host<T> + '_),
        note: &str,
        is_settled: impl Fn(&DecisionTopic<T>) -> bool,
    ) {
        for decision in self.decisions.iter_mut().filter(|decision| decision.answer.is_none()) {
            if is_settled(&decision.about) {
                let withdrawal = DecisionAnswer::new_withdrawn(note);
                decision.answer = Some(withdrawal.clone());
                host.note_event(RunEvent::DecisionAnswered { decision: decision.id.clone(), answer: withdrawal });
            }
        }
    }

    /// Remembers a remark for all later briefs. Their room is limited, so the oldest remarks are dropped.
    pub fn remember_remark(&mut self, host: &(dyn Host<T> + '_), remark: UserRemark) {
        // A remark in a tracker may be read more than once.
        if self.said.contains(&remark) {
            return;
        }
        self.said.push(remark);
        let total_chars =
            |remarks: &[UserRemark]| remarks.iter().map(|remark| remark.text.chars().count()).sum::<usize>();
        // The newest remark always stays, however long it is.
        while self.said.len() > 1 && total_chars(&self.said) > MAX_REMARK_CHARS {
            let oldest_remark = self.said.remove(0);
            let warning = format!(
                "your remarks are too long for a prompt; dropped the oldest: {}",
                truncate_chars(&oldest_remark.text, 80)
            );
            host.note_event(RunEvent::Warned { text: warning });
        }
    }

    /// Returns the user's remarks as briefs contain them.
    pub fn remark_lines(&self) -> Vec<String> {
        self.said.iter().map(|remark| format!("{remark}")).collect()
    }
}

/// Reads what the user sent since the last time.
pub async fn read_inbox<T: EffectSet>(
    host: &(dyn Host<T> + '_),
    parent_key: &Key,
) -> Result<Vec<T::Request>, ParkedRun> {
    Ok(host.perform(parent_key.child_key("inbox"), ReadInbox {}).await?.requests)
}

/// Parks with this ending until the user sends something.
pub async fn wait_for_user<T: EffectSet>(
    host: &(dyn Host<T> + '_),
    ending: RunEnding,
) -> Result<Vec<T::Request>, ParkedRun> {
    Ok(host.perform(Key::for_user_wait(), WaitForUser { ending }).await?.requests)
}
