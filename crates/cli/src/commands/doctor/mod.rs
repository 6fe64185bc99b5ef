//! `tribunal doctor`: what is here, what is missing, and how to repair it. Nothing it does costs anything.
//!
//! It reads the settings as a review would, asks every client for its version and its sign-in, and says whether a
//! review could run. A program that the project's settings name is not started before the user has trusted it.

mod document;
mod show;

use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::future::{join, join_all};
use tribunal_agents::clients::{self, AgentClient, CLIENTS};
use tribunal_core::{
    client::{Job, Part},
    settings::{AgentSpec, DriverSpec, Settings},
    subject::Subject,
};

use self::document::{AgentRow, Can, ClientRow, Other, ProjectRow, SCHEMA, SignedIn, Trouble};
use crate::{
    clients::{keys_set, on_path, own_provider},
    complaint::{Complaint, ENVIRONMENT, NextStep},
    context::Context,
    documents,
    probe::{Manner, Probed, State, ask, found, probe},
    settings::{self, Effective, Resolved, Wishes},
    trust::Book,
    trust_item::Item,
};

pub(crate) use document::Report;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How long each client may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=120))]
    timeout: u64,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let report = examine(context, Duration::from_secs(arguments.timeout))?;
    if context.json {
        documents::print(&report)?;
    } else {
        write!(stdout(), "{}", show::draw(&report, &context.answers))?;
    }
    // A missing requirement is the environment's fault, not a negative result of a check.
    Ok(if report.ready { 0 } else { ENVIRONMENT })
}

/// A client's program, under the name by which an agent's settings or the search path know it.
struct Candidate {
    client: AgentClient,
    program: String,
    path: Option<PathBuf>,
    agents: Vec<String>,
    trusted: bool,
}

fn examine(context: &Context, limit: Duration) -> Result<Report, Complaint> {
    let project = context.project();
    let root = project.root();
    // Faults keep a review from running; warnings are worth knowing and do not.
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    let (effective, resolved) = in_force(context, root, &mut faults);
    let mut unknown: Vec<Item> = Vec::new();
    if let Some(resolved) = &resolved {
        warnings.extend(resolved.warnings.iter().map(|what| trouble(what, &[])));
        unknown = not_trusted(context, root, &resolved.items, &mut faults);
    }
    let company = resolved.as_ref().map(|resolved| &resolved.settings);
    let candidates = candidates(context, root, company, &unknown);
    // Clients are probed in an empty directory, so that no project file can change what they answer.
    let folder = tempfile::tempdir()?;
    let manner = Manner { folder: folder.path(), limit, set: Vec::new(), provider: None };
    let (git, probed) = asked(context, &candidates, &manner)?;
    let clients: Vec<ClientRow> =
        candidates.iter().zip(&probed).map(|(candidate, probed)| client_row(candidate, probed)).collect();
    let agents = company.map(|company| agent_rows(context, root, company, &clients)).unwrap_or_default();
    if let Some(company) = company {
        // An agent that cannot work is a fault only if it leaves a job without any agent.
        for Unable { needed, trouble } in unable(company, &agents, &clients) {
            if needed { faults.push(trouble) } else { warnings.push(trouble) }
        }
        warnings.extend(missing_servers(context, root, company));
    }
    let survey = settings::survey(root, &effective);
    Ok(Report {
        schema: SCHEMA,
        ready: faults.is_empty(),
        faults,
        warnings,
        notes: resolved.as_ref().map(|resolved| resolved.notes.clone()).unwrap_or_default(),
        agents,
        clients,
        others: others(context),
        git,
        project: ProjectRow {
            root: root.display().to_string(),
            bmad: effective.bmad,
            personas: survey.roster.personas.len(),
        },
    })
}

fn trouble(what: impl Into<String>, mend: &[String]) -> Trouble {
    Trouble { what: what.into(), mend: mend.to_vec() }
}

fn faulty(complaint: &Complaint) -> Trouble {
    // A hint to run `doctor` is of no use in the output of `doctor`.
    let elsewhere = complaint.todo.iter().filter(|step| **step != NextStep::RunDoctor);
    let mend: Vec<String> = elsewhere.map(ToString::to_string).collect();
    trouble(&complaint.what, &mend)
}

/// Loads the settings as a review would. What keeps a review from loading them is added to the faults.
fn in_force(context: &Context, root: &Path, faults: &mut Vec<Trouble>) -> (Effective, Option<Resolved>) {
    let wishes = Wishes::from_environment(context);
    let effective = match settings::gather(root, &wishes.given) {
        Ok(effective) => effective,
        Err(complaint) => {
            // The defaults let the rest of the report be made: clients can be probed without the project's settings.
            faults.push(faulty(&complaint));
            return (Effective::defaults(), None);
        }
    };
    let problems = settings::survey(root, &effective).problems;
    for problem in &problems {
        let hint: Vec<String> = problem.hint.iter().cloned().collect();
        faults.push(trouble(format!("{}: {}", problem.place, problem.what), &hint));
    }
    // Which agents take part does not depend on the subject, so any name will do.
    let resolved = settings::resolve(root, Subject::at("subject.md", None), &wishes);
    match resolved {
        Ok(resolved) => (effective, Some(resolved)),
        Err(complaint) => {
            // The problems above already name the cause; the resolver would only report the first of them again.
            if problems.is_empty() {
                faults.push(faulty(&complaint));
            }
            (effective, None)
        }
    }
}

/// Finds the items for which a review would need the user's trust first.
fn not_trusted(context: &Context, root: &Path, items: &[Item], faults: &mut Vec<Trouble>) -> Vec<Item> {
    if items.is_empty() {
        return Vec::new();
    }
    let book = match Book::open(context) {
        Ok(book) => book,
        Err(complaint) => {
            faults.push(faulty(&complaint));
            // Without the trust store nothing counts as trusted, and so nothing of the project is started below.
            return items.to_vec();
        }
    };
    let unknown: Vec<Item> = items.iter().filter(|item| !book.trusts(root, item)).cloned().collect();
    // Commands may contain secrets, and a report is often pasted into an issue.
    let masker = context.masker();
    let mend = [format!("look at it and say yes: {} trust", context.answers.program)];
    for item in &unknown {
        faults.push(trouble(format!("not trusted yet: {}", item.shown(&masker)), &mend));
    }
    unknown
}

/// Lists every client under its own name on the search path, then those that agents know under another name.
fn candidates(
    context: &Context,
    root: &Path,
    company: Option<&Settings>,
    unknown: &[Item],
) -> Vec<Candidate> {
    let own = |client: AgentClient| Candidate {
        client,
        program: client.program.to_string(),
        path: on_path(client.program, &|name| context.variable(name)),
        agents: Vec::new(),
        // Clients on the user's own search path need no trust; only programs that the project names do.
        trusted: true,
    };
    let mut all: Vec<Candidate> = AgentClient::all().map(own).collect();
    for agent in company.into_iter().flat_map(everybody) {
        let Some(spec) = agent.driver.client() else { continue };
        let Ok(client) = AgentClient::find(spec.client.as_str()) else { continue };
        let name = agent.name.as_str().to_string();
        let program = spec.program.clone().unwrap_or_else(|| client.program.to_string());
        let same = |known: &&mut Candidate| known.client == client && known.program == program;
        // Two agents may share one program, which is then probed once.
        if let Some(known) = all.iter_mut().find(same) {
            known.agents.push(name);
            continue;
        }
        let item = Item::Client { name: name.clone(), program: program.clone() };
        let path = found(root, &program, &|name| context.variable(name));
        all.push(Candidate { client, program, path, agents: vec![name], trusted: !unknown.contains(&item) });
    }
    all
}

fn everybody(settings: &Settings) -> impl Iterator<Item = &AgentSpec> {
    settings.agents.iter().chain(&settings.reserves)
}

/// Finds MCP servers whose program is missing. Agents work without them, so this is only a warning.
fn missing_servers(context: &Context, root: &Path, company: &Settings) -> Vec<Trouble> {
    let mut names: Vec<&str> = Vec::new();
    let mut missing = Vec::new();
    let clients = company.agents.iter().filter_map(|agent| agent.driver.client());
    for server in clients.flat_map(|client| &client.servers) {
        // The same server is listed for every client that gets it.
        let Some(program) = server.argv.first().filter(|_| !names.contains(&server.name.as_str())) else {
            continue;
        };
        names.push(&server.name);
        if found(root, program, &|name| context.variable(name)).is_none() {
            let what = format!("server `{}`: the program `{program}` is not there", server.name);
            missing.push(trouble(what, &[format!("install it, or correct mcp.{}.argv", server.name)]));
        }
    }
    missing
}

/// Asks git and all clients for their versions, all of them at the same time.
fn asked(
    context: &Context,
    candidates: &[Candidate],
    manner: &Manner<'_>,
) -> Result<(Option<String>, Vec<Probed>), Complaint> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Complaint::new(ENVIRONMENT, format!("no runtime: {cause}")))?;
    let clients = candidates.iter().map(|candidate| async {
        // A missing or untrusted program is never started, not even for its version.
        match &candidate.path {
            None => Probed::unasked(State::NotThere),
            Some(_) if !candidate.trusted => Probed::unasked(State::Untrusted),
            Some(path) => {
                let variable = |name: &str| context.variable(name);
                let set = keys_set(candidate.client, &variable);
                let provider = own_provider(candidate.client, &variable);
                probe(candidate.client, path, &Manner { set, provider, ..manner.clone() }).await
            }
        }
    });
    let git = on_path("git", &|name| context.variable(name));
    let git = async {
        let said = ask(git.as_deref()?, &["--version"], manner).await.ok()?;
        clients::read_version(&said.stdout).map(|version| version.to_string())
    };
    let both = join(git, join_all(clients));
    Ok(runtime.block_on(both))
}

fn client_row(candidate: &Candidate, probed: &Probed) -> ClientRow {
    let client = candidate.client;
    let why = match &probed.state {
        State::Unsure { why } | State::Elsewhere { why } | State::Broken { why } => Some(why.clone()),
        _ => None,
    };
    let mend = match &probed.state {
        State::Ready | State::Elsewhere { .. } => None,
        // A name with a slash is a path from the settings: installing the client elsewhere would not help.
        State::NotThere if candidate.program.contains('/') => {
            Some("correct `program:` of the agent in the settings".to_string())
        }
        State::Unsure { .. } | State::NotSignedIn => Some(client.agent.sign_in.to_string()),
        // Reinstalling is the usual way out for a program that starts and fails.
        State::NotThere | State::Broken { .. } | State::TooOld => Some(client.agent.install.to_string()),
        State::Untrusted => Some("tribunal trust".to_string()),
    };
    ClientRow {
        id: client.id,
        name: client.name,
        program: candidate.program.clone(),
        path: candidate.path.as_ref().map(|path| path.display().to_string()),
        version: probed.version.map(|version| version.to_string()),
        minimum: client.agent.minimum.to_string(),
        state: probed.state.clone(),
        why,
        signed_in: probed.signed_in.clone().map(|(how, subscription)| SignedIn { how, subscription }),
        agents: candidate.agents.clone(),
        mend,
        can: client.agent.abilities.iter().map(|can| Can { what: can.what, how: can.how }).collect(),
    }
}

fn agent_rows(context: &Context, root: &Path, company: &Settings, clients: &[ClientRow]) -> Vec<AgentRow> {
    // A reserve takes no jobs of its own; it stands by for all that it is not excluded from.
    let row = |agent: &AgentSpec, reserve: bool| {
        let (driver, runs, state) = match &agent.driver {
            DriverSpec::Command { argv } => {
                let program = argv.first().map_or("", String::as_str);
                let there = found(root, program, &|name| context.variable(name)).is_some();
                ("command", program.to_string(), if there { State::Ready } else { State::NotThere })
            }
            DriverSpec::Replay { script, .. } => ("replay", script.clone(), State::Ready),
            DriverSpec::Client(_) => {
                // The state was probed for the client's program; the agent is found there by its name.
                let client =
                    clients.iter().find(|row| row.agents.iter().any(|name| name == agent.name.as_str()));
                let (id, program, state) = client.map_or(("client", "", State::NotThere), |row| {
                    (row.id, row.program.as_str(), row.state.clone())
                });
                (id, program.to_string(), state)
            }
        };
        let having = |wanted: fn(Part) -> bool| -> Vec<&'static str> {
            let jobs = [Job::Review, Job::Fix].into_iter();
            // An agent without an entry for a job takes it.
            let part = |job: &Job| agent.duties.get(job).map_or(Part::Takes, |duty| duty.part);
            jobs.filter(|job| wanted(part(job))).map(Job::as_str).collect()
        };
        AgentRow {
            name: agent.name.as_str().to_string(),
            driver,
            provider: agent.provider().to_string(),
            takes: if reserve { Vec::new() } else { having(|part| part == Part::Takes) },
            stands_by: match reserve {
                true => having(|part| part != Part::Never),
                false => having(|part| matches!(part, Part::StandsBy | Part::StandsBehind)),
            },
            runs,
            can_work: state.can_work(),
            state,
        }
    };
    let agents = company.agents.iter().map(|agent| row(agent, false));
    agents.chain(company.reserves.iter().map(|agent| row(agent, true))).collect()
}

/// An agent that cannot work.
struct Unable {
    /// Whether some job is left without any agent because of it.
    needed: bool,
    trouble: Trouble,
}

fn unable(company: &Settings, agents: &[AgentRow], clients: &[ClientRow]) -> Vec<Unable> {
    let mend = |agent: &AgentRow| -> Vec<String> {
        let client = clients.iter().find(|row| row.agents.contains(&agent.name));
        // Agents without a client are commands from the settings.
        match client {
            Some(client) => client.mend.iter().cloned().collect(),
            None => vec![format!("install `{}`, or correct `argv` of agent `{}`", agent.runs, agent.name)],
        }
    };
    let told = |agent: &AgentRow| trouble(format!("agent `{}`: {}", agent.name, agent.state), &mend(agent));
    let jobs: &[&str] = if company.fix { &["review", "fix"] } else { &["review"] };
    let does = |agent: &AgentRow, job: &str| agent.takes.contains(&job) || agent.stands_by.contains(&job);
    let stuck = |job: &&&str| !agents.iter().any(|agent| agent.can_work && does(agent, job));
    let stuck: Vec<&&str> = jobs.iter().filter(stuck).collect();
    // Untrusted items are listed as faults already.
    let unable = agents.iter().filter(|agent| !agent.can_work && agent.state != State::Untrusted);
    let needed = |agent: &AgentRow| stuck.iter().any(|job| does(agent, job));
    unable.map(|agent| Unable { needed: needed(agent), trouble: told(agent) }).collect()
}

fn others(context: &Context) -> Vec<Other> {
    // Clients without a driver are listed so that the user does not wonder why an installed one is not used.
    let there = CLIENTS.iter().filter(|known| known.agent.is_none()).filter_map(|known| {
        let path = on_path(known.program, &|name| context.variable(name))?;
        Some(Other { id: known.id, name: known.name, path: path.display().to_string() })
    });
    there.collect()
}
