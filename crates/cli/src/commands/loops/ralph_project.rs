//! Projects of bmalph and ralph-orchestrator run as they are: their prompt, their plan, their notes and their settings. What
//! they set is weaker than everything that the user sets for Tribunal.

use std::collections::BTreeMap;

use tribunal_bmad::{
    problem::ProblemWeight,
    project_files::ProjectFiles,
    ralph::{
        project::{RalphProject, RalphProjectKind, find_ralph_project},
        settings::{RalphPlatform, RalphReviewMode, RalphSettings, RalphValue, read_ralph_settings},
    },
};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    git::heads::{FileTracking, find_tracking},
    project::project_files::ProjectDirectory,
};
use tribunal_workflows::{
    development::checks::CheckSpec,
    loop_run::order::{LoopOrder, ReviewMode},
    runs::{run_kind::RunKind, settings::DriverSpec, view::RunView},
};

use crate::{
    context::CommandContext,
    messages::user_errors::UserError,
    settings::{
        EffectiveSettings, LoopFileSettings, ResolvedLoop, RunInputs, SettingLayer, gather_settings, is_pinned_in,
    },
    trust::trust_item::{ClientLicence, CommandPurpose, TrustItem},
};

/// What such a project says about its loops.
#[derive(Debug)]
pub(in crate::commands) struct LoopProject {
    files: RalphProject,
    settings: RalphSettings,
}

impl LoopProject {
    /// Reads the files; `None` if this is another kind of project.
    pub fn read_project(project: &Project, context: &CommandContext) -> Option<LoopProject> {
        let directory = ProjectDirectory::open_project(project);
        let files = find_ralph_project(&directory)?;
        let settings_path = files.settings.clone().unwrap_or_default();
        let settings_text = match settings_path.as_str() {
            "" => String::new(),
            settings_path => directory.read_file(settings_path).ok().flatten().unwrap_or_default(),
        };
        // The environment counts only where the project has such settings: a variable like `REVIEW_MODE` may mean something else.
        let environment = match &files.settings {
            Some(_) => context.text_variables(),
            None => BTreeMap::new(),
        };
        let settings = read_ralph_settings(&settings_text, &settings_path, &environment);
        Some(LoopProject { files, settings })
    }

    /// What the project says about a run that goes on; `None` if it is no loop.
    pub fn of_run(project: &Project, run_view: &RunView, context: &CommandContext) -> Option<LoopProject> {
        run_view.as_loop().and_then(|_| LoopProject::read_project(project, context))
    }

    /// The file with the task, if the user names none.
    pub fn prompt_file(&self) -> Option<&str> {
        self.files.prompt.as_deref()
    }

    /// Whether a task from this file is the task of the project.
    fn has_prompt(&self, prompt_file: Option<&str>) -> bool {
        prompt_file.is_some() && prompt_file == self.files.prompt.as_deref()
    }

    /// Prints what cannot be used, each with its line.
    pub fn print_problems(&self, context: &CommandContext) -> Result<(), UserError> {
        for problem in self.files.problems.iter().chain(&self.settings.problems) {
            let text = escape_line(&problem.to_string());
            match problem.weight {
                ProblemWeight::Note => context.print_note(&text)?,
                ProblemWeight::Warning | ProblemWeight::Error => context.print_warning(&text)?,
            }
        }
        Ok(())
    }

    /// Adds the agent of the project, unless the user has chosen one.
    pub fn choose_agent(&self, project: &Project, run_inputs: RunInputs) -> Result<RunInputs, UserError> {
        let effective = gather_settings(project.root(), &run_inputs.sources)?;
        let has_agents = effective.values.keys().any(|path| path.starts_with("agents.") && path.ends_with(".driver"));
        let is_chosen = effective.origin_of("agents.use").is_some_and(|origin| origin.layer != SettingLayer::Default);
        let wanted_agent = match (&self.settings.platform, self.files.config.agent.as_deref()) {
            _ if has_agents || is_chosen => None,
            (Some(platform), _) => Some(platform_agent(platform.value).to_string()),
            (None, Some("claude" | "claude-code")) => Some("claude-code".to_string()),
            (None, Some(agent @ ("codex" | "gemini" | "opencode" | "copilot" | "cursor"))) => Some(agent.to_string()),
            // `auto` and unknown names leave the choice to Tribunal; unknown ones are named as problems.
            (None, _) => None,
        };
        Ok(run_inputs.with_flag("the project's loop settings", "agents.use", wanted_agent))
    }

    /// Applies everything that the user has not set.
    pub fn apply_to(&self, resolved: &mut ResolvedLoop, project: &Project) {
        let plan = &mut resolved.settings.plan;
        if !self.has_prompt(plan.order.prompt_file.as_deref()) {
            return;
        }
        plan.order.completion.plan_file.clone_from(&self.files.plan);
        // Notes that git does not track would become part of the work, or would be missing in a clone.
        plan.order.scratchpad = self.files.scratchpad.clone().filter(|scratchpad| {
            find_tracking(project.root(), scratchpad).is_ok_and(|tracking| tracking == FileTracking::Tracked)
        });
        let effective = resolved.effective.clone();
        let is_default = |path: &str| is_unset(&effective, path);
        self.apply_order(&mut plan.order, &is_default);
        self.apply_settings(resolved, &is_default);
    }

    fn apply_settings(&self, resolved: &mut ResolvedLoop, is_default: &dyn Fn(&str) -> bool) {
        let plan = &mut resolved.settings.plan;
        let limits = &mut plan.settings.limits;
        if let (Some(seconds), true) = (self.files.config.max_runtime_seconds, is_default("limits.max_runtime_minutes"))
        {
            limits.runtime_ms = seconds.saturating_mul(1_000);
        }
        if let (Some(max_cost), true) = (self.files.config.max_cost, is_default("limits.max_cost")) {
            limits.cost = max_cost;
        }
        if let (Some(calls), true) = (&self.settings.max_calls_per_hour, is_default("limits.calls_per_hour")) {
            limits.calls_per_hour = calls.value;
            resolved.settings.share = resolved.settings.share.with_call_limit(calls.value);
        }
        let checks = self.settings.to_check_specs();
        if is_default("checks") && is_default("verify") && !checks.is_empty() {
            plan.settings.checks = checks;
        }
        for agent in &mut plan.settings.agents {
            let DriverSpec::Client(client) = &mut agent.driver else { continue };
            // An agent that the user has defined under another name has what the user gave it.
            if agent.name.as_str() != platform_agent(RalphPlatform::ClaudeCode) {
                continue;
            }
            if is_default(&format!("agents.{}.allow", agent.name)) {
                client.allow = self.allowed_tools();
            }
            if is_default(&format!("agents.{}.bypass", agent.name)) {
                client.bypass = self.is_bypassed();
            }
        }
        // Only what is used needs trust.
        let used_items = TrustItem::from_settings(&plan.settings);
        let own_items = self.trust_items().into_iter().filter(|trust_item| used_items.contains(trust_item));
        resolved.settings.items.extend(own_items);
    }

    fn apply_order(&self, order: &mut LoopOrder, is_default: &dyn Fn(&str) -> bool) {
        let (config, settings, breaker) = (&self.files.config, &self.settings, &self.settings.breaker);
        if let (Some(max_iterations), true) = (config.max_iterations, is_default("loop.max_iterations")) {
            order.pacing.max_iterations = max_iterations.max(1);
        }
        if let (Some(promise), true) = (&config.completion_promise, is_default("loop.promise")) {
            // ralph-orchestrator looks for the bare word in the answer.
            order.completion.accepts_word |= promise == "LOOP_COMPLETE";
            order.completion.promise.clone_from(promise);
        }
        let is_orchestrator = self.files.kind == RalphProjectKind::Orchestrator;
        if is_orchestrator && is_default("loop.accept_task_complete") {
            order.completion.checkbox_file.clone_from(&order.prompt_file);
        }
        if is_orchestrator && is_default("loop.accept_loop_complete") && config.completion_promise.is_none() {
            order.completion.accepts_word = true;
        }
        if let (Some(mode), true) = (&settings.review_mode, is_default("loop.review")) {
            order.review.mode = match mode.value {
                RalphReviewMode::Off => ReviewMode::Off,
                RalphReviewMode::Enhanced => ReviewMode::Enhanced,
                RalphReviewMode::Ultimate => ReviewMode::Ultimate,
            };
        }
        if let (Some(minutes), true) = (&settings.timeout_minutes, is_default("loop.iteration_timeout")) {
            order.pacing.timeout_ms = u64::from(minutes.value) * 60_000;
        }
        if let (Some(continuity), true) = (&settings.session.continuity, is_default("loop.continue")) {
            order.pacing.continue_session = continuity.value;
        }
        if let Some(hours) = &settings.session.expiry_hours {
            order.pacing.session_expiry_hours = hours.value;
        }
        if let (Some(minutes), true) = (&breaker.cooldown_minutes, is_default("loop.breaker.cooldown_minutes")) {
            order.breaker.cooldown_ms = u64::from(minutes.value) * 60_000;
        }
        if let (Some(interval), true) = (config.checkpoint_interval, is_default("loop.checkpoint_interval")) {
            order.pacing.checkpoint_interval = interval.max(1);
        }
        let set_count = |path: &str, value: &Option<RalphValue<u32>>, field: &mut u32| {
            if let (Some(value), true) = (value, is_default(path)) {
                *field = value.value.max(1);
            }
        };
        set_count("loop.review_interval", &settings.review_interval, &mut order.review.interval);
        set_count("loop.breaker.no_progress", &breaker.no_progress, &mut order.breaker.no_progress);
        set_count("loop.breaker.same_error", &breaker.same_error, &mut order.breaker.same_error);
        set_count("loop.breaker.output_decline", &breaker.output_decline_percent, &mut order.breaker.output_decline);
        set_count("loop.breaker.denials", &breaker.permission_denials, &mut order.breaker.denials);
    }

    fn allowed_tools(&self) -> Vec<String> {
        self.settings.allowed_tools.as_ref().map(|tools| tools.value.clone()).unwrap_or_default()
    }

    fn is_bypassed(&self) -> bool {
        self.settings.permission_mode.as_ref().is_some_and(|mode| mode.value == "bypassPermissions")
    }

    /// What the project's settings would run, or which rights they give: the user has to agree to it.
    pub fn trust_items(&self) -> Vec<TrustItem> {
        let to_item = |check: CheckSpec| TrustItem::Command { purpose: CommandPurpose::Check, command: check.command };
        let agent_name = || platform_agent(RalphPlatform::ClaudeCode).to_string();
        let tools = self
            .allowed_tools()
            .into_iter()
            .map(|tool| TrustItem::Licence { agent_name: agent_name(), licence: ClientLicence::Tool(tool) });
        let bypass =
            self.is_bypassed().then(|| TrustItem::Licence { agent_name: agent_name(), licence: ClientLicence::Bypass });
        self.settings.to_check_specs().into_iter().map(to_item).chain(tools).chain(bypass).collect()
    }
}

impl LoopFileSettings for LoopProject {
    fn apply_changes(&self, resolved: &mut ResolvedLoop) {
        let order = &resolved.settings.plan.order;
        if !self.has_prompt(order.prompt_file.as_deref()) {
            return;
        }
        let effective = resolved.effective.clone();
        let is_default = |path: &str| is_unset(&effective, path);
        let is_pinned = |path: &str| is_pinned_in(path, LoopOrder::NAME);
        let (mut wanted_order, mut order) = (order.clone(), order.clone());
        self.apply_order(&mut wanted_order, &is_default);
        self.apply_order(&mut order, &|path| is_default(path) && !is_pinned(path));
        // What is looked for in the prompt file was decided when the loop began.
        for changed_order in [&mut wanted_order, &mut order] {
            changed_order.completion.checkbox_file.clone_from(&resolved.settings.plan.order.completion.checkbox_file);
        }
        if wanted_order != order {
            let settings_path = self.files.settings.as_deref().unwrap_or("the project's own settings");
            resolved.settings.warnings.push(format!(
                "what is fixed when a loop starts stays as it was, also where {settings_path} says something else"
            ));
        }
        resolved.settings.plan.order = order;
        self.apply_settings(resolved, &is_default);
    }
}

fn is_unset(effective: &EffectiveSettings, path: &str) -> bool {
    effective.origin_of(path).is_none_or(|origin| origin.layer == SettingLayer::Default)
}

/// The agent that a platform of bmalph stands for.
fn platform_agent(platform: RalphPlatform) -> &'static str {
    match platform {
        RalphPlatform::ClaudeCode => "claude-code",
        RalphPlatform::Codex => "codex",
        RalphPlatform::OpenCode => "opencode",
        RalphPlatform::Copilot => "copilot",
        RalphPlatform::Cursor => "cursor",
    }
}

/// What loops of a project would run besides its settings: the commands of `.ralphrc` and the commit hooks.
pub(crate) fn loop_trust_items(project: &Project, context: &CommandContext) -> Vec<TrustItem> {
    let loop_project = LoopProject::read_project(project, context);
    let project_items = loop_project.iter().flat_map(LoopProject::trust_items);
    project_items.chain(TrustItem::from_commit_hooks(project.root())).collect()
}
