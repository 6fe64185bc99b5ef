//! What went wrong with an agent or the world, and what follows from it: one table.
//!
//! Which words of which client mean what is `agents`' business; waiting and asking others is the workflow's.

use alloc::string::String;
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum FaultKind {
    NotInstalled,
    CannotStart,
    Exited {
        code: i32,
    },
    Killed {
        signal: i32,
    },
    TimedOut,
    /// It gave no sign of life.
    Silent,
    Flood,
    Malformed,
    /// The subject or the project could not be read or written.
    World,
    /// It never gave a sign of life at all.
    NeverActive,
    NotSignedIn,
    /// The account has no money left.
    NoCredit,
    /// The model does not exist, or not for this account.
    NoModel,
    /// Too much was asked for, by the minute or by the plan.
    Limited {
        /// Wall time at which it may be asked again, if it was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// The provider has a problem of its own.
    Overloaded,
    Connection,
    /// The prompt is larger than the model can read.
    Overflow,
    /// The model would not.
    Refused,
    /// It may not do what it needed to do.
    Denied,
    /// The provider does not take the request.
    Rejected {
        status: u16,
    },
    /// A limit of the client's own ended it.
    Curtailed,
}

/// What follows from a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The same once more, after a pause.
    Retry,
    /// The same once more, after a pause; then another agent, if there is one.
    RetryThenFallBack,
    /// The same again when the provider allows it; or another agent now.
    Wait,
    /// Another agent, if there is one: the same would fail again.
    FallBack,
    /// Nobody can help but a person.
    Stop,
}

/// What a fault means everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub code: &'static str,
    pub rule: Rule,
    /// Something outside has to change: it is nobody's failed attempt.
    pub environment: bool,
}

const fn row(code: &'static str, rule: Rule, environment: bool) -> Row {
    Row { code, rule, environment }
}

impl FaultKind {
    pub fn row(&self) -> Row {
        use Rule::{FallBack, Retry, RetryThenFallBack, Stop, Wait};
        match self {
            FaultKind::NotInstalled => row("not_installed", FallBack, true),
            FaultKind::CannotStart => row("cannot_start", FallBack, true),
            FaultKind::Exited { code: 126 | 127 } => row("exited", FallBack, true),
            FaultKind::Exited { .. } => row("exited", Retry, false),
            FaultKind::Killed { .. } => row("killed", Retry, false),
            FaultKind::TimedOut => row("timed_out", Retry, false),
            FaultKind::Silent => row("silent", Retry, false),
            FaultKind::Flood => row("flood", Retry, false),
            FaultKind::Malformed => row("malformed", Retry, false),
            FaultKind::World => row("world", Stop, true),
            FaultKind::NeverActive => row("never_active", FallBack, true),
            FaultKind::NotSignedIn => row("not_signed_in", FallBack, true),
            FaultKind::NoCredit => row("no_credit", FallBack, true),
            FaultKind::NoModel => row("no_model", FallBack, true),
            FaultKind::Limited { .. } => row("limited", Wait, true),
            FaultKind::Overloaded => row("overloaded", RetryThenFallBack, false),
            FaultKind::Connection => row("connection", RetryThenFallBack, true),
            FaultKind::Overflow => row("overflow", FallBack, false),
            FaultKind::Refused => row("refused", FallBack, false),
            FaultKind::Denied => row("denied", FallBack, true),
            FaultKind::Rejected { .. } => row("rejected", FallBack, false),
            FaultKind::Curtailed => row("curtailed", FallBack, false),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    #[serde(flatten)]
    pub kind: FaultKind,
    /// Who or what failed, and how: a sentence without a full stop.
    pub detail: String,
    /// It ended before it had done anything.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub instant: bool,
}

impl Fault {
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Fault {
        Fault { kind, detail: detail.into(), instant: false }
    }

    pub fn rule(&self) -> Rule {
        self.kind.row().rule
    }

    /// Something outside has to change first; it is nobody's failed attempt.
    pub fn is_environment(&self) -> bool {
        self.kind.row().environment
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}
