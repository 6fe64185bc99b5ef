//! The keys of effects whose meaning is read back: they are built here and parsed here.
//!
//! A key is a path of names, for instance `round-2/fix-1/fix/3/again`. Code that needs to know what a key belongs to (reports,
//! landings) uses the readers below, never its text. A name that is never read back (`inbox`, `tracker`, `ask-F3`) is given
//! where the effect is requested, with [`Key::child_key`].
//!
//! | key | what it names |
//! | --- | --- |
//! | `round-N` | a round of a review |
//! | `round-N/freeze`, `…/review/ROLE`, `…/challenge/VOICE/BATCH` | what the round requests |
//! | `round-N/fix-M` | a fix iteration |
//! | `round-N/fix-M/fix/K`, `…/session` | one fixer, or the user's session, in it |
//! | `TASK/again`, `anew`, `other-K`, `then-K` | another attempt at the same task |
//! | `TASK/pause`, `wait-K`, `land` | what is done for a task |

use alloc::format;

use crate::{engine::ids::Key, review::level::AgentRole};

const SECOND_TRY: &str = "again";
const NEW_SESSION: &str = "anew";
const PAUSE_SEGMENT: &str = "pause";
const LAND_SEGMENT: &str = "land";
const SESSION_SEGMENT: &str = "session";

impl Key {
    pub fn for_round(round: u32) -> Key {
        Key::new(format!("round-{round}"))
    }

    pub fn for_fix_iteration(round: u32, iteration: u32) -> Key {
        // Iterations are counted within their round.
        Key::for_round(round).numbered_child("fix", iteration)
    }

    /// The end of a run: what is written and asked then.
    pub fn for_end() -> Key {
        Key::new("end")
    }

    /// Waiting for the user between two stages.
    pub fn for_user_wait() -> Key {
        Key::new("wait")
    }

    /// The `ordinal`-th file that is restored.
    pub fn for_restore(ordinal: u32) -> Key {
        Key::new(format!("restore-{ordinal}"))
    }

    pub fn freeze_key(&self) -> Key {
        self.child_key("freeze")
    }

    pub fn reviewer_key(&self, role: AgentRole) -> Key {
        // The role is unique within a round, so it can name the seat.
        self.child_key("review").child_key(role.as_str())
    }

    /// The `ordinal`-th fixer of an iteration, counted from 1.
    pub fn fixer_key(&self, ordinal: u32) -> Key {
        self.child_key("fix").child_key(&format!("{ordinal}"))
    }

    /// The user's own session, in place of fixers.
    pub fn session_key(&self) -> Key {
        self.child_key(SESSION_SEGMENT)
    }

    pub fn landing_key(&self) -> Key {
        self.child_key(LAND_SEGMENT)
    }

    /// The one second attempt at a task.
    pub fn second_try(&self) -> Key {
        self.child_key(SECOND_TRY)
    }

    /// The same task in a new session.
    pub fn new_session(&self) -> Key {
        self.child_key(NEW_SESSION)
    }

    /// The pause before the second attempt.
    pub fn pause_key(&self) -> Key {
        self.child_key(PAUSE_SEGMENT)
    }

    /// The task given to the `ordinal`-th other agent.
    pub fn other_agent(&self, ordinal: u32) -> Key {
        self.numbered_child("other", ordinal)
    }

    /// The `ordinal`-th wait for a usage limit.
    pub fn wait_for_reset(&self, ordinal: u32) -> Key {
        self.numbered_child("wait", ordinal)
    }

    /// The task after the `ordinal`-th wait for a usage limit.
    pub fn after_wait(&self, ordinal: u32) -> Key {
        self.numbered_child("then", ordinal)
    }

    fn numbered_child(&self, prefix: &str, ordinal: u32) -> Key {
        self.child_key(&format!("{prefix}-{ordinal}"))
    }

    fn last_segment(&self) -> &str {
        // A key is never empty, and `rsplit` returns at least one part.
        self.as_str().rsplit('/').next().unwrap_or_default()
    }

    /// The round that an effect belongs to.
    pub fn round_number(&self) -> Option<u32> {
        // The round is always the first segment; other keys such as `end` have none.
        number_after(self.as_str().split('/').next()?, "round")
    }

    pub fn is_second_try(&self) -> bool {
        self.last_segment() == SECOND_TRY
    }

    pub fn is_after_wait(&self) -> bool {
        number_after(self.last_segment(), "then").is_some()
    }

    /// Whether the user's session did it, not a fixer.
    pub fn is_session(&self) -> bool {
        self.last_segment() == SESSION_SEGMENT
    }

    /// Whether it is `round-1/fix-2` itself, not an effect within it.
    pub fn is_fix_iteration(&self) -> bool {
        number_after(self.last_segment(), "fix").is_some()
    }

    /// Returns the task that an effect belongs to: other attempts, pauses, waits and landings belong to what precedes them.
    pub fn task_key(&self) -> Key {
        let mut task_path = self.as_str();
        // Suffixes can be nested, for instance `other-1/again`.
        while let Some((parent_path, segment)) = task_path.rsplit_once('/')
            && belongs_to_task(segment)
        {
            task_path = parent_path;
        }
        Key::new(task_path)
    }

    /// The role of a reviewer's task, as its key names it.
    pub fn reviewer_role(&self) -> Option<&str> {
        let mut segments = self.as_str().split('/').skip(1);
        (segments.next()? == "review").then(|| segments.next())?
    }

    /// Returns the number of the fixer whose task it belongs to.
    pub fn fixer_number(&self) -> Option<u32> {
        let mut segments = self.as_str().split('/').skip(1);
        // Both `fix-M` and `fix` are needed: `round-1/fix-2` alone names the iteration.
        let in_iteration = number_after(segments.next()?, "fix").is_some();
        (in_iteration && segments.next()? == "fix").then(|| segments.next()?.parse().ok())?
    }
}

/// Parses the number behind a name: `then-3` after `then` is 3.
fn number_after(segment: &str, name: &str) -> Option<u32> {
    segment.strip_prefix(name)?.strip_prefix('-')?.parse().ok()
}

fn belongs_to_task(segment: &str) -> bool {
    [SECOND_TRY, NEW_SESSION, LAND_SEGMENT, PAUSE_SEGMENT].contains(&segment)
        || ["other", "wait", "then"].iter().any(|name| number_after(segment, name).is_some())
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
        assert_eq!(Key::for_round(4).reviewer_key(AgentRole::Party).reviewer_role(), Some("party"));
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
