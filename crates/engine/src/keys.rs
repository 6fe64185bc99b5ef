//! The keys of effects that every kind of run has, and whose meaning is read back: they are built here and parsed here.
//!
//! A key is a path of names, for instance `round-2/fix-1/fix/3/again`. Code that needs to know what a key belongs to (reports,
//! landings) uses the readers below and those of the kind of run (`review/review_keys.rs`), never its text. A name that is never
//! read back (`inbox`, `tracker`, `ask-F3`) is given where the effect is requested, with [`Key::child_key`].
//!
//! | key | what it names |
//! | --- | --- |
//! | `TASK/again`, `anew`, `other-K`, `then-K` | another attempt at the same task |
//! | `TASK/pause`, `wait-K`, `preview`, `land` | what is done for a task |
//! | `TASK/judge` | the judge of what a task has changed, a task of its own |

use alloc::{format, vec::Vec};

use crate::ids::Key;

const SECOND_TRY: &str = "again";
const NEW_SESSION: &str = "anew";
const PAUSE_SEGMENT: &str = "pause";
const LAND_SEGMENT: &str = "land";
const PREVIEW_SEGMENT: &str = "preview";
const JUDGE_SEGMENT: &str = "judge";

impl Key {
    /// The end of a run: what is written and asked then.
    pub fn for_end() -> Key {
        Key::new("end")
    }

    /// The `ordinal`-th file that is restored.
    pub fn for_restore(ordinal: u32) -> Key {
        Key::new(format!("restore-{ordinal}"))
    }

    /// Waiting for the user between two stages.
    pub fn for_user_wait() -> Key {
        Key::new("wait")
    }

    pub fn landing_key(&self) -> Key {
        self.child_key(LAND_SEGMENT)
    }

    /// The look at what a landing would change.
    pub fn preview_key(&self) -> Key {
        self.child_key(PREVIEW_SEGMENT)
    }

    /// The judge of what a task has changed.
    pub fn judge_key(&self) -> Key {
        self.child_key(JUDGE_SEGMENT)
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

    pub fn numbered_child(&self, prefix: &str, ordinal: u32) -> Key {
        self.child_key(&format!("{prefix}-{ordinal}"))
    }

    pub fn last_segment(&self) -> &str {
        // A key is never empty, and `rsplit` returns at least one part.
        self.as_str().rsplit('/').next().unwrap_or_default()
    }

    pub fn is_second_try(&self) -> bool {
        self.last_segment() == SECOND_TRY
    }

    pub fn is_after_wait(&self) -> bool {
        number_after(self.last_segment(), "then").is_some()
    }

    /// The task whose change a judge looks at under this key.
    pub fn judged_task(&self) -> Option<Key> {
        let segments: Vec<&str> = self.as_str().split('/').collect();
        let judge_index = segments.iter().position(|segment| *segment == JUDGE_SEGMENT)?;
        Some(Key::new(segments[..judge_index].join("/")))
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
}

/// Parses the number behind a name: `then-3` after `then` is 3.
pub fn number_after(segment: &str, name: &str) -> Option<u32> {
    segment.strip_prefix(name)?.strip_prefix('-')?.parse().ok()
}

fn belongs_to_task(segment: &str) -> bool {
    [SECOND_TRY, NEW_SESSION, LAND_SEGMENT, PREVIEW_SEGMENT, PAUSE_SEGMENT].contains(&segment)
        || ["other", "wait", "then"].iter().any(|name| number_after(segment, name).is_some())
}
