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

use crate::{ids::Key, level::Role};

const AGAIN: &str = "again";
const ANEW: &str = "anew";
const PAUSE: &str = "pause";
const LAND: &str = "land";
const SESSION: &str = "session";

impl Key {
    pub fn round(round: u32) -> Key {
        Key::new(format!("round-{round}"))
    }

    pub fn fix_iteration(round: u32, iteration: u32) -> Key {
        // Iterations are counted within their round.
        Key::round(round).numbered("fix", iteration)
    }

    /// The end of a run: what is written and asked then.
    pub fn end() -> Key {
        Key::new("end")
    }

    /// Waiting for the user between two stages.
    pub fn wait() -> Key {
        Key::new("wait")
    }

    /// The `ordinal`-th file that is restored.
    pub fn restore(number: u32) -> Key {
        Key::new(format!("restore-{number}"))
    }

    pub fn freeze(&self) -> Key {
        self.child("freeze")
    }

    pub fn reviewer(&self, role: Role) -> Key {
        // The role is unique within a round, so it can name the seat.
        self.child("review").child(role.as_str())
    }

    /// The `ordinal`-th fixer of an iteration, counted from 1.
    pub fn fixer(&self, number: u32) -> Key {
        self.child("fix").child(&format!("{number}"))
    }

    /// The user's own session, in place of fixers.
    pub fn session(&self) -> Key {
        self.child(SESSION)
    }

    pub fn landing(&self) -> Key {
        self.child(LAND)
    }

    /// The one second attempt at a task.
    pub fn second_try(&self) -> Key {
        self.child(AGAIN)
    }

    /// The same task in a new session.
    pub fn new_session(&self) -> Key {
        self.child(ANEW)
    }

    /// The pause before the second attempt.
    pub fn pause(&self) -> Key {
        self.child(PAUSE)
    }

    /// The task given to the `ordinal`-th other agent.
    pub fn other_agent(&self, number: u32) -> Key {
        self.numbered("other", number)
    }

    /// The `ordinal`-th wait for a usage limit.
    pub fn wait_for_reset(&self, number: u32) -> Key {
        self.numbered("wait", number)
    }

    /// The task after the `ordinal`-th wait for a usage limit.
    pub fn after_wait(&self, number: u32) -> Key {
        self.numbered("then", number)
    }

    fn numbered(&self, name: &str, number: u32) -> Key {
        self.child(&format!("{name}-{number}"))
    }

    fn last(&self) -> &str {
        // A key is never empty, and `rsplit` returns at least one part.
        self.as_str().rsplit('/').next().unwrap_or_default()
    }

    /// The round that an effect belongs to.
    pub fn round_number(&self) -> Option<u32> {
        // The round is always the first segment; other keys such as `end` have none.
        number_after(self.as_str().split('/').next()?, "round")
    }

    pub fn is_second_try(&self) -> bool {
        self.last() == AGAIN
    }

    pub fn is_after_wait(&self) -> bool {
        number_after(self.last(), "then").is_some()
    }

    /// Whether the user's session did it, not a fixer.
    pub fn is_session(&self) -> bool {
        self.last() == SESSION
    }

    /// Whether it is `round-1/fix-2` itself, not an effect within it.
    pub fn is_fix_iteration(&self) -> bool {
        number_after(self.last(), "fix").is_some()
    }

    /// Returns the task that an effect belongs to: other attempts, pauses, waits and landings belong to what precedes them.
    pub fn task(&self) -> Key {
        let mut task = self.as_str();
        // Suffixes can be nested, for instance `other-1/again`.
        while let Some((before, last)) = task.rsplit_once('/')
            && is_part_of_a_task(last)
        {
            task = before;
        }
        Key::new(task)
    }

    /// The role of a reviewer's task, as its key names it.
    pub fn reviewer_role(&self) -> Option<&str> {
        let mut parts = self.as_str().split('/').skip(1);
        (parts.next()? == "review").then(|| parts.next())?
    }

    /// Returns the number of the fixer whose task it belongs to.
    pub fn fixer_number(&self) -> Option<u32> {
        let mut parts = self.as_str().split('/').skip(1);
        // Both `fix-M` and `fix` are needed: `round-1/fix-2` alone names the iteration.
        let in_iteration = number_after(parts.next()?, "fix").is_some();
        (in_iteration && parts.next()? == "fix").then(|| parts.next()?.parse().ok())?
    }
}

/// Parses the number behind a name: `then-3` after `then` is 3.
fn number_after(part: &str, name: &str) -> Option<u32> {
    part.strip_prefix(name)?.strip_prefix('-')?.parse().ok()
}

fn is_part_of_a_task(part: &str) -> bool {
    [AGAIN, ANEW, LAND, PAUSE].contains(&part)
        || ["other", "wait", "then"].iter().any(|name| number_after(part, name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read_back() {
        let iteration = Key::fix_iteration(2, 1);
        let fixer = iteration.fixer(3);
        assert_eq!(fixer.as_str(), "round-2/fix-1/fix/3");
        assert_eq!((fixer.round_number(), fixer.fixer_number()), (Some(2), Some(3)));
        assert!(iteration.is_fix_iteration() && !fixer.is_fix_iteration());
        assert_eq!(iteration.fixer_number(), None);
        assert!(fixer.second_try().is_second_try() && !fixer.is_second_try());
        assert!(fixer.after_wait(2).is_after_wait() && !fixer.wait_for_reset(2).is_after_wait());
        assert!(iteration.session().is_session() && !fixer.is_session());
        assert_eq!(Key::round(4).reviewer(Role::Party).reviewer_role(), Some("party"));
        assert_eq!((Key::end().round_number(), fixer.reviewer_role()), (None, None));
    }

    #[test]
    fn everything_done_for_a_task_belongs_to_it() {
        let task = Key::round(1).reviewer(Role::Adversarial);
        for part in [
            task.clone(),
            task.second_try(),
            task.new_session(),
            task.pause(),
            task.landing(),
            task.other_agent(2),
            task.wait_for_reset(1),
            task.after_wait(1),
            task.other_agent(1).second_try(),
        ] {
            assert_eq!(part.task(), task);
        }
        assert_eq!(Key::round(1).freeze().task(), Key::round(1).freeze());
    }
}
