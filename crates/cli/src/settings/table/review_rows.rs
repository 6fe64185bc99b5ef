//! Settings that this version uses: reviews, hooks, agents.

use tribunal_agents::driver::DRIVER_NAMES;
use tribunal_workflows::findings::seat_plan::MAX_PICKS;

use super::{SettingRow, field_row, other_kind, path_row, same_kind, weak_alias};
use crate::settings::{
    codec::{APPROVE, Approve, GUARD_PATHS, GuardPaths, Hours, Maybe, ON_LIMIT, OnLimit, Plain, Seconds, Word, field},
    kind::ValueKind,
};

const COUNT_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 100 };
const AT_ONCE_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: 32 };
const LEVEL_KIND: ValueKind = ValueKind::Words(&["minimal", "dual", "full"]);
const ROLES_KIND: ValueKind = ValueKind::ListOf(&["party", "spec", "quality", "adversarial", "elicitation"]);
const TIER_KIND: ValueKind = ValueKind::Whole { minimum: 0, maximum: 4 };
const TIMEOUT_KIND: ValueKind = ValueKind::Seconds { minimum: 1 };
/// A plan never has more than this; see `findings::seat_plan` in `workflows`.
const AT_LEAST_KIND: ValueKind = ValueKind::Whole { minimum: 1, maximum: MAX_PICKS as u64 };

/// The reviews of stories are arranged when a story, or the sprint that it belongs to, begins.
const IN_STORIES: &[&str] = &["story", "sprint"];

#[rustfmt::skip]
pub(super) const REVIEW_ROWS: &[SettingRow] = &[
    // The process as a whole.
    field_row("tier", TIER_KIND, field!(Plain, run.tier),
        "How thorough the process is: 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise")
        .pinned(&["review", "loop", "story", "sprint"])
        .with_aliases(&[other_kind("automation.tier", ValueKind::TierOrSuggested), weak_alias("defaults.default_tier", TIER_KIND)]),
    field_row("level", LEVEL_KIND, field!(Maybe<Word>, review.level),
        "Size of the review panel; by default, it follows from the tier and the confidence of the last review")
        .pinned(&["review", "story", "sprint"]),
    field_row("document_output_language", ValueKind::Text, field!(Maybe<Plain>, review.document_language),
        "Language of the project's documents, for new text and suggested fixes; by default, the one in BMAD's settings"),
    field_row("goal", ValueKind::Words(&["zero-open", "critical-only"]), field!(Word, review.goal),
        "When a review counts as resolved: no open findings, or no critical ones")
        .pinned(&["review"]),
    field_row("fail_on", ValueKind::Words(&["critical", "high", "medium", "low"]), field!(Maybe<Word>, fail_on),
        "Exit with 3 if an ended review leaves a finding of this severity or a higher one, and with 0 if not"),
    field_row("target_confidence", ValueKind::Percent, field!(Maybe<Plain>, review.target_confidence),
        "Minimum confidence for a review to count as resolved; if unset, the confidence is only shown"),
    field_row("fix", ValueKind::Flag, field!(Plain, review.fix),
        "Whether to fix findings; false only reviews")
        .pinned(&["review"]),
    field_row("approve", ValueKind::Words(APPROVE), field!(Approve, review.fixers.approve_each),
        "Whether you approve each patch before it is applied")
        .pinned(IN_STORIES),
    field_row("verify", ValueKind::Commands, field!(Plain, verify),
        "Checks that must pass before a fix is applied, run in a workspace: a string for `sh -c`, or a list of words"),
    field_row("checks", ValueKind::Checks, field!(Plain, run.checks),
        "Checks with more to say: `command`, `when` (step or completion), `on_failure` (warn, block or fix), `timeout` in seconds"),
    field_row("baseline", ValueKind::Flag, field!(Plain, review.baseline),
        "Whether to run the checks once before the first agent is asked; not without fixing")
        .pinned(&["sprint"]),
    field_row("jobs", AT_ONCE_KIND, field!(Plain, share.jobs),
        "Maximum number of runs of one command at the same time; 1 means one after the other"),
    field_row("output_folder", ValueKind::Folder, field!(Maybe<Plain>, folders.output),
        "Directory for documents; by default, BMAD's output directory, or else .tribunal"),
    field_row("reviews_folder", ValueKind::Folder, field!(Maybe<Plain>, folders.reviews),
        "Directory for trackers and metrics; by default, {output_folder}/reviews")
        .with_aliases(&[same_kind("review_loop.issue_tracker.output_dir")]),

    // How large the panel is; a pasted block has other names for it.
    field_row("levels.policy", ValueKind::Words(&["table", "floor"]), field!(Word, review.level_rules.policy),
        "Whether the panel is at least as large as the minimum of the tier (floor), or follows from the table alone")
        .with_aliases(&[same_kind("level_policy"), same_kind("review_loop.level_policy")]),
    field_row("levels.minimal_above", ValueKind::Percent, field!(Plain, review.level_rules.minimal_above),
        "Confidence of the last review above which the panel is minimal, from tier 2 on")
        .with_aliases(&[same_kind("review_loop.confidence_thresholds.minimal")]),
    field_row("levels.dual_from", ValueKind::Percent, field!(Plain, review.level_rules.dual_from),
        "Confidence of the last review from which the panel is dual, from tier 2 on")
        .with_aliases(&[same_kind("review_loop.confidence_thresholds.dual")]),
    field_row("levels.tier_0_minimum", LEVEL_KIND, field!(Maybe<Word>, review.level_rules.tier_minimums.tier_0),
        "Smallest panel at tier 0, with `policy: floor`")
        .with_aliases(&[same_kind("review_loop.tier_minimums.0")]),
    field_row("levels.tier_1_minimum", LEVEL_KIND, field!(Maybe<Word>, review.level_rules.tier_minimums.tier_1),
        "Smallest panel at tier 1, with `policy: floor`")
        .with_aliases(&[same_kind("review_loop.tier_minimums.1")]),
    field_row("levels.tier_2_minimum", LEVEL_KIND, field!(Maybe<Word>, review.level_rules.tier_minimums.tier_2),
        "Smallest panel at tier 2, with `policy: floor`")
        .with_aliases(&[same_kind("review_loop.tier_minimums.2")]),
    field_row("levels.tier_3_minimum", LEVEL_KIND, field!(Maybe<Word>, review.level_rules.tier_minimums.tier_3),
        "Smallest panel at tier 3, with `policy: floor`")
        .with_aliases(&[same_kind("review_loop.tier_minimums.3")]),
    field_row("levels.tier_4_minimum", LEVEL_KIND, field!(Maybe<Word>, review.level_rules.tier_minimums.tier_4),
        "Smallest panel at tier 4, with `policy: floor`")
        .with_aliases(&[same_kind("review_loop.tier_minimums.4")]),
    field_row("review_loop.enabled", ValueKind::Flag, field!(Plain, is_review_enabled),
        "Whether reviews may start at all"),

    // Agents. Rows with `NAME` exist once for every agent that the user defines.
    field_row("agents.use", ValueKind::List, field!(Maybe<Plain>, agents.used),
        "Agents that take part; required if several are defined")
        .with_aliases(&[weak_alias("agentConfig.defaultPrimary", ValueKind::SingleName)]),
    field_row("agents.at_once", AT_ONCE_KIND, field!(Plain, share.agents),
        "Maximum number of agents of one command at the same time, shared by its runs"),
    field_row("agents.on_limit", ValueKind::Words(ON_LIMIT), field!(OnLimit, run.limits.waits.first),
        "At a usage limit: fall back to another agent, or wait for this one"),
    field_row("agents.continue", ValueKind::Flag, field!(Plain, agents.continue_sessions),
        "Whether agents continue their sessions; false starts a new session for every task"),
    path_row("agents.NAME.driver", ValueKind::Words(&DRIVER_NAMES),
        "How the agent is driven; an agent named like a client uses that client"),
    path_row("agents.NAME.argv", ValueKind::Argv, "For `command`: the program and its arguments; it reads the prompt from standard input"),
    path_row("agents.NAME.script", ValueKind::Text, "For `replay`: path of the script, relative to the project"),
    path_row("agents.NAME.program", ValueKind::Text, "For a client: program to use instead of the one found in PATH"),
    path_row("agents.NAME.model", ValueKind::Text,
        "For a client: model for all tasks; by default, the one for the task's size, or else the client's choice"),
    path_row("agents.NAME.models.small", ValueKind::Text, "For a client: model for small tasks"),
    path_row("agents.NAME.models.medium", ValueKind::Text, "For a client: model for medium-sized tasks"),
    path_row("agents.NAME.models.large", ValueKind::Text, "For a client: model for large tasks"),
    path_row("agents.NAME.inherit", ValueKind::Words(&["nothing", "user", "project"]),
        "For a client: which settings it inherits; hooks never run"),
    path_row("agents.NAME.bypass", ValueKind::Flag, "For a client: fixers work without the client's own permission checks"),
    path_row("agents.NAME.allow", ValueKind::List, "For a client: tools it may use in addition to those a task needs"),
    path_row("agents.NAME.fresh", ValueKind::Flag, "For a client: start a new session for every task"),
    path_row("agents.NAME.provider", ValueKind::Text,
        "Provider of its model; agents of one provider count as one voice. By default, its vendor or name"),
    path_row("agents.NAME.stronger", ValueKind::Text,
        "Agent that takes over its tasks after two failures in a row; it need not be listed in `use`"),

    path_row("mcp.NAME.argv", ValueKind::Argv, "MCP server for agents that are clients: the program and its arguments"),
    path_row("mcp.NAME.roles", ROLES_KIND, "Reviewers that are told to use this server; by default, all of them"),

    // Jobs of agents, in the spelling of BMAD's `agentConfig` block.
    path_row("agentConfig.defaultFallback", ValueKind::TextOrFalse, "Agent that steps in if another one fails, or false for none"),
    path_row("agentConfig.perTask.JOB.primary", ValueKind::Text, "Agent for this kind of task; the others stand by"),
    path_row("agentConfig.perTask.JOB.fallback", ValueKind::TextOrFalse, "Agent that steps in first, or false for none"),
    path_row("agentConfig.perTask.JOB.model", ValueKind::Text, "Model for this kind of task"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.primary", ValueKind::Text, "Agent at tiers 0-1 (low), 2-3 (medium), 4 (high)"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.fallback", ValueKind::TextOrFalse, "Agent that steps in first, or false for none"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.model", ValueKind::Text, "Model at this complexity"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.primary", ValueKind::Text, "Agent for this kind of task"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.fallback", ValueKind::TextOrFalse,
        "Agent that steps in, or false for none"),
    path_row("agentConfig.complexityOverrides.COMPLEXITY.perTask.JOB.model", ValueKind::Text, "Model for this kind of task"),

    // Limits of a run. Aliases below `review_loop` come from pasted blocks.
    field_row("limits.max_review_rounds", COUNT_KIND, field!(Plain, review.limits.rounds),
        "Maximum number of review rounds")
        .with_aliases(&[same_kind("review_loop.limits.max_review_rounds")]),
    field_row("limits.max_fix_iterations", COUNT_KIND, field!(Plain, review.limits.fix_iterations),
        "Maximum number of fix iterations per round")
        .with_aliases(&[same_kind("review_loop.limits.max_fix_iterations")]),
    field_row("limits.max_failures", COUNT_KIND, field!(Plain, run.limits.failures),
        "Maximum number of failures in a row")
        .with_aliases(&[same_kind("limits.max_consecutive_failures"), same_kind("review_loop.limits.max_consecutive_failures")]),
    field_row("limits.max_findings", ValueKind::Whole { minimum: 1, maximum: 1000 }, field!(Plain, review.limits.findings),
        "Maximum number of valid findings, open or fixed")
        .with_aliases(&[same_kind("limits.max_total_issues"), same_kind("review_loop.limits.max_total_issues")]),
    field_row("limits.max_runtime_minutes", ValueKind::Minutes, field!(Seconds, run.limits.runtime_ms),
        "Maximum working time of a run; waiting for you does not count")
        .with_aliases(&[
            // The pasted blocks count in seconds, so the alias has a kind of its own.
            other_kind("limits.max_runtime_seconds", TIMEOUT_KIND),
            other_kind("review_loop.limits.max_runtime_seconds", TIMEOUT_KIND),
        ]),
    field_row("limits.max_wait", ValueKind::Seconds { minimum: 0 }, field!(Seconds, run.limits.waits.at_most_ms),
        "Maximum total time a run waits for usage limits and overloaded providers; it does not count as working time"),
    field_row("limits.max_cost", ValueKind::Cost, field!(Plain, run.limits.cost),
        "Maximum cost of a run, as far as agents report it"),
    field_row("limits.calls_per_hour", ValueKind::Whole { minimum: 1, maximum: 100_000 }, field!(Plain, run.limits.calls_per_hour),
        "Maximum number of agent calls per hour, by all your runs on this machine"),
    field_row("limits.max_tokens", ValueKind::Whole { minimum: 1, maximum: 1_000_000_000 }, field!(Plain, run.limits.tokens),
        "Maximum number of weighted tokens per run"),
    field_row("limits.task_tokens", ValueKind::Whole { minimum: 1_000, maximum: 1_000_000_000 }, field!(Plain, run.limits.task_tokens),
        "Maximum number of weighted tokens per task, estimated while it works"),
    field_row("limits.task_turns", ValueKind::Whole { minimum: 1, maximum: 100_000 }, field!(Plain, run.limits.task_turns),
        "Maximum number of turns per task: messages of the model and calls of tools"),

    // Single tasks: how much they get and how long they may take.
    field_row("tasks.required_issues", ValueKind::Whole { minimum: 0, maximum: 20 }, field!(Plain, review.panel.required_issues),
        "Minimum number of findings per reviewer in round 1; with fewer, a reviewer is asked once more")
        .with_aliases(&[same_kind("review_loop.subagents.adversarial.required_issues")]),
    field_row("tasks.max_concurrent_fixers", ValueKind::Whole { minimum: 1, maximum: 16 }, field!(Plain, review.fixers.max_concurrent),
        "Maximum number of fixers at the same time")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.limits.max_concurrent_fixers")]),
    field_row("tasks.max_issues_per_agent", ValueKind::Whole { minimum: 1, maximum: 50 }, field!(Plain, review.fixers.max_issues_per_agent),
        "Maximum number of findings per fixer")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.subagents.fixer.max_issues_per_agent")]),
    field_row("tasks.max_file_growth", ValueKind::Whole { minimum: 1, maximum: 1000 }, field!(Plain, review.fixers.size_limit.growth),
        "How many times its old size a fix may make a file; up to 4 KB are always allowed")
        .pinned(IN_STORIES),
    field_row("tasks.max_file_mb", ValueKind::Whole { minimum: 1, maximum: 1000 }, field!(Plain, review.fixers.size_limit.megabytes),
        "Maximum size of a file after a fix, in megabytes")
        .pinned(IN_STORIES),
    field_row("tasks.party_min_agents", AT_LEAST_KIND, field!(Plain, review.panel.plans.min_agents),
        "Minimum number of personas in a party")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.subagents.party.min_agents")]),
    field_row("tasks.party_max_rounds", COUNT_KIND, field!(Plain, review.panel.plans.max_rounds),
        "Maximum number of cross-examination rounds in a party")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.subagents.party.max_rounds")]),
    field_row("tasks.elicitation_min_methods", AT_LEAST_KIND, field!(Plain, review.panel.plans.min_methods),
        "Minimum number of elicitation methods")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.subagents.elicitation.min_methods")]),
    field_row("tasks.reviewer_timeout", TIMEOUT_KIND, field!(Seconds, review.panel.reviewer_timeout_ms),
        "Timeout of a reviewer")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.subagents.adversarial.timeout")]),
    field_row("tasks.party_timeout", TIMEOUT_KIND, field!(Seconds, review.panel.party_timeout_ms),
        "Timeout of the party")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.subagents.party.timeout")]),
    field_row("tasks.elicitation_timeout", TIMEOUT_KIND, field!(Maybe<Seconds>, review.panel.elicitation_timeout_ms),
        "Timeout of elicitation; by default, that of a reviewer")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.subagents.elicitation.timeout")]),
    field_row("tasks.fixer_timeout", TIMEOUT_KIND, field!(Seconds, review.fixers.timeout_ms),
        "Timeout of a fixer")
        .pinned(IN_STORIES)
        .with_aliases(&[same_kind("review_loop.subagents.fixer.timeout")]),
    field_row("tasks.reviewer_model", ValueKind::Text, field!(Maybe<Plain>, agents.seat_models.reviewer),
        "Model for Claude Code reviewers, unless one is set for the task `review`")
        .with_aliases(&[same_kind("review_loop.subagents.adversarial.model")]),
    field_row("tasks.party_model", ValueKind::Text, field!(Maybe<Plain>, agents.seat_models.party),
        "Model for the party, instead of `tasks.reviewer_model`")
        .with_aliases(&[same_kind("review_loop.subagents.party.model")]),
    field_row("tasks.elicitation_model", ValueKind::Text, field!(Maybe<Plain>, agents.seat_models.elicitation),
        "Model for elicitation, instead of `tasks.reviewer_model`")
        .with_aliases(&[same_kind("review_loop.subagents.elicitation.model")]),
    field_row("tasks.fixer_model", ValueKind::Text, field!(Maybe<Plain>, agents.fixer_model),
        "Model for Claude Code fixers, unless one is set for the task `fix`")
        .with_aliases(&[same_kind("review_loop.subagents.fixer.model")]),
    field_row("tasks.check_timeout", TIMEOUT_KIND, field!(Seconds, run.tasks.check_timeout_ms),
        "Timeout of a check"),
    field_row("tasks.idle_timeout", TIMEOUT_KIND, field!(Seconds, run.tasks.idle_timeout_ms),
        "How long an agent may be silent before it is stopped"),
    field_row("tasks.max_answer_mb", ValueKind::Whole { minimum: 1, maximum: 16 }, field!(Plain, run.tasks.max_answer_megabytes),
        "Longest answer of an agent in megabytes (1 MB is about 250,000 tokens); an agent that writes more is stopped"),
    field_row("tasks.retry_after", ValueKind::Seconds { minimum: 0 }, field!(Seconds, run.tasks.retry_after_ms),
        "Pause before a failed task is retried once"),

    // Workspaces of agents.
    field_row("workspace.seed", ValueKind::List, field!(Plain, run.seeds),
        "Ignored files and directories that agents and checks need in their workspaces, relative to the project")
        .with_aliases(&[same_kind("copies.seed")]),
    field_row("workspace.root", ValueKind::Text, field!(Maybe<Plain>, run.workspace.root),
        "Directory for the clones in which software is developed; by default, one in your cache directory")
        .pinned(&["loop", "story", "sprint"]),
    field_row("workspace.setup", ValueKind::Commands, field!(Plain, run.workspace.setup),
        "Commands that prepare a new clone, once: a string for `sh -c`, or a list of words"),
    field_row("workspace.fresh_clone", ValueKind::Flag, field!(Plain, run.workspace.fresh_clone),
        "Whether work has to pass its checks in a fresh clone of its commit before it lands"),

    // The sandbox around agents, checks and commit hooks.
    field_row("sandbox.mode", ValueKind::Words(&["auto", "required", "off"]), field!(Word, run.sandbox.mode),
        "Whether the kernel keeps agents from writing outside their workspaces: where it can, or else no run, or not at all"),
    field_row("sandbox.write", ValueKind::List, field!(Plain, run.sandbox.write),
        "More paths that agents and checks may write; `~/` is your home directory, others are relative to the project"),
    field_row("sandbox.read", ValueKind::Words(&["all", "strict"]), field!(Word, run.sandbox.read),
        "What agents may read: everything that you can, or only their workspace, the system and their client's files"),
    field_row("sandbox.read_paths", ValueKind::List, field!(Plain, run.sandbox.read_paths),
        "More paths that may be read with `read: strict`"),
    field_row("sandbox.network", ValueKind::Network { allows_none: false }, field!(Plain, run.sandbox.network),
        "TCP ports that agents may connect to"),
    field_row("sandbox.check_network", ValueKind::Network { allows_none: true }, field!(Plain, run.sandbox.check_network),
        "TCP ports that checks and commit hooks may connect to"),

    // Hooks in sessions of coding clients; `settings::hooks` reads only these.
    field_row("hooks.guard_paths", ValueKind::Words(GUARD_PATHS), field!(GuardPaths, hooks.guard.paths),
        "Where agents may write in sessions with hooks"),
    field_row("hooks.guard_own_files", ValueKind::Flag, field!(Plain, hooks.guard.own_files),
        "Whether to prevent agents from changing Tribunal's own files"),
    field_row("hooks.guard_destructive", ValueKind::Flag, field!(Plain, hooks.guard.destructive),
        "Whether to prevent agents from running commands that cannot be undone"),
    field_row("hooks.stale_after", ValueKind::Whole { minimum: 1, maximum: 8760 }, field!(Hours, hooks.stale_after),
        "Hours without activity after which a session is given up"),

    field_row("notify.command", ValueKind::Command, field!(Maybe<Plain>, run.notify),
        "Command that tells you that a run waits or has ended; the text is its last argument, or `$1` for `sh -c`"),

    // The display. It is not pinned to a run.
    field_row("progress.mode", ValueKind::Words(&["silent", "summary", "streaming", "verbose"]), field!(Plain, progress),
        "How much to show during a run")
        .with_aliases(&[same_kind("progress_display.mode")]),
];
