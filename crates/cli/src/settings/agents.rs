//! Chooses which agents take part. [`super::drivers`] resolves how each is driven, [`super::selection`] which of them does
//! what, and [`super::trust_items`] what of it would run something.

use std::path::Path;

use tribunal_agents::clients::{AGENT_CLIENT_IDS, AgentClient};
use tribunal_core::{
    ids::AgentName,
    settings::{AgentSpec, DriverSpec},
};

use super::{
    drivers::{driver, itself},
    layers::{Effective, FILE, list, place, text},
    nearest,
    read::{self, Problem},
    selection::{self, Selection},
    typed::{AgentChoice, TypedSettings},
    wishes::Wishes,
};
use crate::{
    clients::Present,
    complaint::{Complaint, ENVIRONMENT},
};

/// The names under `agents:`, sorted.
fn defined(effective: &Effective) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for path in effective.values.keys() {
        if let Some((name, _)) = path.strip_prefix("agents.").and_then(|rest| rest.split_once('.'))
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    names
}

/// The agents that take part, and their reserves.
#[derive(Debug)]
pub(super) struct Company {
    pub agents: Vec<AgentSpec>,
    pub reserves: Vec<AgentSpec>,
    /// Settings that are not used in the way that was perhaps meant.
    pub warnings: Vec<String>,
    /// Says which agent was chosen, if the user named none.
    pub chosen: Option<String>,
}

/// Chooses the agents of a run.
pub(super) fn company(
    effective: &Effective,
    typed: &TypedSettings,
    wishes: &Wishes,
    root: &Path,
) -> Result<Company, Complaint> {
    // Unknown names are reported together, before any single agent is built.
    if let Some(complaint) = read::complaint(&problems(effective, &typed.agents)) {
        return Err(complaint);
    }
    let selection = Selection::from_settings(effective, typed);
    let named = typed.agents.used.clone().unwrap_or_default();
    let Used { names: used, chosen } = match named.is_empty() {
        true => unnamed(effective, &selection, wishes, root)?,
        false => Used { names: named, chosen: None },
    };
    let named = |name: &str| agent(name, effective, wishes.paced, root);
    // Agents that `agentConfig` names take part even if `agents.use` does not list them.
    let mut names = used.clone();
    for name in [selection.primaries(), selection.fallbacks()].concat() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut agents = names.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
    let (problems, warnings) = selection.assign(&mut agents, &used, effective);
    if let Some(complaint) = read::complaint(&problems) {
        return Err(complaint);
    }
    // A chain of stronger agents is followed to its end; each of them is in reserve once.
    let mut reserves: Vec<AgentSpec> = Vec::new();
    for agent in &agents {
        let mut above = agent.stronger.clone();
        while let Some(name) = above {
            if agents.iter().chain(&reserves).any(|known| known.name == name) {
                break;
            }
            let reserve = named(name.as_str())?;
            above = reserve.stronger.clone();
            reserves.push(reserve);
        }
    }
    Ok(Company { agents, reserves, warnings, chosen })
}

/// The names of the agents that take part.
struct Used {
    names: Vec<String>,
    chosen: Option<String>,
}

/// The agents that take part if `agents.use` names none: the only one that is defined, or those that `agentConfig` names, or
/// the first client that is installed and signed in.
fn unnamed(
    effective: &Effective,
    selection: &Selection,
    wishes: &Wishes,
    root: &Path,
) -> Result<Used, Complaint> {
    let of = |names| Ok(Used { names, chosen: None });
    let defined = defined(effective);
    match (defined.as_slice(), selection.primaries()) {
        ([only], _) => of(vec![only.to_string()]),
        (_, named) if !named.is_empty() => of(named),
        ([], _) => {
            let mut clients = wishes.clients.clone();
            // A sign-in by keychain shows nowhere, so the clients are asked. This takes seconds and is done only if it is
            // needed.
            if let Some(ask) = wishes.ask.filter(|_| !clients.iter().any(Present::is_ready)) {
                ask(&mut clients);
            }
            let ready = clients.iter().filter(|present| present.is_ready());
            let mut ready = ready.filter_map(|present| Some((present.client, present.signed_in.as_ref()?)));
            let (client, how) = ready.next().ok_or_else(|| no_agent(root, &clients))?;
            let chosen = format!(
                "no agent is set: {} takes part, the first client that is installed and signed in ({how}); another one: --agent NAME",
                client.id
            );
            Ok(Used { names: vec![client.id.to_string()], chosen: Some(chosen) })
        }
        (several, _) => Err(not_said(root, several)),
    }
}

/// Finds names that lead nowhere: under `use`, in `agentConfig`, and from an agent to a stronger one.
pub(super) fn problems(effective: &Effective, choice: &AgentChoice) -> Vec<Problem> {
    let defined = defined(effective);
    let is_known = |name: &str| defined.contains(&name) || itself(name).is_some();
    let mut problems = Vec::new();
    for name in choice.used.iter().flatten().filter(|name| !is_known(name)) {
        let what = format!("there is no agent `{name}`");
        let hint = define(name, &defined);
        problems.push(Problem::at(effective.origin("agents.use"), what, Some(hint)));
    }
    for (path, name) in selection::names(effective).into_iter().filter(|(_, name)| !is_known(name)) {
        let what = format!("`{path}` is `{name}`, and there is no such agent");
        problems.push(Problem::at(effective.origin(path), what, Some(define(name, &defined))));
    }
    for name in &defined {
        let path = format!("agents.{name}.stronger");
        let Some(stronger) = text(effective, &path) else { continue };
        let others: Vec<&str> = defined.iter().copied().filter(|other| other != name).collect();
        let (what, hint) = if stronger == *name {
            ("the agent itself".to_string(), "name another agent, or remove the line".to_string())
        } else if !is_known(stronger) {
            (format!("`{stronger}`, and there is no such agent"), meant(stronger, &others))
        } else if let Some(circle) = circle(effective, name) {
            let circle = circle.join("`, then `");
            let hint = "let the strongest of them have no stronger one".to_string();
            (format!("`{stronger}`, which leads back to it: `{circle}`, then `{name}` again"), hint)
        } else {
            continue;
        };
        problems.push(Problem::at(effective.origin(&path), format!("`{path}` is {what}"), Some(hint)));
    }
    // A server without a command would make its client fail to start.
    for (path, _) in effective.values.iter().filter(|(path, _)| path.starts_with("mcp.")) {
        if list(effective, path).is_empty() {
            let hint = Some("write the program and its arguments, or remove the server".into());
            problems.push(Problem::at(effective.origin(path), format!("`{path}` is empty"), hint));
        }
    }
    problems
}

/// The hint for an agent that is not defined.
fn define(name: &str, defined: &[&str]) -> String {
    // Without any definition the name is probably a misspelt client.
    match (defined, nearest(name, &AGENT_CLIENT_IDS)) {
        ([], Some(near)) => format!("did you mean `{near}`?"),
        ([], None) => format!(
            "name {}, or define it in {FILE}: agents: {{{name}: {{driver: command, argv: […]}}}}",
            AGENT_CLIENT_IDS.join(" or ")
        ),
        (known, _) => meant(name, known),
    }
}

/// The hint that names the nearest known agent.
fn meant(name: &str, known: &[&str]) -> String {
    match (nearest(name, known), known) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "define it under `agents:`; there is no other agent".to_string(),
        (None, known) => format!("define it under `agents:`; defined are: {}", known.join(", ")),
    }
}

/// The agents on the way from this one back to itself. A circle is reported once, by the first of its names.
fn circle<'a>(effective: &'a Effective, name: &'a str) -> Option<Vec<&'a str>> {
    let mut way = vec![name];
    let mut at = name;
    while let Some(next) = text(effective, &format!("agents.{at}.stronger")) {
        if next == name {
            return way.iter().all(|other| name <= *other).then_some(way);
        }
        // This agent only leads into a circle of others, which they report.
        if way.contains(&next) {
            return None;
        }
        way.push(next);
        at = next;
    }
    None
}

/// The error for several defined agents of which none is chosen.
fn not_said(root: &Path, defined: &[&str]) -> Complaint {
    Complaint::usage(format!("it is not said which of the agents take part: {}", defined.join(", ")))
        .why("Nothing was started.")
        .todo(format!(
            "add under `agents:` in {} a line `use: [NAME]`, or say --agent NAME",
            root.join(FILE).display()
        ))
}

/// The error if no agent is named and no client can be used.
fn no_agent(root: &Path, clients: &[Present]) -> Complaint {
    let mut why = "Nothing was started. A review needs an agent.".to_string();
    for present in clients {
        let (id, program) = (present.client.id, present.client.program);
        why.push_str(&match &present.path {
            None => format!("\n  {id}: the program `{program}` is not on the path"),
            Some(path) => format!("\n  {id}: {} is there, and nobody is signed in", path.display()),
        });
    }
    let mut complaint =
        Complaint::new(ENVIRONMENT, "no agent is set, and no client can be used as it is").why(why);
    // Signing in is the shorter way if a client is already installed.
    if let Some(present) = clients.iter().find(|present| present.path.is_some()) {
        complaint = complaint.todo(format!("sign in: {}", present.client.agent.sign_in));
    } else if let Some(present) = clients.first() {
        complaint = complaint.todo(format!("install one, for instance: {}", present.client.agent.install));
    }
    complaint
        .todo(format!(
            "or name a command of yours in {}: agents: {{mine: {{driver: command, argv: [my-agent]}}}}",
            root.join(FILE).display()
        ))
        .todo_doctor()
        .todo("or see it work without an agent: tribunal demo")
}

/// Builds an agent from its settings.
fn agent(name: &str, effective: &Effective, paced: bool, root: &Path) -> Result<AgentSpec, Complaint> {
    let driver = driver(name, effective, paced)?;
    if let DriverSpec::Replay { script, .. } = &driver
        && !root.join(script).is_file()
    {
        let place = place(effective, &format!("agents.{name}.script"));
        return Err(Complaint::usage(format!("agent `{name}`: its script {script} does not exist"))
            .why("Nothing was started.")
            .todo(format!("correct `script:` ({place})")));
    }
    // Two spellings of one provider count as one voice.
    let provider = text(effective, &format!("agents.{name}.provider")).unwrap_or_else(|| vendor(&driver));
    let stronger = text(effective, &format!("agents.{name}.stronger"));
    Ok(AgentSpec {
        name: AgentName::new(name),
        driver,
        provider: provider.trim().to_lowercase(),
        stronger: stronger.map(AgentName::new),
        duties: Default::default(),
    })
}

/// The vendor whose model a driver asks by default; empty if it is unknown.
fn vendor(driver: &DriverSpec) -> &'static str {
    let client = driver.client().and_then(|client| AgentClient::find(client.client.as_str()).ok());
    client.map_or("", |client| client.agent.vendor)
}
