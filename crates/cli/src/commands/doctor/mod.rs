//! `tribunal doctor`: what is here, what is missing, and how to repair it. Nothing it does costs anything.
//!
//! It reads the settings as a review would, asks every client for its version and its sign-in, and says whether a
//! review could run. A program that the project's settings name is not started before the user has trusted it.

mod document;
mod render;

use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::future::{join, join_all};
use tribunal_agents::clients::{self, AgentClient, CLIENTS};
use tribunal_core::{
    client::{JobKind, JobPriority},
    settings::{AgentSpec, DriverSpec, Settings},
    subject::Subject,
};

use self::document::{
    DOCTOR_SCHEMA, DoctorAbility, DoctorAgentRow, DoctorClientRow, DoctorProblem, DoctorProjectRow, DoctorSignIn,
    OtherClient,
};
use crate::{
    client_probe::{ClientState, ProbeOptions, ProbeResult, find_program, probe_client, run_program},
    context::CommandContext,
    installed_clients::{describe_custom_provider, find_on_path, keys_in_env},
    json_documents,
    settings::{self, EffectiveSettings, ResolvedSettings, RunInputs},
    trust::TrustStore,
    trust_item::TrustItem,
    user_errors::{EXIT_ENVIRONMENT, SuggestedStep, UserError},
};

pub(crate) use document::DoctorReport;

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArguments {
    /// Seconds to wait for each client's answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=120))]
    timeout: u64,
}

pub(crate) fn run(arguments: &DoctorArguments, context: &CommandContext) -> Result<u8, UserError> {
    let report = examine_setup(context, Duration::from_secs(arguments.timeout))?;
    if context.wants_json {
        json_documents::print_document(&report)?;
    } else {
        write!(stdout(), "{}", render::render_report(&report, &context.answer_screen))?;
    }
    // A missing requirement is the environment's fault, not a negative result of a check.
    Ok(if report.ready { 0 } else { EXIT_ENVIRONMENT })
}

/// A client's program, under the name by which an agent's settings or the search path know it.
struct ClientCandidate {
    client: AgentClient,
    program: String,
    program_path: Option<PathBuf>,
    agent_names: Vec<String>,
    is_trusted: bool,
}

fn examine_setup(context: &CommandContext, probe_timeout: Duration) -> Result<DoctorReport, UserError> {
    let project = context.current_project();
    let project_root = project.root();
    // Faults keep a review from running; warnings are worth knowing and do not.
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    let (effective, resolved) = load_settings(context, project_root, &mut faults);
    let mut untrusted_items: Vec<TrustItem> = Vec::new();
    if let Some(resolved) = &resolved {
        warnings.extend(resolved.warnings.iter().map(|warning| new_problem(warning, &[])));
        untrusted_items = find_untrusted_items(context, project_root, &resolved.items, &mut faults);
    }
    let review_settings = resolved.as_ref().map(|resolved| &resolved.settings);
    let client_candidates = find_candidates(context, project_root, review_settings, &untrusted_items);
    // Clients are probed in an empty directory, so that no project file can change what they answer.
    let probe_dir = tempfile::tempdir()?;
    let probe_options = ProbeOptions {
        directory: probe_dir.path(),
        timeout: probe_timeout,
        keys_in_env: Vec::new(),
        custom_provider: None,
    };
    let (git_version, probe_results) = probe_clients(context, &client_candidates, &probe_options)?;
    let client_rows: Vec<DoctorClientRow> = client_candidates
        .iter()
        .zip(&probe_results)
        .map(|(candidate, probed)| build_client_row(candidate, probed))
        .collect();
    let agents = review_settings
        .map(|review_settings| build_agent_rows(context, project_root, review_settings, &client_rows))
        .unwrap_or_default();
    if let Some(review_settings) = review_settings {
        // An agent that cannot work is a fault only if it leaves a job without any agent.
        for UnableAgent { is_needed, problem } in find_unable_agents(review_settings, &agents, &client_rows) {
            if is_needed { faults.push(problem) } else { warnings.push(problem) }
        }
        warnings.extend(find_missing_servers(context, project_root, review_settings));
    }
    let survey = settings::survey_settings(project_root, &effective);
    Ok(DoctorReport {
        schema: DOCTOR_SCHEMA,
        ready: faults.is_empty(),
        faults,
        warnings,
        notes: resolved.as_ref().map(|resolved| resolved.notes.clone()).unwrap_or_default(),
        agents,
        clients: client_rows,
        others: find_other_clients(context),
        git: git_version,
        project: DoctorProjectRow {
            root: project_root.display().to_string(),
            bmad: effective.has_bmad,
            personas: survey.roster.personas.len(),
        },
    })
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
fn find_untrusted_items(
    context: &CommandContext,
    project_root: &Path,
    trust_items: &[TrustItem],
    faults: &mut Vec<DoctorProblem>,
) -> Vec<TrustItem> {
    if trust_items.is_empty() {
        return Vec::new();
    }
    let trust_store = match TrustStore::open_default(context) {
        Ok(trust_store) => trust_store,
        Err(user_error) => {
            faults.push(problem_from_error(&user_error));
            // Without the trust store nothing counts as trusted, and so nothing of the project is started below.
            return trust_items.to_vec();
        }
    };
    let untrusted_items: Vec<TrustItem> =
        trust_items.iter().filter(|trust_item| !trust_store.is_trusted(project_root, trust_item)).cloned().collect();
    // Commands may contain secrets, and a report may be pasted into an issue.
    let masker = context.secret_masker();
    let remedies = [format!("review and allow it: `{} trust`", context.answer_screen.program_name)];
    for trust_item in &untrusted_items {
        faults.push(new_problem(format!("not trusted yet: {}", trust_item.describe_masked(&masker)), &remedies));
    }
    untrusted_items
}

/// Lists every client under its own name on the search path, then those that agents know under another name.
fn find_candidates(
    context: &CommandContext,
    project_root: &Path,
    review_settings: Option<&Settings>,
    untrusted_items: &[TrustItem],
) -> Vec<ClientCandidate> {
    let default_candidate = |client: AgentClient| ClientCandidate {
        client,
        program: client.program.to_string(),
        program_path: find_on_path(client.program, &|variable_name| context.env_variable(variable_name)),
        agent_names: Vec::new(),
        // Clients on the user's own search path need no trust; only programs that the project names do.
        is_trusted: true,
    };
    let mut all_candidates: Vec<ClientCandidate> = AgentClient::all().map(default_candidate).collect();
    for agent in review_settings.into_iter().flat_map(all_agents) {
        let Some(client_spec) = agent.driver.client_spec() else { continue };
        let Ok(client) = AgentClient::find(client_spec.client.as_str()) else { continue };
        let agent_name = agent.name.as_str().to_string();
        let program = client_spec.program.clone().unwrap_or_else(|| client.program.to_string());
        let is_same_program = |known_candidate: &&mut ClientCandidate| {
            known_candidate.client == client && known_candidate.program == program
        };
        // Two agents may share one program, which is then probed once.
        if let Some(known_candidate) = all_candidates.iter_mut().find(is_same_program) {
            known_candidate.agent_names.push(agent_name);
            continue;
        }
        let trust_item = TrustItem::Client { agent_name: agent_name.clone(), program: program.clone() };
        let program_path = find_program(project_root, &program, &|variable_name| context.env_variable(variable_name));
        all_candidates.push(ClientCandidate {
            client,
            program,
            program_path,
            agent_names: vec![agent_name],
            is_trusted: !untrusted_items.contains(&trust_item),
        });
    }
    all_candidates
}

fn all_agents(settings: &Settings) -> impl Iterator<Item = &AgentSpec> {
    settings.agents.iter().chain(&settings.reserves)
}

/// Finds MCP servers whose program is missing. Agents work without them, so this is only a warning.
fn find_missing_servers(
    context: &CommandContext,
    project_root: &Path,
    review_settings: &Settings,
) -> Vec<DoctorProblem> {
    let mut checked_names: Vec<&str> = Vec::new();
    let mut problems = Vec::new();
    let client_specs = review_settings.agents.iter().filter_map(|agent| agent.driver.client_spec());
    for server in client_specs.flat_map(|client_spec| &client_spec.servers) {
        // The same server is listed for every client that gets it.
        let Some(program) = server.argv.first().filter(|_| !checked_names.contains(&server.name.as_str())) else {
            continue;
        };
        checked_names.push(&server.name);
        if find_program(project_root, program, &|variable_name| context.env_variable(variable_name)).is_none() {
            let description = format!("MCP server `{}`: program `{program}` not found", server.name);
            problems.push(new_problem(
                description,
                &[format!("install it, or fix `mcp.{}.argv` in the settings", server.name)],
            ));
        }
    }
    problems
}

/// Asks git and all clients for their versions, all of them at the same time.
fn probe_clients(
    context: &CommandContext,
    client_candidates: &[ClientCandidate],
    probe_options: &ProbeOptions<'_>,
) -> Result<(Option<String>, Vec<ProbeResult>), UserError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| UserError::new(EXIT_ENVIRONMENT, format!("cannot start the async runtime: {cause}")))?;
    let client_probes = client_candidates.iter().map(|candidate| async {
        // A missing or untrusted program is never started, not even for its version.
        match &candidate.program_path {
            None => ProbeResult::without_answer(ClientState::NotInstalled),
            Some(_) if !candidate.is_trusted => ProbeResult::without_answer(ClientState::Untrusted),
            Some(program_path) => {
                let variable = |variable_name: &str| context.env_variable(variable_name);
                let set_variables = keys_in_env(candidate.client, &variable);
                let provider = describe_custom_provider(candidate.client, &variable);
                probe_client(
                    candidate.client,
                    program_path,
                    &ProbeOptions { keys_in_env: set_variables, custom_provider: provider, ..probe_options.clone() },
                )
                .await
            }
        }
    });
    let git_path = find_on_path("git", &|variable_name| context.env_variable(variable_name));
    let git_probe = async {
        let version_output = run_program(git_path.as_deref()?, &["--version"], probe_options).await.ok()?;
        clients::find_version(&version_output.stdout).map(|version| version.to_string())
    };
    let all_probes = join(git_probe, join_all(client_probes));
    Ok(runtime.block_on(all_probes))
}

fn build_client_row(candidate: &ClientCandidate, probed: &ProbeResult) -> DoctorClientRow {
    let client = candidate.client;
    let reason = match &probed.state {
        ClientState::Unsure { reason } | ClientState::OtherProvider { reason } | ClientState::Broken { reason } => {
            Some(reason.clone())
        }
        _ => None,
    };
    let remedy = match &probed.state {
        ClientState::Ready | ClientState::OtherProvider { .. } => None,
        // A name with a slash is a path from the settings: installing the client elsewhere would not help.
        ClientState::NotInstalled if candidate.program.contains('/') => {
            Some("fix `program:` of the agent in the settings".to_string())
        }
        ClientState::Unsure { .. } | ClientState::NotSignedIn => Some(client.facts.sign_in_hint.to_string()),
        // Reinstalling is the usual way out for a program that starts and fails.
        ClientState::NotInstalled | ClientState::Broken { .. } | ClientState::TooOld => {
            Some(client.facts.install_hint.to_string())
        }
        ClientState::Untrusted => Some("tribunal trust".to_string()),
    };
    DoctorClientRow {
        id: client.id,
        name: client.name,
        program: candidate.program.clone(),
        path: candidate.program_path.as_ref().map(|program_path| program_path.display().to_string()),
        version: probed.version.map(|version| version.to_string()),
        minimum: client.facts.minimum_version.to_string(),
        state: probed.state.clone(),
        why: reason,
        signed_in: probed
            .sign_in
            .clone()
            .map(|(sign_in_method, subscription)| DoctorSignIn { how: sign_in_method, subscription }),
        agents: candidate.agent_names.clone(),
        mend: remedy,
        can: client
            .facts
            .abilities
            .iter()
            .map(|ability| DoctorAbility { what: ability.label, how: ability.explanation })
            .collect(),
    }
}

fn build_agent_rows(
    context: &CommandContext,
    project_root: &Path,
    review_settings: &Settings,
    client_rows: &[DoctorClientRow],
) -> Vec<DoctorAgentRow> {
    // A reserve takes no jobs of its own; it stands by for all that it is not excluded from.
    let build_row = |agent: &AgentSpec, is_reserve: bool| {
        let (driver, runs, state) = match &agent.driver {
            DriverSpec::Command { argv } => {
                let program = argv.first().map_or("", String::as_str);
                let is_found =
                    find_program(project_root, program, &|variable_name| context.env_variable(variable_name)).is_some();
                ("command", program.to_string(), if is_found { ClientState::Ready } else { ClientState::NotInstalled })
            }
            DriverSpec::Replay { script, .. } => ("replay", script.clone(), ClientState::Ready),
            DriverSpec::Client(_) => {
                // The state was probed for the client's program; the agent is found there by its name.
                let client = client_rows
                    .iter()
                    .find(|client_row| client_row.agents.iter().any(|agent_name| agent_name == agent.name.as_str()));
                let (client_id, program, state) = client
                    .map_or(("client", "", ClientState::NotInstalled), |client_row| {
                        (client_row.id, client_row.program.as_str(), client_row.state.clone())
                    });
                (client_id, program.to_string(), state)
            }
        };
        let jobs_with_part = |accepts_part: fn(JobPriority) -> bool| -> Vec<&'static str> {
            let jobs = [JobKind::Review, JobKind::Fix].into_iter();
            // An agent without an entry for a job takes it.
            let part_of_job = |job: &JobKind| agent.duties.get(job).map_or(JobPriority::Takes, |duty| duty.part);
            jobs.filter(|job| accepts_part(part_of_job(job))).map(JobKind::as_str).collect()
        };
        DoctorAgentRow {
            name: agent.name.as_str().to_string(),
            driver,
            provider: agent.provider_name().to_string(),
            takes: if is_reserve { Vec::new() } else { jobs_with_part(|agent_part| agent_part == JobPriority::Takes) },
            stands_by: match is_reserve {
                true => jobs_with_part(|agent_part| agent_part != JobPriority::Never),
                false => {
                    jobs_with_part(|agent_part| matches!(agent_part, JobPriority::StandsBy | JobPriority::StandsBehind))
                }
            },
            runs,
            can_work: state.can_work(),
            state,
        }
    };
    let active_rows = review_settings.agents.iter().map(|agent| build_row(agent, false));
    active_rows.chain(review_settings.reserves.iter().map(|agent| build_row(agent, true))).collect()
}

/// An agent that cannot work.
struct UnableAgent {
    /// Whether some job is left without any agent because of it.
    is_needed: bool,
    problem: DoctorProblem,
}

fn find_unable_agents(
    review_settings: &Settings,
    agent_rows: &[DoctorAgentRow],
    client_rows: &[DoctorClientRow],
) -> Vec<UnableAgent> {
    let find_remedies = |agent: &DoctorAgentRow| -> Vec<String> {
        let client = client_rows.iter().find(|row| row.agents.contains(&agent.name));
        // Agents without a client are commands from the settings.
        match client {
            Some(client) => client.mend.iter().cloned().collect(),
            None => vec![format!("install `{}`, or fix `argv` of agent `{}`", agent.runs, agent.name)],
        }
    };
    let describe_agent =
        |agent: &DoctorAgentRow| new_problem(format!("agent `{}`: {}", agent.name, agent.state), &find_remedies(agent));
    let jobs: &[&str] = if review_settings.fix { &["review", "fix"] } else { &["review"] };
    let handles_job = |agent: &DoctorAgentRow, job: &str| agent.takes.contains(&job) || agent.stands_by.contains(&job);
    let is_unstaffed = |job: &&&str| !agent_rows.iter().any(|agent| agent.can_work && handles_job(agent, job));
    let unstaffed_jobs: Vec<&&str> = jobs.iter().filter(is_unstaffed).collect();
    // Untrusted items are listed as faults already.
    let unable_rows = agent_rows.iter().filter(|agent| !agent.can_work && agent.state != ClientState::Untrusted);
    let is_needed_for_job = |agent: &DoctorAgentRow| unstaffed_jobs.iter().any(|job| handles_job(agent, job));
    unable_rows
        .map(|agent| UnableAgent { is_needed: is_needed_for_job(agent), problem: describe_agent(agent) })
        .collect()
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
