//! Settings that this version uses: reviews, hooks, agents.

use tribunal_agents::driver::DRIVER_NAMES;
use tribunal_core::plan::MOST;

use super::{Row, named, read_as, row, same, weak};
use crate::settings::{
    codec::{
        APPROVE, Approve, GUARD_PATHS, GuardPaths, Hours, Maybe, ON_LIMIT, OnLimit, Plain, Seconds, Word,
        field,
    },
    kind::Kind,
};

const COUNT: Kind = Kind::Whole { min: 1, max: 100 };
const AT_ONCE: Kind = Kind::Whole { min: 1, max: 32 };
const TIER: Kind = Kind::Whole { min: 0, max: 4 };
const TIMEOUT: Kind = Kind::Seconds { min: 1 };
/// A plan never has more than this; see `core::plan`.
const AT_LEAST: Kind = Kind::Whole { min: 1, max: MOST as u64 };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // The process as a whole.
    row("tier", TIER, field!(Plain, run.tier),
        "How heavy the process is: 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise")
        .also(&[read_as("automation.tier", Kind::TierOrSuggested), weak("defaults.default_tier", TIER)]),
    row("level", Kind::Words(&["minimal", "dual", "full"]), field!(Maybe<Word>, run.level),
        "How big the panel is; else it follows from the tier"),
    row("goal", Kind::Words(&["zero-open", "critical-only"]), field!(Word, run.goal),
        "When a review is good"),
    row("target_confidence", Kind::Percent, field!(Maybe<Plain>, run.target_confidence),
        "What confidence must come to before a review is called resolved; else it is only shown"),
    row("fix", Kind::Flag, field!(Plain, run.fix),
        "Whether findings are fixed; false reviews only"),
    row("approve", Kind::Words(APPROVE), field!(Approve, run.tasks.writing.approve_each),
        "Whether a person sees each patch before it lands"),
    row("verify", Kind::Commands, field!(Plain, run.verify),
        "Checks that must pass before a fix lands, run in a copy: a text for `sh -c`, or a list of words"),
    row("jobs", AT_ONCE, field!(Plain, share.jobs),
        "Runs of one command that work at the same time; 1: one after the other"),
    row("output_folder", Kind::Folder, field!(Maybe<Plain>, folders.output),
        "Where documents go; else BMAD's output folder, else .tribunal"),
    row("reviews_folder", Kind::Folder, field!(Maybe<Plain>, folders.reviews),
        "Where trackers and metrics go; else {output_folder}/reviews")
        .also(&[same("review_loop.issue_tracker.output_dir")]),

    // Agents. Rows with `NAME` exist once for every agent that the user defines.
    row("agents.use", Kind::List, field!(Maybe<Plain>, agents.used),
        "The agents that take part; needed as soon as there are several")
        .also(&[weak("agentConfig.defaultPrimary", Kind::One)]),
    row("agents.at_once", AT_ONCE, field!(Plain, share.agents),
        "Agents of one command that work at the same time; its runs get them in turn"),
    row("agents.on_limit", Kind::Words(ON_LIMIT), field!(OnLimit, run.limits.waits.first),
        "At a usage limit: ask another agent, or wait for this one"),
    row("agents.continue", Kind::Flag, field!(Plain, agents.continue_sessions),
        "Whether agents go on with their sessions; false: every task in a fresh one"),
    named("agents.NAME.driver", Kind::Words(&DRIVER_NAMES), "How it is driven; an agent that is called like a client is that client"),
    named("agents.NAME.argv", Kind::List, "For `command`: the program and its arguments; it reads the prompt from standard input"),
    named("agents.NAME.script", Kind::Text, "For `replay`: a script, relative to the project"),
    named("agents.NAME.program", Kind::Text, "For a client: another program than its own name on the path"),
    named("agents.NAME.model", Kind::Text, "For a client: its model for every task; else by size, else its own choice"),
    named("agents.NAME.models.small", Kind::Text, "For a client: its model for small tasks"),
    named("agents.NAME.models.medium", Kind::Text, "For a client: its model for tasks of medium size"),
    named("agents.NAME.models.large", Kind::Text, "For a client: its model for large tasks"),
    named("agents.NAME.inherit", Kind::Words(&["nothing", "user", "project"]), "For a client: whose settings it sees; hooks never run"),
    named("agents.NAME.bypass", Kind::Flag, "For a client: fixers work without its own permission checks"),
    named("agents.NAME.allow", Kind::List, "For a client: tools it may use beside those a task needs"),
    named("agents.NAME.fresh", Kind::Flag, "For a client: every task in a fresh session"),
    named("agents.NAME.provider", Kind::Text, "Whose model it asks; agents of one provider are one voice. Else its vendor or name"),
    named("agents.NAME.stronger", Kind::Text, "The agent that takes its tasks after two failures in a row; it need not be under `use`"),

    named("mcp.NAME.argv", Kind::List, "An MCP server for agents that are clients: the program and its arguments"),

    // Jobs of agents, in the spelling of BMAD's `agentConfig` block.
    named("agentConfig.defaultFallback", Kind::TextOrNo, "The agent that steps in for those who take part, or false"),
    named("agentConfig.perTask.JOB.primary", Kind::Text, "The agent for this kind of task; the others stand by"),
    named("agentConfig.perTask.JOB.fallback", Kind::TextOrNo, "The agent that steps in first, or false for none"),
    named("agentConfig.perTask.JOB.model", Kind::Text, "The model for this kind of task"),
    named("agentConfig.complexityOverrides.COMPLEXITY.primary", Kind::Text, "The agent at tiers 0-1 (low), 2-3 (medium), 4 (high)"),
    named("agentConfig.complexityOverrides.COMPLEXITY.fallback", Kind::TextOrNo, "The agent that steps in first, or false"),
    named("agentConfig.complexityOverrides.COMPLEXITY.model", Kind::Text, "The model at this complexity"),
    named("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.primary", Kind::Text, "The agent for this kind of task"),
    named("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.fallback", Kind::TextOrNo, "The agent that steps in, or false"),
    named("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.model", Kind::Text, "The model for this kind of task"),

    // Limits of a run. Aliases below `review_loop` come from pasted blocks.
    row("limits.max_review_rounds", COUNT, field!(Plain, run.limits.rounds),
        "Rounds of a review")
        .also(&[same("review_loop.limits.max_review_rounds")]),
    row("limits.max_fix_iterations", COUNT, field!(Plain, run.limits.fix_iterations),
        "Fix iterations in one round")
        .also(&[same("review_loop.limits.max_fix_iterations")]),
    row("limits.max_failures", COUNT, field!(Plain, run.limits.failures),
        "Failures in a row")
        .also(&[same("limits.max_consecutive_failures"), same("review_loop.limits.max_consecutive_failures")]),
    row("limits.max_findings", Kind::Whole { min: 1, max: 1000 }, field!(Plain, run.limits.findings),
        "Findings that are valid, open or fixed")
        .also(&[same("limits.max_total_issues"), same("review_loop.limits.max_total_issues")]),
    row("limits.max_runtime_minutes", Kind::Minutes, field!(Seconds, run.limits.runtime_ms),
        "How long a run may work; waiting for a person does not count")
        .also(&[
            // The pasted blocks count in seconds, so the alias has a kind of its own.
            read_as("limits.max_runtime_seconds", TIMEOUT),
            read_as("review_loop.limits.max_runtime_seconds", TIMEOUT),
        ]),
    row("limits.max_wait", Kind::Seconds { min: 0 }, field!(Seconds, run.limits.waits.at_most_ms),
        "How long a run may wait for usage limits in all; this is no runtime"),
    row("limits.max_cost", Kind::Cost, field!(Plain, run.limits.cost),
        "What a run may cost, where agents report it"),
    row("limits.calls_per_hour", Kind::Whole { min: 1, max: 100_000 }, field!(Plain, share.calls),
        "Calls of clients in an hour, by all runs here"),
    row("limits.max_tokens", Kind::Whole { min: 1, max: 1_000_000_000 }, field!(Plain, run.limits.tokens),
        "Weighted tokens a run may use"),

    // Single tasks: how much they get and how long they may take.
    row("tasks.required_issues", Kind::Whole { min: 0, max: 20 }, field!(Plain, run.tasks.required_issues),
        "What a reviewer must find in round 1, or is asked once more")
        .also(&[same("review_loop.subagents.adversarial.required_issues")]),
    row("tasks.max_concurrent_fixers", Kind::Whole { min: 1, max: 16 }, field!(Plain, run.tasks.max_concurrent_fixers),
        "Fixers at work at once")
        .also(&[same("review_loop.limits.max_concurrent_fixers")]),
    row("tasks.max_issues_per_agent", Kind::Whole { min: 1, max: 50 }, field!(Plain, run.tasks.max_issues_per_agent),
        "Findings one fixer gets at once")
        .also(&[same("review_loop.subagents.fixer.max_issues_per_agent")]),
    row("tasks.party_min_agents", AT_LEAST, field!(Plain, run.tasks.plans.min_agents),
        "Personas in a party, at least")
        .also(&[same("review_loop.subagents.party.min_agents")]),
    row("tasks.party_max_rounds", COUNT, field!(Plain, run.tasks.plans.max_rounds),
        "Rounds of cross-examination in a party, at most")
        .also(&[same("review_loop.subagents.party.max_rounds")]),
    row("tasks.elicitation_min_methods", AT_LEAST, field!(Plain, run.tasks.plans.min_methods),
        "Methods of an elicitation, at least")
        .also(&[same("review_loop.subagents.elicitation.min_methods")]),
    row("tasks.reviewer_timeout", TIMEOUT, field!(Seconds, run.tasks.reviewer_timeout_ms),
        "How long a reviewer may take")
        .also(&[same("review_loop.subagents.adversarial.timeout")]),
    row("tasks.party_timeout", TIMEOUT, field!(Seconds, run.tasks.party_timeout_ms),
        "How long the party may take")
        .also(&[same("review_loop.subagents.party.timeout")]),
    row("tasks.elicitation_timeout", TIMEOUT, field!(Maybe<Seconds>, run.tasks.elicitation_timeout_ms),
        "How long elicitation may take; else as any reviewer")
        .also(&[same("review_loop.subagents.elicitation.timeout")]),
    row("tasks.fixer_timeout", TIMEOUT, field!(Seconds, run.tasks.fixer_timeout_ms),
        "How long a fixer may take")
        .also(&[same("review_loop.subagents.fixer.timeout")]),
    row("tasks.fixer_model", Kind::Text, field!(Maybe<Plain>, agents.fixer_model),
        "The model of fixers that are Claude Code, unless one is set for the task `fix`")
        .also(&[same("review_loop.subagents.fixer.model")]),
    row("tasks.check_timeout", TIMEOUT, field!(Seconds, run.tasks.check_timeout_ms),
        "How long a check may take"),
    row("tasks.idle_timeout", TIMEOUT, field!(Seconds, run.tasks.idle_timeout_ms),
        "How long an agent may say nothing"),
    row("tasks.retry_after", Kind::Seconds { min: 0 }, field!(Seconds, run.tasks.retry_after_ms),
        "Pause before a failed task is tried once more"),

    // Workspaces of agents.
    row("copies.seed", Kind::List, field!(Plain, run.tasks.writing.seeds),
        "Ignored files and folders that agents and checks need in their copies, relative to the project"),

    // Hooks in sessions of coding clients; `settings::hooks` reads only these.
    row("hooks.guard_paths", Kind::Words(GUARD_PATHS), field!(GuardPaths, hooks.guard.paths),
        "Where an agent may write while hooks watch it"),
    row("hooks.guard_own_files", Kind::Flag, field!(Plain, hooks.guard.own_files),
        "Whether agents are kept from changing Tribunal's own files"),
    row("hooks.guard_destructive", Kind::Flag, field!(Plain, hooks.guard.destructive),
        "Whether agents are kept from commands that nobody can take back"),
    row("hooks.stale_after", Kind::Whole { min: 1, max: 8760 }, field!(Hours, hooks.stale_after),
        "Hours without a sign after which a session is no longer waited for"),

    // The display. It is not pinned to a run.
    row("progress.mode", Kind::Words(&["silent", "summary", "streaming", "verbose"]), field!(Plain, progress),
        "How much is shown while a run works")
        .also(&[same("progress_display.mode")]),
];
