//! Settings of stories and sprints.

use super::{SettingRow, field_row};
use crate::settings::{
    codec::{Plain, Seconds, Word, field},
    kind::ValueKind,
};

const CYCLES_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 20 };

#[rustfmt::skip]
pub(super) const SPRINT_ROWS: &[SettingRow] = &[
    field_row("sprint.max_cycles", CYCLES_KIND, field!(Plain, development.story.pacing.max_cycles),
        "Maximum number of sessions for one step of a story, and of rounds of its review"),
    field_row("sprint.session_timeout", ValueKind::Seconds { minimum: 1 }, field!(Seconds, development.story.pacing.timeout_ms),
        "Timeout of one session"),
    field_row("sprint.review", ValueKind::Words(&["cycle", "bmad", "both", "off"]), field!(Word, development.story.review.mode),
        "Who reviews a story: a panel, BMAD's own review, both, or no one"),
    field_row("sprint.commit_message", ValueKind::Text, field!(Plain, development.story.message),
        "Message of a story's commit, with {key}, {title} and {file}"),
    field_row("sprint.tolerate_untested", ValueKind::Flag, field!(Plain, development.story.rules.tolerates_untested),
        "Whether an acceptance criterion without a test is only a remark"),
];
