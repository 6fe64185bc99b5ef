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
    resolve::{list, place, text},
};
use crate::{complaint::Complaint, trust::Item};

/// The names under `agents:`, in their order.
fn defined(effective: &Effective) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for path in effective.values.keys() {
        if let Some((name, _)) = path.strip_prefix("agents.").and_then(|rest| rest.split_once('.'))
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

pub(super) fn agents(effective: &Effective, paced: bool, root: &Path) -> Result<Vec<AgentSpec>, Complaint> {
    let defined = defined(effective);
    let used = match (list(effective, "agents.use"), defined.as_slice()) {
        (used, [only]) if used.is_empty() => vec![only.to_string()],
        (used, _) => used,
    };
    if used.is_empty() {
        return Err(no_agent(root, &defined));
    }
    used.iter().map(|name| agent(name, effective, paced, root)).collect()
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
    let defined = defined(effective);
    if !defined.contains(&name) {
        return Err(unknown_agent(name, effective, &defined, root));
    }
    let driver = driver(name, effective, paced)?;
    if let DriverSpec::Replay { script, .. } = &driver
        && !root.join(script).is_file()
    {
        let place = place(effective, &format!("agents.{name}.script"));
        return Err(Complaint::usage(format!("agent `{name}`: its script {script} does not exist"))
            .why("Nothing was started.")
            .todo(format!("correct `script:` ({place})")));
    }
    Ok(AgentSpec { name: AgentName::new(name), driver, provider: String::new(), stronger: None })
}

fn unknown_agent(name: &str, effective: &Effective, defined: &[&str], root: &Path) -> Complaint {
    let asked = place(effective, "agents.use");
    let complaint = Complaint::usage(format!("there is no agent `{name}`"))
        .why(format!("It is asked for by {asked}. Nothing was started."));
    match nearest(name, defined) {
        Some(near) => complaint.todo(format!("did you mean `{near}`?")),
        None if defined.is_empty() => {
            let file = root.join(FILE);
            complaint.todo(format!(
                "define it in {}: agents: {{{name}: {{driver: command, argv: […]}}}}",
                file.display()
            ))
        }
        None => complaint.todo(format!("define it under `agents:`; defined are: {}", defined.join(", "))),
    }
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
            let key = if script.is_some() { "script" } else { "argv" };
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
