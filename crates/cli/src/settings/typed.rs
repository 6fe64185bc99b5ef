//! Every setting that has one value for a whole command, as a typed field with its default.
//!
//! The default of a setting is the `Default` of its field and is written nowhere else. Fields that a run is pinned to belong
//! to `core`, the others are here. The rows of [`super::table`] say which setting fills which field, and [`super::codec`]
//! converts between the two. Settings with a name in their path (`agents.NAME.model`) have no field here: there is one value
//! for each name, none of them has a default, and the code that builds the agents reads them by their paths.

use std::{num::NonZeroUsize, time::Duration};

use tribunal_core::{settings::Settings, subject::Subject};
use tribunal_guard::GuardPolicy;
use tribunal_report::Mode;

/// All settings as typed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypedSettings {
    /// What a run is pinned to. [`super::resolve`] adds its subject, its agents and the directory of its trackers.
    pub run: Settings,
    /// Limits of the command, not of the run; they are not pinned.
    pub share: Share,
    /// How much is shown. It is not pinned either: every start of a run may show as much as it likes.
    pub progress: Mode,
    pub hooks: HookSettings,
    pub folders: Folders,
    pub agents: AgentChoice,
}

impl Default for TypedSettings {
    fn default() -> Self {
        TypedSettings {
            // The subject is a placeholder; resolving replaces it.
            run: Settings::new(Subject::at("", None)),
            share: Share::default(),
            progress: Mode::default(),
            hooks: HookSettings::default(),
            folders: Folders::default(),
            agents: AgentChoice::default(),
        }
    }
}

/// How the runs of one command share agents and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Runs at the same time.
    pub jobs: NonZeroUsize,
    /// Agents at the same time, of all runs together.
    pub agents: NonZeroUsize,
    /// Calls of clients per hour, of all runs on the machine.
    pub calls: NonZeroUsize,
}

impl Default for Share {
    fn default() -> Self {
        Share { jobs: at_least_one(3), agents: at_least_one(6), calls: at_least_one(100) }
    }
}

const fn at_least_one(number: usize) -> NonZeroUsize {
    // `unwrap` is not allowed here, and the defaults are never zero.
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

impl Share {
    /// The smaller limit of each kind, for runs of several projects.
    pub fn least(self, other: Share) -> Share {
        Share {
            jobs: self.jobs.min(other.jobs),
            agents: self.agents.min(other.agents),
            calls: self.calls.min(other.calls),
        }
    }

    /// Limits the number of jobs to the number of runs.
    pub fn among(self, runs: usize) -> Share {
        // Zero runs do not occur; the limit then stays as it is.
        Share { jobs: NonZeroUsize::new(runs).map_or(self.jobs, |runs| self.jobs.min(runs)), ..self }
    }
}

/// What hooks need to know at every step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HookSettings {
    pub guard: GuardPolicy,
    /// After this time without a sign of life a session is given up.
    pub stale_after: Duration,
}

impl Default for HookSettings {
    fn default() -> Self {
        HookSettings { guard: GuardPolicy::default(), stale_after: Duration::from_secs(24 * 3600) }
    }
}

/// Directories as they were written. [`super::resolve`] checks them against the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folders {
    pub output: Option<String>,
    pub reviews: Option<String>,
}

/// What applies to all agents, and which of them take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentChoice {
    pub used: Option<Vec<String>>,
    /// Whether agents continue their sessions; otherwise every task starts a fresh one.
    pub continue_sessions: bool,
    pub fixer_model: Option<String>,
}

impl Default for AgentChoice {
    fn default() -> Self {
        AgentChoice { used: None, continue_sessions: true, fixer_model: None }
    }
}
