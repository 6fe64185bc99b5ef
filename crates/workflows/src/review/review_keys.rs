//! The keys of a review whose meaning is read back.
//!
//! | key | what it names |
//! | --- | --- |
//! | `baseline` | the checks on the untouched project |
//! | `round-N` | a round |
//! | `round-N/freeze`, `…/review/ROLE`, `…/challenge/VOICE/BATCH` | what the round requests |
//! | `round-N/fix-M` | a fix iteration |
//! | `round-N/fix-M/fix/K`, `…/session` | one fixer, or the user's session, in it |

use alloc::format;

use crate::findings::agent_role::AgentRole;
use tribunal_engine::{ids::Key, keys::number_after};

const SESSION_SEGMENT: &str = "session";

/// The keys of a review.
pub trait ReviewKeys: Sized {
    /// The checks before the first round.
    fn for_baseline() -> Key;

    fn for_round(round: u32) -> Key;

    fn for_fix_iteration(round: u32, iteration: u32) -> Key;

    fn freeze_key(&self) -> Key;

    fn reviewer_key(&self, role: AgentRole) -> Key;

    /// The `ordinal`-th fixer of an iteration, counted from 1.
    fn fixer_key(&self, ordinal: u32) -> Key;

    /// The user's own session, in place of fixers.
    fn session_key(&self) -> Key;

    /// The round that an effect belongs to.
    fn round_number(&self) -> Option<u32>;

    /// Whether the user's session did it, not a fixer.
    fn is_session(&self) -> bool;

    /// Whether it is `round-1/fix-2` itself, not an effect within it.
    fn is_fix_iteration(&self) -> bool;

    /// The role of a reviewer's task, as its key names it.
    fn reviewer_role(&self) -> Option<AgentRole>;

    /// Returns the number of the fixer whose task it belongs to.
    fn fixer_number(&self) -> Option<u32>;
}

impl ReviewKeys for Key {
    fn for_baseline() -> Key {
        Key::new("baseline")
    }

    fn for_round(round: u32) -> Key {
        Key::new(format!("round-{round}"))
    }

    fn for_fix_iteration(round: u32, iteration: u32) -> Key {
        // Iterations are counted within their round.
        Key::for_round(round).numbered_child("fix", iteration)
    }

    fn freeze_key(&self) -> Key {
        self.child_key("freeze")
    }

    fn reviewer_key(&self, role: AgentRole) -> Key {
        // The role is unique within a round, so it can name the seat.
        self.child_key("review").child_key(role.as_str())
    }

    fn fixer_key(&self, ordinal: u32) -> Key {
        self.child_key("fix").child_key(&format!("{ordinal}"))
    }

    fn session_key(&self) -> Key {
        self.child_key(SESSION_SEGMENT)
    }

    fn round_number(&self) -> Option<u32> {
        // The round is always the first segment; other keys such as `end` have none.
        number_after(self.as_str().split('/').next()?, "round")
    }

    fn is_session(&self) -> bool {
        self.last_segment() == SESSION_SEGMENT
    }

    fn is_fix_iteration(&self) -> bool {
        number_after(self.last_segment(), "fix").is_some()
    }

    fn reviewer_role(&self) -> Option<AgentRole> {
        let mut segments = self.as_str().split('/').skip(1);
        let role_name = (segments.next()? == "review").then(|| segments.next())??;
        AgentRole::ALL.into_iter().find(|role| role.as_str() == role_name)
    }

    fn fixer_number(&self) -> Option<u32> {
        let mut segments = self.as_str().split('/').skip(1);
        // Both `fix-M` and `fix` are needed: `round-1/fix-2` alone names the iteration.
        let in_iteration = number_after(segments.next()?, "fix").is_some();
        (in_iteration && segments.next()? == "fix").then(|| segments.next()?.parse().ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back_as_they_were_built() {
        let iteration_key = Key::for_fix_iteration(2, 1);
        let fixer_key = iteration_key.fixer_key(3);
        assert_eq!(fixer_key.as_str(), "round-2/fix-1/fix/3");
        assert_eq!((fixer_key.round_number(), fixer_key.fixer_number()), (Some(2), Some(3)));
        assert!(iteration_key.is_fix_iteration() && !fixer_key.is_fix_iteration());
        assert_eq!(iteration_key.fixer_number(), None);
        assert!(fixer_key.second_try().is_second_try() && !fixer_key.is_second_try());
        assert!(fixer_key.after_wait(2).is_after_wait() && !fixer_key.wait_for_reset(2).is_after_wait());
        assert!(iteration_key.session_key().is_session() && !fixer_key.is_session());
        assert_eq!(Key::for_round(4).reviewer_key(AgentRole::Party).reviewer_role(), Some(AgentRole::Party));
        assert_eq!((Key::for_end().round_number(), fixer_key.reviewer_role()), (None, None));
    }

    #[test]
    fn everything_done_for_a_task_belongs_to_it() {
        let role_task = Key::for_round(1).reviewer_key(AgentRole::Adversarial);
        for task_part in [
            role_task.clone(),
            role_task.second_try(),
            role_task.new_session(),
            role_task.pause_key(),
            role_task.landing_key(),
            role_task.other_agent(2),
            role_task.wait_for_reset(1),
            role_task.after_wait(1),
            role_task.other_agent(1).second_try(),
        ] {
            assert_eq!(task_part.task_key(), role_task);
        }
        assert_eq!(Key::for_round(1).freeze_key().task_key(), Key::for_round(1).freeze_key());
    }
}
