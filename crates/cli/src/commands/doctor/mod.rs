//! `tribunal doctor`: what is here, what is missing, and how to repair it. Nothing it does costs anything.
//!
//! It reads the settings as a review would, asks every client for its version and its sign-in, and says whether a
//! review could run. A program that the project's settings name is not started before the user has trusted it.

mod document;
mod git;
mod hooks;
mod render;
mod workspace;

use std::{
    io::{Write, stdout},
    path::Path,
    time::Duration,
};

use tribunal_agents::clients::CLIENTS;
use tribunal_engine::sandbox::SandboxSettings;
use tribunal_runner::sandbox;
use tribunal_workflows::{
    findings::subject::Subject,
    runs::{plan::RunPlan, settings::DriverSpec},
    tasks::client::{JobKind, JobPriority},
};

use self::document::{
    DOCTOR_SCHEMA, DoctorAbility, DoctorAgentRow, DoctorClientRow, DoctorProblem, DoctorProjectRow, DoctorSandboxRow,
    DoctorSignIn, OtherClient,
};
use crate::{
    clients::{
        client_probe::{ClientState, ProbedClient},
        installed_clients::find_on_path,
    },
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_ENVIRONMENT, SuggestedStep, UserError, name_program},
    },
    preflight::{self, AgentReadiness, PlannedStart},
    settings::{self, EffectiveSettings, ResolvedSettings, RunInputs},
    trust::{self, trust_item::TrustItem},
};

pub(crate) use document::DoctorReport;

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArguments {
    /// Seconds to wait for each client's answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=120))]
    timeout: u64,
}

pub(crate) fn run(arguments: &DoctorArguments, context: &CommandContext) -> Result<u8, UserError> {
    let report = examine_setup(context, Duration::from_secs(arguments.timeout));
    if context.wants_json {
        json_documents::print_document(&report)?;
    } else {
        write!(stdout(), "{}", render::render_report(&report, &context.answer_screen))?;
    }
    // A missing requirement is the environment's fault, not a negative result of a check.
    Ok(if report.ready { 0 } else { EXIT_ENVIRONMENT })
}

fn examine_setup(context: &CommandContext, probe_timeout: Duration) -> DoctorReport {
    let project = context.current_project();
    let project_root = project.root();
    // Faults keep a review from running; warnings are worth knowing and do not.
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    let (effective, resolved) = load_settings(context, project_root, &mut faults);
    let mut untrusted_items: Vec<&TrustItem> = Vec::new();
    if let Some(resolved) = &resolved {
        warnings.extend(resolved.warnings.iter().map(|warning| new_problem(warning, &[])));
        untrusted_items = find_untrusted_items(context, project_root, &resolved.items, &mut faults);
    }
    let review_settings = resolved.as_ref().map(|resolved| &resolved.plan.settings);
    let client_programs = preflight::collect_client_programs(context, &project, review_settings, &untrusted_items);
    let probed_clients = preflight::probe_all_clients(context, client_programs, probe_timeout);
    // Without settings there are no agents, but the project's directory can be examined all the same.
    let plan = match &resolved {
        Some(resolved) => resolved.plan.clone(),
        None => {
            let typed_settings = effective.to_typed();
            RunPlan { settings: typed_settings.run, order: typed_settings.review }
        }
    };
    let planned_start = PlannedStart { project: &project, plan: plan.into_run(), is_new: true };
    let start_report = preflight::examine_start(context, &planned_start, &probed_clients);
    faults.extend(start_report.faults.iter().map(problem_from_error));
    warnings.extend(start_report.warnings.iter().map(problem_from_error));
    let (git_version, git_warning) = git::examine_git(context, project_root, probe_timeout);
    warnings.extend(git_warning);
    warnings.extend(hooks::find_broken_hooks(context, &project));
    let agent_states = review_settings
        .map(|settings| {
            let env_variable = |variable_name: &str| context.env_variable(variable_name);
            preflight::read_agent_states(settings, project_root, &env_variable, &probed_clients)
        })
        .unwrap_or_default();
    // What is suggested has to work when it is copied, also with `-C DIR`.
    for remedy in faults.iter_mut().chain(&mut warnings).flat_map(|problem| &mut problem.mend) {
        *remedy = name_program(remedy, context.program_name());
    }
    let survey = settings::survey_settings(project_root, &effective);
    DoctorReport {
        schema: DOCTOR_SCHEMA,
        ready: faults.is_empty(),
        faults,
        warnings,
        notes: resolved.as_ref().map(|resolved| resolved.notes.clone()).unwrap_or_default(),
        agents: agent_states.iter().map(|readiness| build_agent_row(readiness, &probed_clients)).collect(),
        clients: probed_clients.iter().map(|probed_client| build_client_row(probed_client, context)).collect(),
        others: find_other_clients(context),
        git: git_version,
        sandbox: examine_sandbox(&planned_start.plan.settings.sandbox),
        project: DoctorProjectRow {
            root: project_root.display().to_string(),
            bmad: effective.has_bmad,
            personas: survey.roster.personas.len(),
        },
        workspace: workspace::suggest_workspace(project_root, &effective),
    }
}

fn examine_sandbox(settings: &SandboxSettings) -> DoctorSandboxRow {
    let support = tribunal_supervise::probe_sandbox();
    DoctorSandboxRow {
        enforced: sandbox::is_enforced(settings, support),
        description: sandbox::describe_sandbox(settings, support),
        gaps: sandbox::list_gaps(settings, support),
    }
}

fn new_problem(description: impl Into<String>, remedies: &[String]) -> DoctorProblem {
    DoctorProblem { what: description.into(), mend: remedies.to_vec() }
}

fn problem_from_error(user_error: &UserError) -> DoctorProblem {
    // A hint to run `doctor` is of no use in the output of `doctor`.
    let other_steps = user_error.steps.iter().filter(|next_step| **next_step != SuggestedStep::RunDoctor);
    let remedies: Vec<String> = other_steps.map(ToString::to_string).collect();
    new_problem(&user_error.message, &remedies)
}

/// Loads the settings as a review would. What keeps a review from loading them is added to the faults.
fn load_settings(
    context: &CommandContext,
    project_root: &Path,
    faults: &mut Vec<DoctorProblem>,
) -> (EffectiveSettings, Option<ResolvedSettings>) {
    let run_inputs = RunInputs::from_environment(context);
    let effective = match settings::gather_settings(project_root, &run_inputs.sources) {
        Ok(effective) => effective,
        Err(user_error) => {
            // The defaults let the rest of the report be made: clients can be probed without the project's settings.
            faults.push(problem_from_error(&user_error));
            return (EffectiveSettings::from_defaults(), None);
        }
    };
    let problems = settings::survey_settings(project_root, &effective).problems;
    for problem in &problems {
        let hints: Vec<String> = problem.hint.iter().cloned().collect();
        faults.push(new_problem(format!("{}: {}", problem.place, problem.message), &hints));
    }
    // Which agents take part does not depend on the subject, so any name will do.
    let resolved = settings::resolve_settings(project_root, Subject::from_path("subject.md", None), &run_inputs);
    match resolved {
        Ok(resolved) => (effective, Some(resolved)),
        Err(user_error) => {
            // The problems above already name the cause; the resolver would only report the first of them again.
            if problems.is_empty() {
                faults.push(problem_from_error(&user_error));
            }
            (effective, None)
        }
    }
}

/// Finds the items for which a review would need the user's trust first.
fn find_untrusted_items<'a>(
    context: &CommandContext,
    project_root: &Path,
    trust_items: &'a [TrustItem],
    faults: &mut Vec<DoctorProblem>,
) -> Vec<&'a TrustItem> {
    let untrusted_items = match trust::find_untrusted(context, project_root, trust_items) {
        Ok(untrusted_items) => untrusted_items,
        Err(user_error) => {
            faults.push(problem_from_error(&user_error));
            // Without the trust store nothing counts as trusted, and so nothing of the project is started below.
            return trust_items.iter().collect();
        }
    };
    // Commands may contain secrets, and a report may be pasted into an issue.
    let masker = context.secret_masker();
    let remedies = [format!("review and allow it: `{} trust`", context.program_name())];
    for trust_item in &untrusted_items {
        faults.push(new_problem(format!("not trusted yet: {}", trust_item.describe_masked(&masker)), &remedies));
    }
    untrusted_items
}

fn build_client_row(probed_client: &ProbedClient, context: &CommandContext) -> DoctorClientRow {
    let ProbedClient { program: candidate, probed } = probed_client;
    let client = candidate.client;
    let reason = match &probed.state {
        ClientState::Unsure { reason } | ClientState::OtherProvider { reason } | ClientState::Broken { reason } => {
            Some(reason.clone())
        }
        // A program that is missing is named below, where it was looked for.
        ClientState::Unstartable { problem } if !probed.state.is_missing() => {
            Some(problem.describe(&candidate.program))
        }
        _ => None,
    };
    DoctorClientRow {
        id: client.id,
        name: client.name,
        program: candidate.program.clone(),
        path: candidate.located.as_ref().ok().map(|program_path| program_path.display().to_string()),
        version: probed.version.map(|version| version.to_string()),
        minimum: client.facts.minimum_version.to_string(),
        state: probed.state.clone(),
        why: reason,
        signed_in: probed
            .sign_in
            .clone()
            .map(|(sign_in_method, subscription)| DoctorSignIn { how: sign_in_method, subscription }),
        agents: candidate.agent_names.clone(),
        mend: find_remedy(probed_client, context),
        can: client
            .facts
            .abilities
            .iter()
            .map(|ability| DoctorAbility { what: ability.label, how: ability.explanation })
            .collect(),
    }
}

/// Finds the command that makes a client work; `None` if nothing is missing.
fn find_remedy(probed_client: &ProbedClient, context: &CommandContext) -> Option<String> {
    let ProbedClient { program: candidate, probed } = probed_client;
    let facts = candidate.client.facts;
    match &probed.state {
        ClientState::Ready | ClientState::OtherProvider { .. } => None,
        // A program that the settings name is set right there: installing the client elsewhere would not help.
        ClientState::Unstartable { problem } if candidate.program != candidate.client.program => {
            let agent_name = candidate.agent_names.first().map_or("NAME", String::as_str);
            Some(problem.suggest_fix(&candidate.program, &format!("agents.{agent_name}.program")))
        }
        ClientState::Unstartable { problem } if !probed.state.is_missing() => {
            Some(problem.suggest_fix(&candidate.program, "PATH"))
        }
        ClientState::Unsure { .. } | ClientState::NotSignedIn => Some(facts.sign_in_hint.to_string()),
        // Reinstalling is the usual way out for a program that starts and fails.
        ClientState::Unstartable { .. } | ClientState::Broken { .. } | ClientState::TooOld => {
            Some(facts.install_hint.to_string())
        }
        ClientState::Untrusted => Some(format!("{} trust", context.program_name())),
    }
}

fn build_agent_row(readiness: &AgentReadiness<'_>, probed_clients: &[ProbedClient]) -> DoctorAgentRow {
    let agent = readiness.agent;
    let (driver, runs) = match &agent.driver {
        DriverSpec::Command { argv } => ("command", argv.first().cloned().unwrap_or_default()),
        DriverSpec::Replay { script, .. } => ("replay", script.clone()),
        DriverSpec::Client(_) => probed_clients
            .iter()
            .find(|probed_client| probed_client.program.agent_names.iter().any(|name| name == agent.name.as_str()))
            .map_or(("client", String::new()), |probed_client| {
                (probed_client.program.client.id, probed_client.program.program.clone())
            }),
    };
    let jobs_with_part = |accepts_part: fn(JobPriority) -> bool| -> Vec<&'static str> {
        let jobs = [JobKind::Review, JobKind::Fix].into_iter();
        jobs.filter(|job| accepts_part(readiness.part_in_job(*job))).map(JobKind::as_str).collect()
    };
    DoctorAgentRow {
        name: agent.name.as_str().to_string(),
        driver,
        provider: agent.provider_name().to_string(),
        takes: match readiness.is_reserve {
            true => Vec::new(),
            false => jobs_with_part(|agent_part| agent_part == JobPriority::Takes),
        },
        stands_by: match readiness.is_reserve {
            true => jobs_with_part(|agent_part| agent_part != JobPriority::Never),
            false => jobs_with_part(|agent_part| matches!(agent_part, JobPriority::StandsBy | JobPriority::LastResort)),
        },
        runs,
        can_work: readiness.state.can_work(),
        state: readiness.state.clone(),
    }
}

fn find_other_clients(context: &CommandContext) -> Vec<OtherClient> {
    // Clients without a driver are listed so that the user does not wonder why an installed one is not used.
    let installed_clients =
        CLIENTS.iter().filter(|known_client| known_client.agent_facts.is_none()).filter_map(|known_client| {
            let program_path =
                find_on_path(known_client.program, &|variable_name| context.env_variable(variable_name))?;
            Some(OtherClient { id: known_client.id, name: known_client.name, path: program_path.display().to_string() })
        });
    installed_clients.collect()
}
