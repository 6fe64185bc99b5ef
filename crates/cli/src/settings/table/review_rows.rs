//! Settings that this version uses: reviews, hooks, agents.

use tribunal_agents::driver::DRIVER_NAMES;
use tribunal_core::plan::MAX_PICKS;

use super::{SettingRow, field_row, other_kind, path_row, same_kind, weak_alias};
use crate::settings::{
    codec::{APPROVE, Approve, GUARD_PATHS, GuardPaths, Hours, Maybe, ON_LIMIT, OnLimit, Plain, Seconds, Word, field},
    kind::ValueKind,
};

const COUNT_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 100 };
const AT_ONCE_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 32 };
const TIER_KIND: ValueKind = ValueKind::Whole { minimum: 0, maximum: 4 };
const TIMEOUT_KIND: ValueKind = ValueKind::Seconds { minimum: 1 };
/// A plan never has more than this; see `core::plan`.
const AT_LEAST_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: MAX_PICKS as u64 };

#[rustfmt::skip]
pub(super) const REVIEW_ROWS: &[SettingRow] = &[
    // The process as a whole.
    field_row("tier", TIER_KIND, field!(Plain, run.tier),
        "How heavy the process is: 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise")
        .with_aliases(&[other_kind("automation.tier", ValueKind::TierOrSuggested), weak_alias("defaults.default_tier", TIER_KIND)]),
    field_row("level", ValueKind::Words(&["minimal", "dual", "full"]), field!(Maybe<Word>, run.level),
        "How big the panel is; else it follows from the tier"),
    field_row("goal", ValueKind::Words(&["zero-open", "critical-only"]), field!(Word, run.goal),
        "When a review is good"),
    field_row("target_confidence", ValueKind::Percent, field!(Maybe<Plain>, run.target_confidence),
        "What confidence must come to before a review is called resolved; else it is only shown"),
    field_row("fix", ValueKind::Flag, field!(Plain, run.fix),
        "Whether findings are fixed; false reviews only"),
    field_row("approve", ValueKind::Words(APPROVE), field!(Approve, run.tasks.writing.approve_each),
        "Whether a person sees each patch before it lands"),
    field_row("verify", ValueKind::Commands, field!(Plain, run.verify),
        "Checks that must pass before a fix lands, run in a copy: a text for `sh -c`, or a list of words"),
    field_row("jobs", AT_ONCE_KIND, field!(Plain, share.jobs),
        "Runs of one command that work at the same time; 1: one after the other"),
    field_row("output_folder", ValueKind::Folder, field!(Maybe<Plain>, folders.output),
        "Where documents go; else BMAD's output folder, else .tribunal"),
    field_row("reviews_folder", ValueKind::Folder, field!(Maybe<Plain>, folders.reviews),
        "Where trackers and metrics go; else {output_folder}/reviews")
        .with_aliases(&[same_kind("review_loop.issue_tracker.output_dir")]),

    // Agents. Rows with `NAME` exist once for every agent that the user defines.
    field_row("agents.use", ValueKind::List, field!(Maybe<Plain>, agents.used),
        "The agents that take part; needed as soon as there are several")
        .with_aliases(&[weak_alias("agentConfig.defaultPrimary", ValueKind::SingleName)]),
    field_row("agents.at_once", AT_ONCE_KIND, field!(Plain, share.agents),
        "Agents of one command that work at the same time; its runs get them in turn"),
    field_row("agents.on_limit", ValueKind::Words(ON_LIMIT), field!(OnLimit, run.limits.waits.first),
        "At a usage limit: ask another agent, or wait for this one"),
    field_row("agents.continue", ValueKind::Flag, field!(Plain, agents.continue_sessions),
        "Whether agents go on with their sessions; false: every task in a fresh one"),
    path_row("agents.NAME.driver", ValueKind::Words(&DRIVER_NAMES),
        "How it is driven; an agent that is called like a client is that client"),
    path_row("agents.NAME.argv", ValueKind::List, "For `command`: the program and its arguments; it reads the prompt from standard input"),
    path_row("agents.NAME.script", ValueKind::Text, "For `replay`: a script, relative to the project"),
    path_row("agents.NAME.program", ValueKind::Text, "For a client: another program than its own name on the path"),
    path_row("agents.NAME.model", ValueKind::Text, "For a client: its model for every task; else by size, else its own choice"),
    path_row("agents.NAME.models.small", ValueKind::Text, "For a client: its model for small tasks"),
    path_row("agents.NAME.models.medium", ValueKind::Text, "For a client: its model for tasks of medium size"),
    path_row("agents.NAME.models.large", ValueKind::Text, "For a client: its model for large tasks"),
    path_row("agents.NAME.inherit", ValueKind::Words(&["nothing", "user", "project"]),
        "For a client: whose settings it sees; hooks never run"),
    path_row("agents.NAME.bypass", ValueKind::Flag, "For a client: fixers work without its own permission checks"),
    path_row("agents.NAME.allow", ValueKind::List, "For a client: tools it may use beside those a task needs"),
    path_row("agents.NAME.fresh", ValueKind::Flag, "For a client: every task in a fresh session"),
    path_row("agents.NAME.provider", ValueKind::Text,
        "Whose model it asks; agents of one provider are one voice. Else its vendor or name"),
    path_row("agents.NAME.stronger", ValueKind::Text,
        "The agent that takes its tasks after two failures in a row; it need not be under `use`"),

    path_row("mcp.NAME.argv", ValueKind::List, "An MCP server for agents that are clients: the program and its arguments"),

    // Jobs of agents, in the spelling of BMAD's `agentConfig` block.
    path_row("agentConfig.defaultFallback", ValueKind::TextOrFalse, "The agent that steps in for those who take part, or false"),
    path_row("agentConfig.perTask.JOB.primary", ValueKind::Text, "The agent for this kind of task; the others stand by"),
    path_row("agentConfig.perTask.JOB.fallback", ValueKind::TextOrFalse, "The agent that steps in first, or false for none"),
    path_row("agentConfig.perTask.JOB.model", ValueKind::Text, "The model for this kind of task"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.primary", ValueKind::Text, "The agent at tiers 0-1 (low), 2-3 (medium), 4 (high)"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.fallback", ValueKind::TextOrFalse, "The agent that steps in first, or false"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.model", ValueKind::Text, "The model at this complexity"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.primary", ValueKind::Text, "The agent for this kind of task"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.fallback", ValueKind::TextOrFalse,
        "The agent that steps in, or false"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.model", ValueKind::Text, "The model for this kind of task"),

    // Limits of a run. Aliases below `review_loop` come from pasted blocks.
    field_row("limits.max_review_rounds", COUNT_KIND, field!(Plain, run.limits.rounds),
        "Rounds of a review")
        .with_aliases(&[same_kind("review_loop.limits.max_review_rounds")]),
    field_row("limits.max_fix_iterations", COUNT_KIND, field!(Plain, run.limits.fix_iterations),
        "Fix iterations in one round")
        .with_aliases(&[same_kind("review_loop.limits.max_fix_iterations")]),
    field_row("limits.max_failures", COUNT_KIND, field!(Plain, run.limits.failures),
        "Failures in a row")
        .with_aliases(&[same_kind("limits.max_consecutive_failures"), same_kind("review_loop.limits.max_consecutive_failures")]),
    field_row("limits.max_findings", ValueKind::Whole { minimum: 1, maximum: 1000 }, field!(Plain, run.limits.findings),
        "Findings that are valid, open or fixed")
        .with_aliases(&[same_kind("limits.max_total_issues"), same_kind("review_loop.limits.max_total_issues")]),
    field_row("limits.max_runtime_minutes", ValueKind::Minutes, field!(Seconds, run.limits.runtime_ms),
        "How long a run may work; waiting for a person does not count")
        .with_aliases(&[
            // The pasted blocks count in seconds, so the alias has a kind of its own.
            other_kind("limits.max_runtime_seconds", TIMEOUT_KIND),
            other_kind("review_loop.limits.max_runtime_seconds", TIMEOUT_KIND),
        ]),
    field_row("limits.max_wait", ValueKind::Seconds { minimum: 0 }, field!(Seconds, run.limits.waits.at_most_ms),
        "How long a run may wait for usage limits in all; this is no runtime"),
    field_row("limits.max_cost", ValueKind::Cost, field!(Plain, run.limits.cost),
        "What a run may cost, where agents report it"),
    field_row("limits.calls_per_hour", ValueKind::Whole { minimum: 1, maximum: 100_000 }, field!(Plain, share.calls),
        "Calls of clients in an hour, by all runs here"),
    field_row("limits.max_tokens", ValueKind::Whole { minimum: 1, maximum: 1_000_000_000 }, field!(Plain, run.limits.tokens),
        "Weighted tokens a run may use"),

    // Single tasks: how much they get and how long they may take.
    field_row("tasks.required_issues", ValueKind::Whole { minimum: 0, maximum: 20 }, field!(Plain, run.tasks.required_issues),
        "What a reviewer must find in round 1, or is asked once more")
        .with_aliases(&[same_kind("review_loop.subagents.adversarial.required_issues")]),
    field_row("tasks.max_concurrent_fixers", ValueKind::Whole { minimum: 1, maximum: 16 }, field!(Plain, run.tasks.max_concurrent_fixers),
        "Fixers at work at once")
        .with_aliases(&[same_kind("review_loop.limits.max_concurrent_fixers")]),
    field_row("tasks.max_issues_per_agent", ValueKind::Whole { minimum: 1, maximum: 50 }, field!(Plain, run.tasks.max_issues_per_agent),
        "Findings one fixer gets at once")
        .with_aliases(&[same_kind("review_loop.subagents.fixer.max_issues_per_agent")]),
    field_row("tasks.party_min_agents", AT_LEAST_KIND, field!(Plain, run.tasks.plans.min_agents),
        "Personas in a party, at least")
        .with_aliases(&[same_kind("review_loop.subagents.party.min_agents")]),
    field_row("tasks.party_max_rounds", COUNT_KIND, field!(Plain, run.tasks.plans.max_rounds),
        "Rounds of cross-examination in a party, at most")
        .with_aliases(&[same_kind("review_loop.subagents.party.max_rounds")]),
    field_row("tasks.elicitation_min_methods", AT_LEAST_KIND, field!(Plain, run.tasks.plans.min_methods),
        "Methods of an elicitation, at least")
        .with_aliases(&[same_kind("review_loop.subagents.elicitation.min_methods")]),
    field_row("tasks.reviewer_timeout", TIMEOUT_KIND, field!(Seconds, run.tasks.reviewer_timeout_ms),
        "How long a reviewer may take")
        .with_aliases(&[same_kind("review_loop.subagents.adversarial.timeout")]),
    field_row("tasks.party_timeout", TIMEOUT_KIND, field!(Seconds, run.tasks.party_timeout_ms),
        "How long the party may take")
        .with_aliases(&[same_kind("review_loop.subagents.party.timeout")]),
    field_row("tasks.elicitation_timeout", TIMEOUT_KIND, field!(Maybe<Seconds>, run.tasks.elicitation_timeout_ms),
        "How long elicitation may take; else as any reviewer")
        .with_aliases(&[same_kind("review_loop.subagents.elicitation.timeout")]),
    field_row("tasks.fixer_timeout", TIMEOUT_KIND, field!(Seconds, run.tasks.fixer_timeout_ms),
        "How long a fixer may take")
        .with_aliases(&[same_kind("review_loop.subagents.fixer.timeout")]),
    field_row("tasks.fixer_model", ValueKind::Text, field!(Maybe<Plain>, agents.fixer_model),
        "The model of fixers that are Claude Code, unless one is set for the task `fix`")
        .with_aliases(&[same_kind("review_loop.subagents.fixer.model")]),
    field_row("tasks.check_timeout", TIMEOUT_KIND, field!(Seconds, run.tasks.check_timeout_ms),
        "How long a check may take"),
    field_row("tasks.idle_timeout", TIMEOUT_KIND, field!(Seconds, run.tasks.idle_timeout_ms),
        "How long an agent may say nothing"),
    field_row("tasks.retry_after", ValueKind::Seconds { minimum: 0 }, field!(Seconds, run.tasks.retry_after_ms),
        "Pause before a failed task is tried once more"),

    // Workspaces of agents.
    field_row("copies.seed", ValueKind::List, field!(Plain, run.tasks.writing.seeds),
        "Ignored files and folders that agents and checks need in their copies, relative to the project"),

    // Hooks in sessions of coding clients; `settings::hooks` reads only these.
    field_row("hooks.guard_paths", ValueKind::Words(GUARD_PATHS), field!(GuardPaths, hooks.guard.paths),
        "Where an agent may write while hooks watch it"),
    field_row("hooks.guard_own_files", ValueKind::Flag, field!(Plain, hooks.guard.own_files),
        "Whether agents are kept from changing Tribunal's own files"),
    field_row("hooks.guard_destructive", ValueKind::Flag, field!(Plain, hooks.guard.destructive),
        "Whether agents are kept from commands that cannot be undone"),
    field_row("hooks.stale_after", ValueKind::Whole { minimum: 1, maximum: 8760 }, field!(Hours, hooks.stale_after),
        "Hours without a sign after which a session is no longer waited for"),

    // The display. It is not pinned to a run.
    field_row("progress.mode", ValueKind::Words(&["silent", "summary", "streaming", "verbose"]), field!(Plain, progress),
        "How much is shown while a run works")
        .with_aliases(&[same_kind("progress_display.mode")]),
];
