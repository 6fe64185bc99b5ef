//! Whether a run would start, and what keeps it from starting. `review`, `resume` and `doctor` ask the same questions here, so
//! that the doctor never says ready where a review refuses.
//!
//! Settings and trust come before this: [`crate::settings`] resolves the former, [`crate::trust`] decides the latter. No agent
//! and no check is started; clients are only asked for their version and their sign-in.

mod agents;
mod check_programs;
pub(crate) mod setup_advice;

use std::time::Duration;

use tribunal_agents::{clients::AgentClient, prompt};
use tribunal_engine::sandbox::{SandboxMode, SandboxSettings};
use tribunal_runner::{
    Project, Runner,
    sandbox::{describe_sandbox, is_enforced, list_gaps},
};
use tribunal_supervise::{SOCKET_GAP, SandboxSupport};
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    runs::{plan::RunPlan, settings::Settings},
};

use crate::{
    clients::{
        client_probe::{ClientProgram, PROBE_TIMEOUT, ProbedClient, probe_programs},
        programs::{find_program, locate_program},
    },
    context::CommandContext,
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
    runs::engine::check_system_limits,
    trust::trust_item::TrustItem,
};

pub(crate) use agents::{AgentReadiness, read_agent_states};

/// A run that is about to be started or resumed.
#[derive(Clone)]
pub(crate) struct PlannedStart<'a> {
    pub project: &'a Project,
    pub plan: RunPlan,
    /// Whether the settings are about to be recorded for the first time.
    pub is_new: bool,
}

/// What was found before a start.
#[derive(Debug, Default)]
pub(crate) struct StartReport {
    /// What keeps the run from starting.
    pub faults: Vec<UserError>,
    /// What does not keep it from starting, and is worth knowing.
    pub warnings: Vec<UserError>,
}

/// Fails if one of these runs would not start; prints what else the user should know. Runs of one project have the same agents
/// and checks, so each project is looked at once.
pub(crate) fn require_startable<'a>(
    context: &CommandContext,
    planned_starts: impl Iterator<Item = PlannedStart<'a>>,
) -> Result<(), UserError> {
    let mut checked_roots = Vec::new();
    for planned_start in planned_starts {
        if checked_roots.contains(&planned_start.project.root()) {
            continue;
        }
        checked_roots.push(planned_start.project.root());
        // Clients take a moment to answer, so they are asked only if nothing else is in the way.
        refuse_faults(find_place_faults(context, &planned_start))?;
        let client_programs =
            collect_client_programs(context, planned_start.project, Some(&planned_start.plan.settings), &[]);
        let env_variable = |variable_name: &str| context.env_variable(variable_name);
        let used_programs = client_programs.into_iter().filter(|program| !program.agent_names.is_empty()).collect();
        let probed_clients = probe_programs(&env_variable, used_programs, PROBE_TIMEOUT);
        let StartReport { faults, warnings } = examine_work(context, &planned_start, &probed_clients);
        refuse_faults(faults)?;
        for warning in warnings {
            context.print_warning(&warning.to_single_line())?;
        }
        let settings = &planned_start.plan.settings.sandbox;
        let support = tribunal_supervise::probe_sandbox();
        let sandbox_text = describe_sandbox(settings, support);
        match is_enforced(settings, support) {
            true => context.print_note(&sandbox_text)?,
            false => context.print_warning(&sandbox_text)?,
        }
        // What no kernel in wide use prevents is said by the doctor only.
        for gap in list_gaps(settings, support).into_iter().filter(|gap| *gap != SOCKET_GAP) {
            context.print_warning(&format!("not prevented by this kernel: {gap}"))?;
        }
        if planned_start.plan.order.works_in_place() {
            context.print_note(
                "the agent works in your checkout, and could write in its .git and .tribunal as well: after each turn, git's \
                 settings, hooks, refs and stashes are put back if they changed",
            )?;
        }
    }
    Ok(())
}

/// Returns the first fault as an error. The others are named by the doctor.
fn refuse_faults(faults: Vec<UserError>) -> Result<(), UserError> {
    let fault_count = faults.len();
    match faults.into_iter().next() {
        None => Ok(()),
        Some(only_fault) if fault_count == 1 => Err(only_fault),
        Some(first_fault) => Err(first_fault.with_doctor_step()),
    }
}

/// Examines everything but settings and trust. The clients that agents use must be among the probed ones.
pub(crate) fn examine_start(
    context: &CommandContext,
    planned_start: &PlannedStart<'_>,
    probed_clients: &[ProbedClient],
) -> StartReport {
    let mut faults = find_place_faults(context, planned_start);
    let StartReport { faults: work_faults, warnings } = examine_work(context, planned_start, probed_clients);
    faults.extend(work_faults);
    StartReport { faults, warnings }
}

/// Finds what is wrong with this machine and with the project's directory.
fn find_place_faults(context: &CommandContext, planned_start: &PlannedStart<'_>) -> Vec<UserError> {
    let PlannedStart { project, plan, is_new } = planned_start;
    let mut faults: Vec<UserError> = check_system_limits().err().into_iter().collect();
    faults.extend(check_templates(project).err());
    if *is_new {
        faults.extend(Runner::refuse_secrets(&context.secret_masker(), plan).err().map(UserError::from));
    }
    faults.extend(Runner::check_project(project, &plan.settings).err().map(UserError::from));
    faults.extend(check_sandbox(&plan.settings.sandbox, tribunal_supervise::probe_sandbox()).err());
    faults
}

/// Fails if the run may only start with a sandbox, and there is none.
fn check_sandbox(settings: &SandboxSettings, support: SandboxSupport) -> Result<(), UserError> {
    if settings.mode != SandboxMode::Required || support.is_available() {
        return Ok(());
    }
    Err(UserError::new(EXIT_ENVIRONMENT, format!("no sandbox, which `sandbox.mode: required` asks for: {support}"))
        .with_reason("Without it, agents could write wherever you can. Nothing was started.")
        .with_step("start it anyway: `--set sandbox.mode=auto`"))
}

/// Finds what is wrong with the programs that a run would start.
fn examine_work(
    context: &CommandContext,
    planned_start: &PlannedStart<'_>,
    probed_clients: &[ProbedClient],
) -> StartReport {
    let PlannedStart { project, plan, .. } = planned_start;
    let env_variable = |variable_name: &str| context.env_variable(variable_name);
    let mut report = agents::examine_agents(plan, project.root(), &env_variable, probed_clients);
    report.faults.extend(check_programs::find_check_faults(plan, project.root(), &env_variable));
    report.warnings.extend(agents::find_missing_servers(&plan.settings, project.root(), &env_variable));
    report
}

/// Lists every client under its own name on the search path, then those that agents know under another name.
pub(crate) fn collect_client_programs(
    context: &CommandContext,
    project: &Project,
    settings: Option<&Settings>,
    untrusted_items: &[&TrustItem],
) -> Vec<ClientProgram> {
    let env_variable = |variable_name: &str| context.env_variable(variable_name);
    let own_program = |client: AgentClient| ClientProgram {
        client,
        program: client.program.to_string(),
        located: find_program(project.root(), client.program, &env_variable),
        agent_names: Vec::new(),
        // Clients on the user's own search path need no trust; only programs that the project names do.
        is_trusted: true,
    };
    let mut client_programs: Vec<ClientProgram> = AgentClient::all().map(own_program).collect();
    for agent in settings.into_iter().flat_map(|settings| settings.agents.iter().chain(&settings.reserves)) {
        let Some(client_spec) = agent.driver.client_spec() else { continue };
        let Ok(client) = AgentClient::find(client_spec.client.as_str()) else { continue };
        let agent_name = agent.name.as_str().to_string();
        let program = client_spec.program.clone().unwrap_or_else(|| client.program.to_string());
        // Two agents may share one program, which is then probed once.
        let is_same_program = |known: &&mut ClientProgram| known.client == client && known.program == program;
        if let Some(known_program) = client_programs.iter_mut().find(is_same_program) {
            known_program.agent_names.push(agent_name);
            // An agent needs it, so a similar name is worth knowing.
            known_program.located = locate_program(project.root(), &program, &env_variable);
            continue;
        }
        let trust_item = TrustItem::Client { agent_name: agent_name.clone(), program: program.clone() };
        client_programs.push(ClientProgram {
            client,
            located: locate_program(project.root(), &program, &env_variable),
            program,
            agent_names: vec![agent_name],
            is_trusted: !untrusted_items.contains(&&trust_item),
        });
    }
    client_programs
}

/// Probes the clients as `doctor` shows them, with a time limit of its own.
pub(crate) fn probe_all_clients(
    context: &CommandContext,
    client_programs: Vec<ClientProgram>,
    timeout: Duration,
) -> Vec<ProbedClient> {
    probe_programs(&|variable_name| context.env_variable(variable_name), client_programs, timeout)
}

/// Checks all of the project's own prompts, since it is not known yet which roles a run will need.
pub(crate) fn check_templates(project: &Project) -> Result<(), UserError> {
    for role in AgentRole::ALL {
        let template_name = prompt::template_file_name(role);
        let explain_unusable = |problem: String| {
            UserError::usage(format!(".tribunal/templates/{template_name} cannot be used: {problem}"))
                .with_reason(format!("It replaces the built-in prompt of the {role}. Nothing was started."))
                .with_step("fix the template")
                .with_step(format!(
                    "or use the built-in prompt: `mv .tribunal/templates/{template_name} \
                     .tribunal/templates/{template_name}.off`"
                ))
        };
        if let Some(template) = project.read_template(&template_name).map_err(explain_unusable)? {
            prompt::check_template(role, &template).map_err(|problem| explain_unusable(problem.to_string()))?;
        }
    }
    Ok(())
}
