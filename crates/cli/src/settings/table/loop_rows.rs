//! Settings of headless loops.

use tribunal_workflows::loop_run::order::MAX_ITERATIONS_LIMIT;

use super::{SettingRow, field_row};
use crate::settings::{
    codec::{Plain, Seconds, Word, field},
    kind::ValueKind,
};

const ITERATIONS_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: MAX_ITERATIONS_LIMIT as u64 };
const THRESHOLD_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 100 };

#[rustfmt::skip]
pub(super) const LOOP_ROWS: &[SettingRow] = &[
    field_row("loop.max_iterations", ITERATIONS_KIND, field!(Plain, loop_run.pacing.max_iterations),
        "Maximum number of iterations of a loop"),
    field_row("loop.promise", ValueKind::Text, field!(Plain, loop_run.completion.promise),
        "Text that the agent writes between <promise> and </promise> when the task is done")
        .pinned(&["loop"]),
    field_row("loop.accept_loop_complete", ValueKind::Flag, field!(Plain, loop_run.completion.accepts_word),
        "Whether the word LOOP_COMPLETE in an answer counts like the promise")
        .pinned(&["loop"]),
    field_row("loop.accept_task_complete", ValueKind::Flag, field!(Plain, development.loop_choices.accepts_checkbox),
        "Whether a ticked box `TASK_COMPLETE` in the prompt file counts like the promise")
        .pinned(&["loop"]),
    field_row("loop.continue", ValueKind::Flag, field!(Plain, loop_run.pacing.continue_session),
        "Whether all iterations share one session of the client; by default, each starts a new one")
        .pinned(&["loop"]),
    field_row("loop.iteration_timeout", ValueKind::Seconds { minimum: 1 }, field!(Seconds, loop_run.pacing.timeout_ms),
        "Timeout of one iteration"),
    field_row("loop.checkpoint_interval", THRESHOLD_KIND, field!(Plain, loop_run.pacing.checkpoint_interval),
        "Iterations between two commits")
        .pinned(&["loop"]),
    field_row("loop.review", ValueKind::Words(&["off", "enhanced", "ultimate"]), field!(Word, loop_run.review.mode),
        "When the changes are reviewed: never, every few iterations, or whenever a task of the plan is done"),
    field_row("loop.review_interval", THRESHOLD_KIND, field!(Plain, loop_run.review.interval),
        "Iterations between two reviews, with `review: enhanced`")
        .pinned(&["loop"]),
    field_row("loop.breaker.no_progress", THRESHOLD_KIND, field!(Plain, loop_run.breaker.no_progress),
        "Iterations in a row without any change that open the circuit breaker"),
    field_row("loop.breaker.same_error", THRESHOLD_KIND, field!(Plain, loop_run.breaker.same_error),
        "Iterations in a row with the same error that open the circuit breaker"),
    field_row("loop.breaker.output_decline", ValueKind::Percent, field!(Plain, loop_run.breaker.output_decline),
        "Percent by which the output has to fall for a second iteration without any change to open the circuit breaker"),
    field_row("loop.breaker.denials", THRESHOLD_KIND, field!(Plain, loop_run.breaker.denials),
        "Iterations in a row with denied tools and without any change that open the circuit breaker"),
    field_row("loop.breaker.cooldown_minutes", ValueKind::Minutes, field!(Seconds, loop_run.breaker.cooldown_ms),
        "How long an open circuit breaker lets no iteration start"),
    field_row("loop.breaker.on_open", ValueKind::Words(&["halt", "wait"]), field!(Word, loop_run.breaker.on_open),
        "Whether a loop halts when the circuit breaker opens, or waits for the end of the cool-down"),
];
