//! Settings of pasted BMAD blocks that are accepted, checked and shown, but not used by this version.

use super::{Row, later, same};
use crate::settings::kind::Kind;

const COUNT: Kind = Kind::Whole { min: 1, max: 100 };
const SECONDS: Kind = Kind::Seconds { min: 1 };
const LEVEL: Kind = Kind::Words(&["minimal", "dual", "full"]);
const CHECKS: Kind = Kind::ListOf(&[
    "config_syntax",
    "tier_valid",
    "thresholds_sane",
    "dependencies_met",
    "memory_accessible",
]);

#[rustfmt::skip]
// The third column is the default as it would be written; an empty text means that there is none.
pub(super) const ROWS: &[Row] = &[
    later("progress.update_interval_seconds", SECONDS, "5", "How often the display is brought up to date")
        .also(&[same("progress_display.update_interval_seconds")]),
    later("progress.show_estimates", Kind::Flag, "true", "Whether the time left is estimated")
        .also(&[same("progress_display.show_estimates")]),
    later("progress.sound_alerts", Kind::Flag, "false", "Whether a bell rings")
        .also(&[same("progress_display.sound_alerts")]),
    later("progress.long_operation_seconds", SECONDS, "30", "When an operation counts as long")
        .also(&[same("progress_display.long_operation_seconds")]),
    later("progress.stall_detection_seconds", SECONDS, "60", "When silence is pointed out")
        .also(&[same("progress_display.stall_detection_seconds")]),

    // The automation of BMAD's own workflows.
    later("automation.enabled", Kind::Flag, "true", "Whether BMAD's workflows are automated"),
    later("defaults.require_final_approval", Kind::Flag, "true", "Whether a person signs off at the end")
        .also(&[same("automation.require_final_approval")]),
    later("defaults.auto_continue_threshold", Kind::Fraction, "0.80", "Confidence from which a menu is answered [C]"),
    later("defaults.checkpoint_at_decisions", Kind::Flag, "true", "Whether design decisions wait for a person"),
    later("defaults.max_fix_attempts", COUNT, "5", "Attempts for one failure of a validation"),
    later("defaults.batch_continue_size", COUNT, "3", "Menus in a row that are answered [C]"),

    // The review loop block, as far as no used setting has taken it over.
    later("review_loop.enabled", Kind::Flag, "true", "Whether the review loop runs at BMAD's menus"),
    later("review_loop.confidence_thresholds.minimal", Kind::Percent, "98", "Confidence above which the panel is minimal"),
    later("review_loop.confidence_thresholds.dual", Kind::Percent, "95", "Confidence from which the panel is dual"),
    later("review_loop.confidence_thresholds.full", Kind::Percent, "0", "Confidence from which the panel is full"),
    later("review_loop.tier_minimums.0", LEVEL, "", "The smallest panel at tier 0"),
    later("review_loop.tier_minimums.1", LEVEL, "", "The smallest panel at tier 1"),
    later("review_loop.tier_minimums.2", LEVEL, "", "The smallest panel at tier 2"),
    later("review_loop.tier_minimums.3", LEVEL, "", "The smallest panel at tier 3"),
    later("review_loop.tier_minimums.4", LEVEL, "", "The smallest panel at tier 4"),
    later("review_loop.subagents.adversarial.model", Kind::Text, "", "The adversarial reviewer's model"),
    later("review_loop.subagents.party.model", Kind::Text, "", "The party's model"),
    later("review_loop.subagents.elicitation.model", Kind::Text, "", "The elicitation reviewer's model"),
    later("review_loop.issue_tracker.filename_pattern", Kind::Text, "", "What trackers are called"),
    later("review_loop.issue_tracker.save_fix_patterns", Kind::Flag, "true", "Whether verified fixes are remembered"),

    // Checks and menus of BMAD's workflows.
    later("preflight_validation.enabled", Kind::Flag, "true", "Whether a workflow is checked before it starts"),
    later("preflight_validation.checks", CHECKS, "", "What is checked; else everything"),
    later("menu_rate_limiting.min_interval_seconds", SECONDS, "2", "Time between two menus that are shown"),
    later("menu_rate_limiting.max_consecutive_menus", COUNT, "10", "Menus in a row before a pause"),
    later("menu_rate_limiting.batch_silent_progress", Kind::Flag, "true", "Whether silent steps are summed up"),
    later("menu_rate_limiting.use_progress_indicator", Kind::Flag, "true", "Whether steps are shown as progress, not as menus"),

    // Tasks that no review has.
    later("agentConfig.perTask.TASK.primary", Kind::Text, "", "The agent for this kind of task"),
    later("agentConfig.perTask.TASK.fallback", Kind::TextOrNo, "", "The agent that steps in for it, or false"),
    later("agentConfig.perTask.TASK.model", Kind::Text, "", "The model for this kind of task"),
];
