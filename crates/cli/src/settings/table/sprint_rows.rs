//! Settings of stories and sprints.

use super::{SettingRow, field_row};
use crate::settings::{
    codec::{Plain, Seconds, Word, field},
    kind::ValueKind,
};

const CYCLES_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 20 };
const TOKENS_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 1_000_000_000 };

#[rustfmt::skip]
pub(super) const SPRINT_ROWS: &[SettingRow] = &[
    field_row("sprint.max_cycles", CYCLES_KIND, field!(Plain, development.story.pacing.max_cycles),
        "Maximum number of sessions for one step of a story, and of rounds of its review")
        .pinned(&["sprint"]),
    field_row("sprint.session_timeout", ValueKind::Seconds { minimum: 1 }, field!(Seconds, development.story.pacing.timeout_ms),
        "Timeout of one session")
        .pinned(&["sprint"]),
    field_row("sprint.review", ValueKind::Words(&["cycle", "bmad", "both", "off"]), field!(Word, development.story.review.mode),
        "Who reviews a story: a panel, BMAD's own review, both, or no one")
        .pinned(&["story", "sprint"]),
    field_row("sprint.commit_message", ValueKind::Text, field!(Plain, development.story.texts.message),
        "Message of a story's commit, with {key}, {title} and {file}")
        .pinned(&["story", "sprint"]),
    field_row("sprint.tolerate_untested", ValueKind::Flag, field!(Plain, development.story.rules.tolerates_untested),
        "Whether an acceptance criterion without a test is only a remark")
        .pinned(&["story", "sprint"]),
    field_row("sprint.story_max_cost", ValueKind::Cost, field!(Plain, development.sprint.story_share.cost),
        "Maximum cost of one story of a sprint, as far as agents report it"),
    field_row("sprint.story_max_minutes", ValueKind::Minutes, field!(Seconds, development.sprint.story_share.runtime_ms),
        "Maximum working time of one story of a sprint; waiting for you does not count"),
    field_row("sprint.story_max_tokens", TOKENS_KIND, field!(Plain, development.sprint.story_share.tokens),
        "Maximum number of weighted tokens of one story of a sprint"),
    field_row("sprint.retrospective", ValueKind::Flag, field!(Plain, development.sprint.holds_retrospectives),
        "Whether a sprint holds a retrospective at the end of an epic, where the board has one")
        .pinned(&["sprint"]),
];
