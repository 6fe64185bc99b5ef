//! `--dry-run`: prints what a review would do.

use std::io::{Write, stdout};

use tribunal_agents::prompt;
use tribunal_core::{
    brief::Brief,
    client::Job,
    level::{Role, level_for, panel},
    seating,
    settings::Settings,
    subject::Change,
    text::count,
};
use tribunal_report::escaped;
use tribunal_runner::changes::kilobytes;

use super::Material;
use crate::{
    complaint::Complaint,
    context::Context,
    documents::{self, Plan, Seat},
    settings::Share,
};

/// At most this many files of a change are named; `--json` names all.
const MOST_SHOWN: usize = 20;

/// Prints panel, agents, limits and an estimate. Nothing is started.
pub(super) fn show(
    settings: &Settings,
    material: &Material,
    share: Share,
    context: &Context,
) -> Result<u8, Complaint> {
    // Without a level it follows from the tier, as it does in a run.
    let level = settings.level.unwrap_or_else(|| level_for(settings.tier, None));
    let roles = panel(&settings.subject, level, settings.tier);
    let seats = roles.iter().enumerate();
    let panel: Vec<Seat> = seats
        // The same function seats reviewers in a run, so the plan cannot differ from what happens.
        .map(|(index, role)| Seat { role: *role, agent: seating::seat(settings, Job::Review, index, 0) })
        .collect();
    let plan = Plan {
        schema: "tribunal.plan/1",
        subject: settings.subject.clone(),
        level,
        // The estimate covers the first round only: later ones depend on what is found.
        estimated_input_tokens: roles.iter().map(|role| estimate(settings, *role, material)).sum(),
        panel,
        limits: settings.limits.clone(),
        verify: settings.verify.clone(),
        fix: settings.fix,
        diff_bytes: match material {
            Material::Diff(bytes) => Some(*bytes),
            Material::Text(_) => None,
        },
        runs_at_once: share.jobs.get(),
        agents_at_once: share.agents.get(),
    };
    if context.json {
        documents::print(&plan)?;
        return Ok(0);
    }
    let mut out = stdout().lock();
    writeln!(out, "{} would be reviewed; nothing was started", escaped(&settings.subject.title()))?;
    if let (Some(change), Material::Diff(bytes)) = (settings.subject.change(), material) {
        show_change(&mut out, change, *bytes)?;
    }
    writeln!(out, "  level:    {level} (tier {})", settings.tier)?;
    for seat in &plan.panel {
        writeln!(out, "  reviewer: {} by {}", seat.role, escaped(seat.agent.as_str()))?;
    }
    writeln!(out, "  prompts:  about {} tokens in round 1", plan.estimated_input_tokens)?;
    let limits = &settings.limits;
    writeln!(
        out,
        "  limits:   {}, {} a round, {}, {} min, {} in cost or {} tokens",
        count(limits.rounds, "round"),
        count(limits.fix_iterations, "fix iteration"),
        count(limits.findings, "finding"),
        limits.runtime_ms / 60_000,
        limits.cost,
        limits.tokens
    )?;
    for verify in &settings.verify {
        writeln!(out, "  verify:   {}", escaped(verify))?;
    }
    Ok(0)
}

/// Prints how several runs share the permitted agents.
pub(super) fn show_share(runs: usize, share: Share, context: &Context) -> Result<u8, Complaint> {
    if runs > 1 && !context.json {
        let how = match share.jobs.get() {
            1 => "one after the other".to_string(),
            at_once => format!("{at_once} at once"),
        };
        writeln!(stdout(), "{runs} runs, {how}; at most {} at a time", agents(share))?;
    }
    Ok(0)
}

fn agents(share: Share) -> String {
    count(u32::try_from(share.agents.get()).unwrap_or(u32::MAX), "agent")
}

/// Prints the files of a change and its story.
fn show_change(out: &mut impl Write, change: &Change, bytes: u64) -> Result<(), Complaint> {
    let files = u32::try_from(change.files.len()).unwrap_or(u32::MAX);
    writeln!(out, "  change:   {} with {} of diff", count(files, "file"), kilobytes(bytes))?;
    for file in change.files.iter().take(MOST_SHOWN) {
        writeln!(out, "            {}", escaped(&file.path))?;
    }
    if change.files.len() > MOST_SHOWN {
        writeln!(out, "            and {} more", change.files.len() - MOST_SHOWN)?;
    }
    if let Some(story) = &change.story {
        writeln!(out, "  story:    {}", escaped(story))?;
    }
    Ok(())
}

/// Estimates tokens by four bytes each: a rule of thumb that is right to within a third for English.
fn estimate(settings: &Settings, role: Role, material: &Material) -> u64 {
    let (text, unseen) = match material {
        Material::Text(text) => (text.as_str(), 0),
        // The diff is inserted when the prompt is rendered in the run; here only its size is known.
        Material::Diff(bytes) => ("", *bytes),
    };
    let brief =
        Brief { required: settings.tasks.required_issues, ..Brief::new(role, settings.subject.clone(), 1) };
    prompt::render(&brief, text, None).map_or(0, |prompt| (prompt.len() as u64 + unseen) / 4)
}
