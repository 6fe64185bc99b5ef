//! Which agents take part, how each is driven, and what of all settings would run a command.

use std::path::Path;

use tribunal_core::{
    ids::{AgentName, Hash},
    settings::{AgentSpec, DriverSpec, Settings},
};

use super::{
    kind::Value,
    layers::{self, Effective, FILE, Layer},
    nearest,
    read::{self, Problem},
    resolve::{list, place, text},
};
use crate::{complaint::Complaint, trust::Item};

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

/// Those who take part, and those who stand behind them.
#[derive(Debug)]
pub(super) struct Company {
    pub agents: Vec<AgentSpec>,
    pub reserves: Vec<AgentSpec>,
}

pub(super) fn company(effective: &Effective, paced: bool, root: &Path) -> Result<Company, Complaint> {
    if let Some(complaint) = read::complaint(&problems(effective)) {
        return Err(complaint);
    }
    let defined = defined(effective);
    let used = match (list(effective, "agents.use"), defined.as_slice()) {
        (used, [only]) if used.is_empty() => vec![only.to_string()],
        (used, _) => used,
    };
    if used.is_empty() {
        return Err(no_agent(root, &defined));
    }
    let named = |name: &str| agent(name, effective, paced, root);
    let agents = used.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
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
    Ok(Company { agents, reserves })
}

/// Names that lead nowhere: under `use`, and from one agent to a stronger one.
pub(super) fn problems(effective: &Effective) -> Vec<Problem> {
    let defined = defined(effective);
    let mut problems = Vec::new();
    for name in list(effective, "agents.use").iter().filter(|name| !defined.contains(&name.as_str())) {
        let hint = match defined.as_slice() {
            [] => format!("define it in {FILE}: agents: {{{name}: {{driver: command, argv: […]}}}}"),
            known => meant(name, known),
        };
        let what = format!("there is no agent `{name}`");
        problems.push(Problem::at(effective.origin("agents.use"), what, Some(hint)));
    }
    for name in &defined {
        let path = format!("agents.{name}.stronger");
        let Some(stronger) = text(effective, &path) else { continue };
        let others: Vec<&str> = defined.iter().copied().filter(|other| other != name).collect();
        let (what, hint) = if stronger == *name {
            ("the agent itself".to_string(), "name another agent, or remove the line".to_string())
        } else if !others.contains(&stronger) {
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
    problems
}

fn meant(name: &str, known: &[&str]) -> String {
    match (nearest(name, known), known) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "define it under `agents:`; there is no other agent".to_string(),
        (None, known) => format!("define it under `agents:`; defined are: {}", known.join(", ")),
    }
}

/// The agents on the way from this one back to it. Told once, by the first of them.
fn circle<'a>(effective: &'a Effective, name: &'a str) -> Option<Vec<&'a str>> {
    let mut way = vec![name];
    let mut at = name;
    while let Some(next) = text(effective, &format!("agents.{at}.stronger")) {
        if next == name {
            return way.iter().all(|other| name <= *other).then_some(way);
        }
        // Somebody else's circle, which this agent only leads into.
        if way.contains(&next) {
            return None;
        }
        way.push(next);
        at = next;
    }
    None
}

fn no_agent(root: &Path, defined: &[&str]) -> Complaint {
    let file = root.join(FILE);
    if !defined.is_empty() {
        return Complaint::usage(format!(
            "it is not said which of the agents take part: {}",
            defined.join(", ")
        ))
        .why("Nothing was started.")
        .todo(format!(
            "add under `agents:` in {} a line `use: [NAME]`, or say --agent NAME",
            file.display()
        ));
    }
    Complaint::usage("no agent is set")
        .why("Nothing was started. A review needs an agent: a command that reads a prompt and prints an answer.")
        .todo(format!("write into {}: agents: {{use: [mine], mine: {{driver: command, argv: [my-agent]}}}}", file.display()))
        .todo("or see it work without one: tribunal demo")
}

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
    // One provider in two spellings is one voice.
    let provider = text(effective, &format!("agents.{name}.provider")).unwrap_or_default();
    let stronger = text(effective, &format!("agents.{name}.stronger"));
    Ok(AgentSpec {
        name: AgentName::new(name),
        driver,
        provider: provider.trim().to_lowercase(),
        stronger: stronger.map(AgentName::new),
        duties: Default::default(),
    })
}

fn driver(name: &str, effective: &Effective, paced: bool) -> Result<DriverSpec, Complaint> {
    let at = |key: &str| format!("agents.{name}.{key}");
    let script = text(effective, &at("script"));
    let argv = list(effective, &at("argv"));
    let wrong = |what: &str, key: &str| {
        Complaint::usage(format!("agent `{name}`: {what}"))
            .why(format!("It stands in {}. Nothing was started.", place(effective, &at(key))))
            .todo("see what is allowed: tribunal inspect settings, or tribunal schema settings")
    };
    match (text(effective, &at("driver")), script) {
        (None, _) => {
            let stands = |key: &&&str| effective.origin(&at(key)).is_some();
            let key = ["script", "argv", "provider", "stronger"].iter().find(stands).copied();
            let key = key.unwrap_or("driver");
            Err(wrong("it has no `driver`; write driver: command, or driver: replay", key))
        }
        (Some("command"), Some(_)) => Err(wrong("a `command` agent has `argv`, not `script`", "script")),
        (Some("command"), None) if argv.is_empty() => Err(wrong("a `command` agent needs `argv`", "driver")),
        (Some("command"), None) => Ok(DriverSpec::Command { argv }),
        (Some(_), None) => Err(wrong("a `replay` agent needs `script`", "driver")),
        (Some(_), Some(_)) if !argv.is_empty() => {
            Err(wrong("a `replay` agent has `script`, not `argv`", "argv"))
        }
        (Some(_), Some(script)) => Ok(DriverSpec::Replay { script: script.to_string(), paced }),
    }
}

/// What of a run's settings would run a command and came with the project.
pub(super) fn items(effective: &Effective, settings: &Settings) -> Vec<Item> {
    let from_project =
        |path: &str| effective.origin(path).is_some_and(|origin| origin.layer.is_the_project_s());
    let mut items = Item::of(settings);
    items.retain(|item| match item {
        Item::Agent { name, .. } => from_project(&format!("agents.{name}.argv")),
        Item::Verify { .. } => from_project("verify"),
    });
    items
}

/// Everything the project's files define that could run a command, whether a run would use it or not.
pub(crate) fn all_items(effective: &Effective) -> Vec<Item> {
    items_where(effective, Layer::is_the_project_s)
}

/// The same of what the person set outside any project.
pub(crate) fn person_s_items(effective: &Effective) -> Vec<Hash> {
    items_where(effective, |layer| !layer.is_the_project_s()).iter().map(Item::hash).collect()
}

fn items_where(effective: &Effective, wanted: impl Fn(Layer) -> bool) -> Vec<Item> {
    let mut items = Vec::new();
    for (path, setting) in &effective.values {
        let (Value::List(list), true) = (&setting.value, wanted(setting.origin.layer)) else { continue };
        if let Some(name) = path.strip_prefix("agents.").and_then(|rest| rest.strip_suffix(".argv")) {
            items.push(Item::Agent { name: name.to_string(), argv: list.clone() });
        } else if path == "verify" {
            items.extend(list.iter().map(|command| Item::Verify { command: command.clone() }));
        }
    }
    items
}

/// The same for a text that is no file of this project.
pub(crate) fn items_of_text(name: &str, text: &str) -> Vec<Item> {
    all_items(&layers::of_text(name, text))
}
