//! What a review uses.

use tribunal_agents::driver::DRIVER_NAMES;
use tribunal_core::plan::MOST;

use super::{Row, read_as, row, same, weak};
use crate::settings::kind::Kind;

const COUNT: Kind = Kind::Whole { min: 1, max: 100 };
const AT_ONCE: Kind = Kind::Whole { min: 1, max: 32 };
const TIER: Kind = Kind::Whole { min: 0, max: 4 };
const TIMEOUT: Kind = Kind::Seconds { min: 1 };
/// A plan never has more; see `core::plan`.
const AT_LEAST: Kind = Kind::Whole { min: 1, max: MOST as u64 };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("tier", TIER, "2", "How heavy the process is: 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise")
        .also(&[read_as("automation.tier", Kind::TierOrSuggested), weak("defaults.default_tier", TIER)]),
    row("level", Kind::Words(&["minimal", "dual", "full"]), "", "How big the panel is; else it follows from the tier"),
    row("goal", Kind::Words(&["zero-open", "critical-only"]), "zero-open", "When a review is good"),
    row("target_confidence", Kind::Percent, "", "What confidence must come to before a review is called resolved; else it is only shown"),
    row("fix", Kind::Flag, "true", "Whether findings are fixed; false reviews only"),
    row("approve", Kind::Words(&["never", "each"]), "never", "Whether a person sees each patch before it lands"),
    row("verify", Kind::Commands, "[]", "Checks that must pass before a fix lands, run in a copy: a text for `sh -c`, or a list of words"),
    row("jobs", AT_ONCE, "3", "Runs of one command that work at the same time; 1: one after the other"),
    row("output_folder", Kind::Folder, "", "Where documents go; else BMAD's output folder, else .tribunal"),
    row("reviews_folder", Kind::Folder, "", "Where trackers and metrics go; else {output_folder}/reviews")
        .also(&[same("review_loop.issue_tracker.output_dir")]),

    row("agents.use", Kind::List, "", "The agents that take part; needed as soon as there are several")
        .also(&[weak("agentConfig.defaultPrimary", Kind::One)]),
    row("agents.at_once", AT_ONCE, "6", "Agents of one command that work at the same time; its runs get them in turn"),
    row("agents.on_limit", Kind::Words(&["fallback", "wait"]), "fallback", "At a usage limit: ask another agent, or wait for this one"),
    row("agents.continue", Kind::Flag, "true", "Whether agents go on with their sessions; false: every task in a fresh one"),
    row("agents.NAME.driver", Kind::Words(&DRIVER_NAMES), "", "How it is driven; an agent that is called like a client is that client"),
    row("agents.NAME.argv", Kind::List, "", "For `command`: the program and its arguments; it reads the prompt from standard input"),
    row("agents.NAME.script", Kind::Text, "", "For `replay`: a script, relative to the project"),
    row("agents.NAME.program", Kind::Text, "", "For a client: another program than its own name on the path"),
    row("agents.NAME.model", Kind::Text, "", "For a client: its model for every task; else by size, else its own choice"),
    row("agents.NAME.models.small", Kind::Text, "", "For a client: its model for small tasks"),
    row("agents.NAME.models.medium", Kind::Text, "", "For a client: its model for tasks of medium size"),
    row("agents.NAME.models.large", Kind::Text, "", "For a client: its model for large tasks"),
    row("agents.NAME.inherit", Kind::Words(&["nothing", "user", "project"]), "", "For a client: whose settings it sees; hooks never run"),
    row("agents.NAME.bypass", Kind::Flag, "", "For a client: fixers work without its own permission checks"),
    row("agents.NAME.allow", Kind::List, "", "For a client: tools it may use beside those a task needs"),
    row("agents.NAME.fresh", Kind::Flag, "", "For a client: every task in a fresh session"),
    row("agents.NAME.provider", Kind::Text, "", "Whose model it asks; agents of one provider are one voice. Else its vendor or name"),
    row("agents.NAME.stronger", Kind::Text, "", "The agent that takes its tasks after two failures in a row; it need not be under `use`"),

    row("mcp.NAME.argv", Kind::List, "", "An MCP server for agents that are clients: the program and its arguments"),

    row("agentConfig.defaultFallback", Kind::TextOrNo, "", "The agent that steps in for those who take part, or false"),
    row("agentConfig.perTask.JOB.primary", Kind::Text, "", "The agent for this kind of task; the others stand by"),
    row("agentConfig.perTask.JOB.fallback", Kind::TextOrNo, "", "The agent that steps in first, or false for none"),
    row("agentConfig.perTask.JOB.model", Kind::Text, "", "The model for this kind of task"),
    row("agentConfig.complexityOverrides.COMPLEXITY.primary", Kind::Text, "", "The agent at tiers 0-1 (low), 2-3 (medium), 4 (high)"),
    row("agentConfig.complexityOverrides.COMPLEXITY.fallback", Kind::TextOrNo, "", "The agent that steps in first, or false"),
    row("agentConfig.complexityOverrides.COMPLEXITY.model", Kind::Text, "", "The model at this complexity"),
    row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.primary", Kind::Text, "", "The agent for this kind of task"),
    row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.fallback", Kind::TextOrNo, "", "The agent that steps in, or false"),
    row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.model", Kind::Text, "", "The model for this kind of task"),

    row("limits.max_review_rounds", COUNT, "3", "Rounds of a review")
        .also(&[same("review_loop.limits.max_review_rounds")]),
    row("limits.max_fix_iterations", COUNT, "3", "Fix iterations in one round")
        .also(&[same("review_loop.limits.max_fix_iterations")]),
    row("limits.max_failures", COUNT, "5", "Failures in a row")
        .also(&[same("limits.max_consecutive_failures"), same("review_loop.limits.max_consecutive_failures")]),
    row("limits.max_findings", Kind::Whole { min: 1, max: 1000 }, "50", "Findings that are valid, open or fixed")
        .also(&[same("limits.max_total_issues"), same("review_loop.limits.max_total_issues")]),
    row("limits.max_runtime_minutes", Kind::Minutes, "120", "How long a run may work; waiting for a person does not count")
        .also(&[
            read_as("limits.max_runtime_seconds", TIMEOUT),
            read_as("review_loop.limits.max_runtime_seconds", TIMEOUT),
        ]),
    row("limits.max_wait", Kind::Seconds { min: 0 }, "43200", "How long a run may wait for usage limits in all; this is no runtime"),
    row("limits.max_cost", Kind::Cost, "5.00", "What a run may cost, where agents report it"),
    row("limits.calls_per_hour", Kind::Whole { min: 1, max: 100_000 }, "100", "Calls of clients in an hour, by all runs here"),
    row("limits.max_tokens", Kind::Whole { min: 1, max: 1_000_000_000 }, "1000000", "Weighted tokens a run may use"),

    row("tasks.required_issues", Kind::Whole { min: 0, max: 20 }, "3", "What a reviewer must find in round 1, or is asked once more")
        .also(&[same("review_loop.subagents.adversarial.required_issues")]),
    row("tasks.max_concurrent_fixers", Kind::Whole { min: 1, max: 16 }, "3", "Fixers at work at once")
        .also(&[same("review_loop.limits.max_concurrent_fixers")]),
    row("tasks.max_issues_per_agent", Kind::Whole { min: 1, max: 50 }, "5", "Findings one fixer gets at once")
        .also(&[same("review_loop.subagents.fixer.max_issues_per_agent")]),
    row("tasks.party_min_agents", AT_LEAST, "3", "Personas in a party, at least")
        .also(&[same("review_loop.subagents.party.min_agents")]),
    row("tasks.party_max_rounds", COUNT, "3", "Rounds of cross-examination in a party, at most")
        .also(&[same("review_loop.subagents.party.max_rounds")]),
    row("tasks.elicitation_min_methods", AT_LEAST, "3", "Methods of an elicitation, at least")
        .also(&[same("review_loop.subagents.elicitation.min_methods")]),
    row("tasks.reviewer_timeout", TIMEOUT, "900", "How long a reviewer may take")
        .also(&[same("review_loop.subagents.adversarial.timeout")]),
    row("tasks.party_timeout", TIMEOUT, "1200", "How long the party may take")
        .also(&[same("review_loop.subagents.party.timeout")]),
    row("tasks.elicitation_timeout", TIMEOUT, "", "How long elicitation may take; else as any reviewer")
        .also(&[same("review_loop.subagents.elicitation.timeout")]),
    row("tasks.fixer_timeout", TIMEOUT, "900", "How long a fixer may take")
        .also(&[same("review_loop.subagents.fixer.timeout")]),
    row("tasks.fixer_model", Kind::Text, "", "The model of fixers that are Claude Code, unless one is set for the task `fix`")
        .also(&[same("review_loop.subagents.fixer.model")]),
    row("tasks.check_timeout", TIMEOUT, "600", "How long a check may take"),
    row("tasks.idle_timeout", TIMEOUT, "600", "How long an agent may say nothing"),
    row("tasks.retry_after", Kind::Seconds { min: 0 }, "5", "Pause before a failed task is tried once more"),

    row("copies.seed", Kind::List, "[]", "Ignored files and folders that agents and checks need in their copies, relative to the project"),

    row("hooks.guard_paths", Kind::Words(&["off", "project", "subject"]), "project", "Where an agent may write while hooks watch it"),
    row("hooks.guard_own_files", Kind::Flag, "true", "Whether agents are kept from changing Tribunal's own files"),
    row("hooks.guard_destructive", Kind::Flag, "true", "Whether agents are kept from commands that nobody can take back"),
    row("hooks.stale_after", Kind::Whole { min: 1, max: 8760 }, "24", "Hours without a sign after which a session is no longer waited for"),

    row("progress.mode", Kind::Words(&["silent", "summary", "streaming", "verbose"]), "streaming", "How much is shown while a run works")
        .also(&[same("progress_display.mode")]),
];
