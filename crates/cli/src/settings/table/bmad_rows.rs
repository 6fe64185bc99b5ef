//! Settings of pasted BMAD blocks that are accepted, checked and shown, but not used by this version.

use super::{SettingRow, same_kind, unused_row};
use crate::settings::kind::ValueKind;

const COUNT_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 100 };
const SECONDS_KIND: ValueKind = ValueKind::Seconds { minimum: 1 };
const CHECKS_KIND: ValueKind =
    ValueKind::ListOf(&["config_syntax", "tier_valid", "thresholds_sane", "dependencies_met", "memory_accessible"]);

#[rustfmt::skip]
// The third column is the default as it would be written; an empty text means that there is none.
pub(super) const BMAD_ROWS: &[SettingRow] = &[
    unused_row("progress.update_interval_seconds", SECONDS_KIND, "5", "How often to update the display")
        .with_aliases(&[same_kind("progress_display.update_interval_seconds")]),
    unused_row("progress.show_estimates", ValueKind::Flag, "true", "Whether to estimate the remaining time")
        .with_aliases(&[same_kind("progress_display.show_estimates")]),
    unused_row("progress.sound_alerts", ValueKind::Flag, "false", "Whether to ring the terminal bell")
        .with_aliases(&[same_kind("progress_display.sound_alerts")]),
    unused_row("progress.long_operation_seconds", SECONDS_KIND, "30", "Duration from which an operation counts as long")
        .with_aliases(&[same_kind("progress_display.long_operation_seconds")]),
    unused_row("progress.stall_detection_seconds", SECONDS_KIND, "60", "Duration of silence from which to report a stall")
        .with_aliases(&[same_kind("progress_display.stall_detection_seconds")]),

    // The automation of BMAD's own workflows.
    unused_row("automation.enabled", ValueKind::Flag, "true", "Whether to automate BMAD's workflows"),
    unused_row("defaults.require_final_approval", ValueKind::Flag, "true", "Whether you sign off at the end")
        .with_aliases(&[same_kind("automation.require_final_approval")]),
    unused_row("defaults.auto_continue_threshold", ValueKind::Fraction, "0.80", "Confidence from which menus are answered with [C]"),
    unused_row("defaults.checkpoint_at_decisions", ValueKind::Flag, "true", "Whether design decisions wait for you"),
    unused_row("defaults.max_fix_attempts", COUNT_KIND, "5", "Maximum number of attempts to fix a validation failure"),
    unused_row("defaults.batch_continue_size", COUNT_KIND, "3", "Number of menus in a row that are answered with [C]"),

    // The review loop block, as far as no used setting has taken it over.
    unused_row("review_loop.confidence_thresholds.full", ValueKind::Percent, "0", "Below `dual` the panel is always full"),
    unused_row("review_loop.issue_tracker.filename_pattern", ValueKind::Text, "", "File name pattern of trackers"),
    unused_row("review_loop.issue_tracker.save_fix_patterns", ValueKind::Flag, "true", "Whether to remember verified fixes"),

    // Checks and menus of BMAD's workflows.
    unused_row("preflight_validation.enabled", ValueKind::Flag, "true", "Whether to check a workflow before it starts"),
    unused_row("preflight_validation.checks", CHECKS_KIND, "", "What to check; by default, everything"),
    unused_row("menu_rate_limiting.min_interval_seconds", SECONDS_KIND, "2", "Minimum time between two menus"),
    unused_row("menu_rate_limiting.max_consecutive_menus", COUNT_KIND, "10", "Maximum number of menus in a row before a pause"),
    unused_row("menu_rate_limiting.batch_silent_progress", ValueKind::Flag, "true", "Whether to summarize silent steps"),
    unused_row("menu_rate_limiting.use_progress_indicator", ValueKind::Flag, "true", "Whether to show steps as progress instead of menus"),

    // Tasks that no review has.
    unused_row("agentConfig.perTask.TASK.primary", ValueKind::Text, "", "Agent for this kind of task"),
    unused_row("agentConfig.perTask.TASK.fallback", ValueKind::TextOrFalse, "", "Agent that steps in, or false for none"),
    unused_row("agentConfig.perTask.TASK.model", ValueKind::Text, "", "Model for this kind of task"),
];
