//! The circuit breaker: it stops loops that cost money and achieve nothing.
//!
//! | phase | meaning |
//! | --- | --- |
//! | closed | iterations make progress |
//! | half-open | two iterations in a row changed nothing; the next one decides |
//! | open | no iteration starts until the cool-down is over or the user resets the breaker |
//!
//! Progress means that the content of the workspace changed: what an agent says about it does not count, and neither does a
//! tree that was different before the loop began. After the cool-down the breaker is half-open: one iteration may try.
//!
//! The breaker is a project record, so that it outlives the run and the next loop finds it as it was.

use alloc::{format, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{development::checks::CheckResult, tasks::output_similarity::normalize_output};
use tribunal_engine::{
    ids::{Hash, RecordKey},
    text::{truncate_chars, word_table::words},
};

/// The most characters that are kept of an error to compare it with the next one.
const MAX_ERROR_CHARS: usize = 300;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerPhase {
    #[default]
    Closed,
    HalfOpen,
    Open,
}

words!(BreakerPhase { Closed = "closed", HalfOpen = "half-open", Open = "open" });

/// What opened the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerCause {
    NoProgress,
    SameError,
    OutputDecline,
    Denials,
}

words!(BreakerCause {
    NoProgress = "no_progress",
    SameError = "same_error",
    OutputDecline = "output_decline",
    Denials = "denials",
});

/// What a loop does when the breaker opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenAction {
    /// It halts and asks the user.
    #[default]
    Halt,
    /// It waits for the end of the cool-down and tries once more.
    Wait,
}

words!(OpenAction { Halt = "halt", Wait = "wait" });

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BreakerSettings {
    /// Opens after so many iterations in a row without progress.
    pub no_progress: u32,
    /// Opens after so many iterations in a row with the same error.
    pub same_error: u32,
    /// By how many percent the output has to fall for a second iteration without progress to open it at once.
    pub output_decline: u32,
    /// Opens after so many iterations in a row in which tools were denied and nothing changed.
    pub denials: u32,
    pub cooldown_ms: u64,
    pub on_open: OpenAction,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        BreakerSettings {
            no_progress: 3,
            same_error: 5,
            output_decline: 70,
            denials: 2,
            cooldown_ms: 30 * 60_000,
            on_open: OpenAction::Halt,
        }
    }
}

/// The number of iterations without progress that makes the breaker half-open.
const HALF_OPEN_AFTER: u32 = 2;

/// The state of the breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CircuitBreaker {
    pub phase: BreakerPhase,
    /// Iterations in a row without progress.
    pub idle_count: u32,
    /// Iterations in a row with `last_error`.
    pub error_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<IterationError>,
    /// Iterations in a row in which tools were denied and nothing changed.
    pub denial_count: u32,
    /// The length of the last output of an iteration that made progress.
    pub last_length: u64,
    /// What opened it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<BreakerCause>,
    /// When it opened, by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_ms: Option<u64>,
    /// When the cool-down is over, by the wall clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closes_ms: Option<u64>,
}

/// What is known about one iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterationSigns {
    /// Whether the content of the workspace changed.
    pub has_progress: bool,
    /// The error with which the iteration ended, if it did.
    pub error: Option<IterationError>,
    /// The length of the agent's answer; `None` if there was none.
    pub output_length: Option<u64>,
    /// Whether the client denied the use of a tool.
    pub was_denied: bool,
}

/// The error with which an iteration ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IterationError {
    /// One line for users.
    pub text: String,
    /// Equal for errors that differ only in what differs from one time to the next.
    pub identity: Hash,
}

impl IterationError {
    /// Describes the failure of the agent itself.
    pub fn from_fault(fault_text: &str) -> IterationError {
        let first_line = fault_text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let without_digits: String = first_line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let identity = Hash::digest_of(without_digits.as_bytes());
        IterationError { text: truncate_chars(first_line, MAX_ERROR_CHARS), identity }
    }

    /// Describes checks that failed; `None` if none did. Their outputs count without times, durations and addresses: one test
    /// more or less that fails is another error.
    pub fn from_checks(failed_checks: &[CheckResult]) -> Option<IterationError> {
        let first_failure = failed_checks.first()?;
        let outputs: String = failed_checks.iter().map(CheckResult::describe_with_output).collect();
        let identity = Hash::digest_of(normalize_output(&outputs).as_bytes());
        Some(IterationError { text: truncate_chars(&first_failure.describe(), MAX_ERROR_CHARS), identity })
    }
}

impl CircuitBreaker {
    /// The key of the one record of a project.
    pub fn record_key() -> RecordKey {
        RecordKey::new("loop")
    }

    /// Takes an iteration into account. Returns whether the phase changed.
    pub fn record_iteration(&mut self, settings: &BreakerSettings, signs: &IterationSigns, wall_ms: u64) -> bool {
        let previous_phase = self.phase;
        self.count_signs(signs);
        match self.find_cause(settings, signs) {
            Some(cause) => self.open_for(cause, settings, wall_ms),
            None if signs.has_progress => self.close(),
            None if self.idle_count >= HALF_OPEN_AFTER => self.phase = BreakerPhase::HalfOpen,
            None => {}
        }
        if signs.has_progress
            && let Some(output_length) = signs.output_length
        {
            self.last_length = output_length;
        }
        self.phase != previous_phase
    }

    fn count_signs(&mut self, signs: &IterationSigns) {
        self.idle_count = if signs.has_progress { 0 } else { self.idle_count + 1 };
        self.denial_count = if signs.was_denied && !signs.has_progress { self.denial_count + 1 } else { 0 };
        let identity = |error: &Option<IterationError>| error.as_ref().map(|error| error.identity.clone());
        self.error_count = match &signs.error {
            Some(_) if identity(&signs.error) == identity(&self.last_error) => self.error_count + 1,
            Some(_) => 1,
            None => 0,
        };
        self.last_error.clone_from(&signs.error);
    }

    fn find_cause(&self, settings: &BreakerSettings, signs: &IterationSigns) -> Option<BreakerCause> {
        // An output that collapses while nothing changes is a sign to stop one iteration earlier. A short answer alone is not:
        // the last one of a finished task is short, too.
        let has_collapsed = signs.output_length.is_some_and(|output_length| {
            let remaining_percent = 100u64.saturating_sub(u64::from(settings.output_decline));
            self.last_length > 0
                && output_length.saturating_mul(100) <= self.last_length.saturating_mul(remaining_percent)
        });
        if self.denial_count >= settings.denials {
            Some(BreakerCause::Denials)
        } else if self.error_count >= settings.same_error {
            Some(BreakerCause::SameError)
        } else if self.idle_count >= settings.no_progress {
            Some(BreakerCause::NoProgress)
        } else if self.idle_count >= HALF_OPEN_AFTER && has_collapsed {
            Some(BreakerCause::OutputDecline)
        } else {
            None
        }
    }

    fn open_for(&mut self, cause: BreakerCause, settings: &BreakerSettings, wall_ms: u64) {
        self.phase = BreakerPhase::Open;
        self.cause = Some(cause);
        self.opened_ms = Some(wall_ms);
        self.closes_ms = Some(wall_ms.saturating_add(settings.cooldown_ms));
    }

    /// Closes it because an iteration made progress. Errors go on being counted: an agent that changes something and fails in the
    /// same way each time makes no progress either.
    fn close(&mut self) {
        let last_error = core::mem::take(&mut self.last_error);
        let (last_length, error_count) = (self.last_length, self.error_count);
        *self = CircuitBreaker { last_length, error_count, last_error, ..CircuitBreaker::default() };
    }

    /// Makes an open breaker half-open if its cool-down is over. Returns whether it did.
    pub fn cool_down(&mut self, wall_ms: u64) -> bool {
        let is_over = self.phase == BreakerPhase::Open && self.closes_ms.is_none_or(|closes_ms| closes_ms <= wall_ms);
        if is_over {
            self.allow_one_try();
        }
        is_over
    }

    /// Lets one iteration try: if that makes no progress either, the breaker opens again.
    pub fn allow_one_try(&mut self) {
        self.phase = BreakerPhase::HalfOpen;
        self.idle_count = self.idle_count.min(HALF_OPEN_AFTER);
        // One more error or denial would open it again, so these are counted anew only down to one below their limits.
        self.error_count = 0;
        self.denial_count = 0;
    }

    /// Describes why it opened, for users.
    pub fn describe_cause(&self) -> String {
        match self.cause {
            Some(BreakerCause::NoProgress) => {
                format!("{} iterations in a row changed nothing", self.idle_count)
            }
            Some(BreakerCause::SameError) => {
                let error_text = self.last_error.as_ref().map_or("", |error| error.text.as_str());
                format!("{} iterations in a row ended with the same error: {error_text}", self.error_count)
            }
            Some(BreakerCause::OutputDecline) => {
                format!("{} iterations in a row changed nothing, and the output collapsed", self.idle_count)
            }
            Some(BreakerCause::Denials) => {
                format!("tools were denied in {} iterations in a row, and nothing changed", self.denial_count)
            }
            None => String::from("no iteration has opened it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::development::checks::{CheckStatus, CommandLine, FailureAction};

    fn idle() -> IterationSigns {
        IterationSigns { output_length: Some(1_000), ..IterationSigns::default() }
    }

    fn progress() -> IterationSigns {
        IterationSigns { has_progress: true, output_length: Some(1_000), ..IterationSigns::default() }
    }

    fn run_all(signs: &[IterationSigns]) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::default();
        for (index, signs) in signs.iter().enumerate() {
            breaker.record_iteration(&BreakerSettings::default(), signs, index as u64 * 1_000);
        }
        breaker
    }

    #[test]
    fn two_idle_iterations_make_it_half_open_and_three_open_it() {
        assert_eq!(run_all(&[idle()]).phase, BreakerPhase::Closed);
        assert_eq!(run_all(&[idle(), idle()]).phase, BreakerPhase::HalfOpen);
        assert_eq!(run_all(&[idle(), idle(), progress()]).phase, BreakerPhase::Closed);
        let breaker = run_all(&[idle(), idle(), idle()]);
        assert_eq!((breaker.phase, breaker.cause), (BreakerPhase::Open, Some(BreakerCause::NoProgress)));
        assert_eq!(breaker.closes_ms, Some(2_000 + 30 * 60_000));
    }

    #[test]
    fn the_same_error_five_times_opens_it_also_with_progress() {
        let failing = |error: &str| IterationSigns { error: Some(IterationError::from_fault(error)), ..progress() };
        let errors: [_; 5] = core::array::from_fn(|index| failing(&format!("exit code 1 after {index} s\nmore")));
        assert_eq!(run_all(&errors[..4]).phase, BreakerPhase::Closed);
        assert_eq!(run_all(&errors).cause, Some(BreakerCause::SameError));
        let mixed = [failing("a"), failing("a"), failing("b"), failing("a"), failing("a"), failing("a")];
        assert_eq!(run_all(&mixed).phase, BreakerPhase::Closed);
    }

    #[test]
    fn a_check_that_fails_with_the_same_output_is_the_same_error() {
        let failing = |output: &str| {
            let failure = CheckResult {
                command: CommandLine::from_shell_line("cargo test"),
                status: CheckStatus::Failed { exit_code: 1 },
                on_failure: FailureAction::Block,
                output: output.into(),
                log: None,
                elapsed_ms: 1,
            };
            IterationSigns { error: IterationError::from_checks(&[failure]), ..progress() }
        };
        let same: [_; 5] = core::array::from_fn(|index| failing(&format!("1 test failed in {index}.2s")));
        let breaker = run_all(&same);
        assert_eq!(breaker.cause, Some(BreakerCause::SameError));
        assert_eq!(
            breaker.describe_cause(),
            "5 iterations in a row ended with the same error: `cargo test` failed with exit code 1: 1 test failed in 4.2s"
        );
        let fewer: [_; 6] = core::array::from_fn(|index| failing(&format!("{} tests failed", 6 - index)));
        assert_eq!(run_all(&fewer).phase, BreakerPhase::Closed);
    }

    #[test]
    fn a_collapsing_output_opens_it_one_iteration_earlier_but_not_alone() {
        let short = IterationSigns { output_length: Some(300), ..IterationSigns::default() };
        assert_eq!(run_all(&[progress(), short.clone()]).phase, BreakerPhase::Closed);
        assert_eq!(run_all(&[progress(), idle(), short.clone()]).cause, Some(BreakerCause::OutputDecline));
        let slightly_longer = IterationSigns { output_length: Some(301), ..IterationSigns::default() };
        assert_eq!(run_all(&[progress(), idle(), slightly_longer]).phase, BreakerPhase::HalfOpen);
        assert_eq!(run_all(&[idle(), short]).phase, BreakerPhase::HalfOpen, "nothing to compare with");
    }

    #[test]
    fn denials_count_only_while_nothing_changes() {
        let denied = |has_progress| IterationSigns { was_denied: true, has_progress, ..IterationSigns::default() };
        assert_eq!(run_all(&[denied(false), denied(false)]).cause, Some(BreakerCause::Denials));
        assert_eq!(run_all(&[denied(false), denied(true), denied(false)]).phase, BreakerPhase::Closed);
    }

    #[test]
    fn after_the_cool_down_one_iteration_may_try() {
        let mut breaker = run_all(&[idle(), idle(), idle()]);
        let closes_ms = breaker.closes_ms.unwrap();
        assert!(!breaker.cool_down(closes_ms - 1));
        assert!(breaker.cool_down(closes_ms));
        assert_eq!(breaker.phase, BreakerPhase::HalfOpen);
        let mut stuck = breaker.clone();
        assert!(stuck.record_iteration(&BreakerSettings::default(), &idle(), closes_ms + 1));
        assert_eq!(stuck.phase, BreakerPhase::Open);
        breaker.record_iteration(&BreakerSettings::default(), &progress(), closes_ms + 1);
        assert_eq!(breaker.phase, BreakerPhase::Closed);
    }
}
