//! Every setting that has one value for a whole command, as a field of its own type, with its default.
//!
//! The default of a setting is the `Default` of its field and stands nowhere else: fields that a run is pinned to are `core`'s,
//! the others are here. Which setting fills which field is said by the rows of [`super::table`]; [`super::codec`] turns the
//! one into the other. Settings with a name in their path (`agents.NAME.model`) have no field here: there is one value for
//! each name, none of them has a default, and whoever puts the agents together reads them by their paths.

use std::{num::NonZeroUsize, time::Duration};

use tribunal_core::{settings::Settings, subject::Subject};
use tribunal_guard::GuardPolicy;
use tribunal_report::Mode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypedSettings {
    /// What a run is pinned to. Its subject, its agents and the folder of its trackers come from [`super::resolve`].
    pub run: Settings,
    /// Of the command, not of the run, and so not pinned.
    pub share: Share,
    /// How much is shown. Not pinned either: every life of a run may show as much as it likes.
    pub progress: Mode,
    pub hooks: HookSettings,
    pub folders: Folders,
    pub agents: AgentChoice,
}

impl Default for TypedSettings {
    fn default() -> Self {
        TypedSettings {
            run: Settings::new(Subject::at("", None)),
            share: Share::default(),
            progress: Mode::default(),
            hooks: HookSettings::default(),
            folders: Folders::default(),
            agents: AgentChoice::default(),
        }
    }
}

/// How the runs of one command share what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Runs at the same time.
    pub jobs: NonZeroUsize,
    /// Agents at the same time, of all runs together.
    pub agents: NonZeroUsize,
    /// Calls of clients in an hour, of all runs of the machine.
    pub calls: NonZeroUsize,
}

impl Default for Share {
    fn default() -> Self {
        Share { jobs: at_least_one(3), agents: at_least_one(6), calls: at_least_one(100) }
    }
}

const fn at_least_one(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

impl Share {
    /// Where projects differ, the one that allows less.
    pub fn least(self, other: Share) -> Share {
        Share {
            jobs: self.jobs.min(other.jobs),
            agents: self.agents.min(other.agents),
            calls: self.calls.min(other.calls),
        }
    }

    /// No more runs at once than there are.
    pub fn among(self, runs: usize) -> Share {
        Share { jobs: NonZeroUsize::new(runs).map_or(self.jobs, |runs| self.jobs.min(runs)), ..self }
    }
}

/// What hooks need to know, at every step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HookSettings {
    pub guard: GuardPolicy,
    /// Without a sign for so long, a session is no longer waited for.
    pub stale_after: Duration,
}

impl Default for HookSettings {
    fn default() -> Self {
        HookSettings { guard: GuardPolicy::default(), stale_after: Duration::from_secs(24 * 3600) }
    }
}

/// Folders as they were written. What they come to depends on the project; see [`super::resolve`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folders {
    pub output: Option<String>,
    pub reviews: Option<String>,
}

/// What is said of all agents, and which of them take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentChoice {
    pub used: Option<Vec<String>>,
    /// Agents go on with their sessions; else every task is done in a fresh one.
    pub continue_sessions: bool,
    pub fixer_model: Option<String>,
}

impl Default for AgentChoice {
    fn default() -> Self {
        AgentChoice { used: None, continue_sessions: true, fixer_model: None }
    }
}
