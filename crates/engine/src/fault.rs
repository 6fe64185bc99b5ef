//! What went wrong with an agent or its environment, and what follows from it: one table.
//!
//! `agents` knows which messages of which client mean what; waiting and asking other agents is the workflow's part.

use alloc::string::String;
use core::fmt;

use tribunal_json::{Deserialize, Serialize, schemars};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// It produced no output for too long.
    Silent,
    Flood,
    Malformed,
    /// The subject or the project could not be read or written.
    World,
    /// The user has to do something in the checkout first: files are in the way of the work, or the branch is another one.
    CheckoutNotReady,
    /// Another run works on the same subject.
    SubjectBusy,
    /// It never produced any output.
    NeverActive,
    NotSignedIn,
    /// The account has no credit left.
    NoCredit,
    /// The model does not exist, or not for this account.
    NoModel,
    /// A rate limit or a usage limit was reached.
    Limited {
        /// The wall time at which it may be asked again, if the provider said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// The provider has a problem of its own.
    Overloaded,
    Connection,
    /// The prompt is larger than the model can read.
    Overflow,
    /// The model refused the task.
    Refused,
    /// It lacks a permission that it needs.
    Denied,
    /// The provider rejected the request.
    Rejected {
        status: u16,
    },
    /// A limit of the client itself ended it.
    Curtailed,
}

/// What follows from a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPolicy {
    /// The same agent is asked once more after a pause.
    Retry,
    /// The same agent is asked once more after a pause, then another agent, if there is one.
    RetryThenFallBack,
    /// The same agent is asked again when the provider allows it, or another agent now.
    Wait,
    /// Another agent is asked, if there is one: the same one would fail again.
    FallBack,
    /// Only the user can help.
    Stop,
}

/// What a fault means everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRow {
    pub code: &'static str,
    pub policy: FaultPolicy,
    /// The cause is in the environment, so it does not count as a failed attempt of the agent.
    pub environment: bool,
}

const fn fault_row(code: &'static str, policy: FaultPolicy, environment: bool) -> FaultRow {
    FaultRow { code, policy, environment }
}

impl FaultKind {
    pub fn table_row(&self) -> FaultRow {
        use FaultPolicy::{FallBack, Retry, RetryThenFallBack, Stop, Wait};
        match self {
            FaultKind::NotInstalled => fault_row("not_installed", FallBack, true),
            FaultKind::CannotStart => fault_row("cannot_start", FallBack, true),
            // Shells use 126 and 127 for a command that cannot be run or is not found.
            FaultKind::Exited { code: 126 | 127 } => fault_row("exited", FallBack, true),
            FaultKind::Exited { .. } => fault_row("exited", Retry, false),
            FaultKind::Killed { .. } => fault_row("killed", Retry, false),
            FaultKind::TimedOut => fault_row("timed_out", Retry, false),
            FaultKind::Silent => fault_row("silent", Retry, false),
            FaultKind::Flood => fault_row("flood", Retry, false),
            FaultKind::Malformed => fault_row("malformed", Retry, false),
            // No other agent could read or write the project either.
            FaultKind::World => fault_row("world", Stop, true),
            FaultKind::CheckoutNotReady => fault_row("checkout_not_ready", Stop, true),
            FaultKind::SubjectBusy => fault_row("subject_busy", Stop, true),
            FaultKind::NeverActive => fault_row("never_active", FallBack, true),
            FaultKind::NotSignedIn => fault_row("not_signed_in", FallBack, true),
            FaultKind::NoCredit => fault_row("no_credit", FallBack, true),
            FaultKind::NoModel => fault_row("no_model", FallBack, true),
            // A limit passes by itself, so waiting for it is not a failure.
            FaultKind::Limited { .. } => fault_row("limited", Wait, true),
            // Another provider is probably not affected by an overload or a broken connection.
            FaultKind::Overloaded => fault_row("overloaded", RetryThenFallBack, true),
            FaultKind::Connection => fault_row("connection", RetryThenFallBack, true),
            // The same prompt would overflow again, but another model may have a larger window.
            FaultKind::Overflow => fault_row("overflow", FallBack, false),
            FaultKind::Refused => fault_row("refused", FallBack, false),
            FaultKind::Denied => fault_row("denied", FallBack, true),
            FaultKind::Rejected { .. } => fault_row("rejected", FallBack, false),
            FaultKind::Curtailed => fault_row("curtailed", FallBack, false),
        }
    }
}

/// What the user can do about a fault. The host records it, because it knows the agent; the workflow does not look at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum FaultRemedy {
    /// A command for the user's shell, for instance one that signs in.
    RunCommand { command: String },
    /// A setting that has to change, with a value that may help; `None` if only the user knows one.
    ChangeSetting {
        setting: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fault {
    #[serde(flatten)]
    pub kind: FaultKind,
    /// Who or what failed, and how: a sentence without a full stop.
    pub detail: String,
    /// It ended before it had done anything.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub instant: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<FaultRemedy>,
}

impl Fault {
    pub fn new(kind: FaultKind, detail_text: impl Into<String>) -> Fault {
        Fault { kind, detail: detail_text.into(), instant: false, remedy: None }
    }

    pub fn with_remedy(self, remedy: Option<FaultRemedy>) -> Fault {
        Fault { remedy, ..self }
    }

    pub fn policy(&self) -> FaultPolicy {
        self.kind.table_row().policy
    }

    /// Whether the cause is in the environment, so that it does not count as a failed attempt of the agent.
    pub fn is_environment(&self) -> bool {
        self.kind.table_row().environment
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.detail)
    }
}
