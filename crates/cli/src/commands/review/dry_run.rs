//! `--dry-run`: prints what a review would do.

use std::io::{Write, stdout};

use tribunal_agents::prompt;
use tribunal_engine::text::format_count;
use tribunal_report::escape_line;
use tribunal_runner::git::changes::format_bytes;
use tribunal_workflows::{
    findings::{agent_role::AgentRole, subject::CodeChange},
    review::{
        level::{ReviewLevel, panel_roles},
        order::ReviewOrder,
    },
    runs::plan::RunPlan,
    tasks::{brief::ReviewBrief, client::JobKind, selection},
};

use super::{PreparedRun, ReviewMaterial, level_advice::advise_level};
use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, PlanLimits, PlannedSeat, ReviewPlan},
        user_errors::UserError,
    },
    settings::{ThroughputLimits, command_values::describe_check},
};

/// At most this many files of a change are named; `--json` names all.
const MAX_SHOWN_FILES: usize = 20;

/// Prints panel, agents, limits and an estimate. Nothing is started.
pub(super) fn print_plan(
    prepared_run: &PreparedRun,
    share: ThroughputLimits,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let PreparedRun { project, resolved, material } = prepared_run;
    let RunPlan { settings, order } = &resolved.plan;
    let chosen_level = advise_level(project, &resolved.plan, context)?.chosen;
    let review_plan = build_plan(&resolved.plan, chosen_level.level, material, share);
    if context.wants_json {
        json_documents::print_document(&review_plan)?;
        return Ok(0);
    }
    let mut output = stdout().lock();
    writeln!(output, "would review {} (dry run, nothing was started)", escape_line(&order.subject.title()))?;
    if let (Some(change), ReviewMaterial::Diff(diff_bytes)) = (order.subject.code_change(), material) {
        print_change(&mut output, change, *diff_bytes)?;
    }
    writeln!(output, "  level:    {} ({})", review_plan.level, chosen_level.reason)?;
    for seat in &review_plan.panel {
        writeln!(output, "  reviewer: {} by {}", seat.role, escape_line(seat.agent.as_str()))?;
    }
    writeln!(output, "  prompts:  about {} tokens in round 1", review_plan.estimated_input_tokens)?;
    let limits = &settings.limits;
    writeln!(
        output,
        "  limits:   {}, {} a round, {}, {} min, ${} or {} tokens",
        format_count(order.limits.rounds, "round"),
        format_count(order.limits.fix_iterations, "fix iteration"),
        format_count(order.limits.findings, "finding"),
        limits.runtime_ms / 60_000,
        limits.cost,
        limits.tokens
    )?;
    for check in &settings.checks {
        writeln!(output, "  check:    {}", escape_line(&describe_check(check)))?;
    }
    Ok(0)
}

/// Builds the plan of the first round.
fn build_plan(
    plan: &RunPlan<ReviewOrder>,
    level: ReviewLevel,
    material: &ReviewMaterial,
    share: ThroughputLimits,
) -> ReviewPlan {
    let RunPlan { settings, order } = plan;
    let roles = panel_roles(&order.subject, level, settings.tier);
    let numbered_roles = roles.iter().enumerate();
    let panel: Vec<PlannedSeat> = numbered_roles
        // The same function seats reviewers in a run, so that the plan shows what its first round starts with.
        .map(|(index, role)| PlannedSeat {
            role: *role,
            agent: selection::agent_for_seat(settings, JobKind::Review, index, 0),
        })
        .collect();
    ReviewPlan {
        schema: "tribunal.plan/1",
        subject: order.subject.clone(),
        level,
        // The estimate covers the first round only: later ones depend on what is found.
        estimated_input_tokens: roles.iter().map(|role| estimate_tokens(order, *role, material)).sum(),
        panel,
        limits: PlanLimits { review: order.limits.clone(), run: settings.limits.clone() },
        checks: settings.checks.clone(),
        fix: order.fix,
        diff_bytes: match material {
            ReviewMaterial::Diff(diff_bytes) => Some(*diff_bytes),
            ReviewMaterial::Text(_) => None,
        },
        runs_at_once: share.jobs.get(),
        agents_at_once: share.agents.get(),
    }
}

/// Prints how several runs share the permitted agents.
pub(super) fn print_share(
    total_runs: usize,
    share: ThroughputLimits,
    context: &CommandContext,
) -> Result<u8, UserError> {
    if total_runs > 1 && !context.wants_json {
        let schedule = match share.jobs.get() {
            1 => "one at a time".to_string(),
            concurrent_runs => format!("{concurrent_runs} in parallel"),
        };
        writeln!(stdout(), "{total_runs} runs, {schedule}; at most {} at a time", format_agent_count(share))?;
    }
    Ok(0)
}

fn format_agent_count(share: ThroughputLimits) -> String {
    format_count(u32::try_from(share.agents.get()).unwrap_or(u32::MAX), "agent")
}

/// Prints the files of a change and its story.
fn print_change(output: &mut impl Write, change: &CodeChange, diff_bytes: u64) -> Result<(), UserError> {
    let file_count = u32::try_from(change.files.len()).unwrap_or(u32::MAX);
    writeln!(output, "  change:   {} with {} of diff", format_count(file_count, "file"), format_bytes(diff_bytes))?;
    for changed_file in change.files.iter().take(MAX_SHOWN_FILES) {
        writeln!(output, "            {}", escape_line(&changed_file.path))?;
    }
    if change.files.len() > MAX_SHOWN_FILES {
        writeln!(output, "            and {} more", change.files.len() - MAX_SHOWN_FILES)?;
    }
    if let Some(story_path) = &change.story {
        writeln!(output, "  story:    {}", escape_line(story_path))?;
    }
    Ok(())
}

/// Estimates tokens by four bytes each, as a run does for agents that report none.
fn estimate_tokens(order: &ReviewOrder, role: AgentRole, material: &ReviewMaterial) -> u64 {
    let (document_text, unseen_bytes) = match material {
        ReviewMaterial::Text(document_text) => (document_text.as_str(), 0),
        // The diff is inserted when the prompt is rendered in the run; here only its size is known.
        ReviewMaterial::Diff(diff_bytes) => ("", *diff_bytes),
    };
    let task_brief =
        ReviewBrief { required: order.panel.required_issues, ..ReviewBrief::new(role, order.subject.clone(), 1) };
    prompt::render_prompt(&task_brief, document_text, None)
        .map_or(0, |rendered_prompt| (rendered_prompt.len() as u64 + unseen_bytes) / 4)
}
