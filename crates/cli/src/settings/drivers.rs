//! Resolves how each agent is driven and checks its keys against its driver.
//!
//! An agent that is named like a client needs no definition. [`super::agents`] decides which agents take part, and
//! [`super::selection`] which of them do what.

use tribunal_agents::clients::{self, AGENT_CLIENT_IDS, AgentClient};
use tribunal_core::{
    client::{ClientSpec, Inherit, Models, Server},
    ids::ClientId,
    settings::DriverSpec,
};

use super::{
    kind::Value,
    layers::{Effective, list, place, text},
};
use crate::complaint::Complaint;

/// Keys that only clients have.
const CLIENT_KEYS: [&str; 9] = [
    "program",
    "model",
    "models.small",
    "models.medium",
    "models.large",
    "inherit",
    "bypass",
    "allow",
    "fresh",
];

/// The client that an agent is named after, if any; it is its driver.
pub(super) fn itself(name: &str) -> Option<&'static str> {
    clients::named(name).filter(|client| client.agent.is_some()).map(|client| client.id)
}

/// Finds how an agent of the settings is driven. `None` if there is no such agent.
pub(crate) fn driver_of(name: &str, effective: &Effective) -> Option<Result<DriverSpec, Complaint>> {
    let prefix = format!("agents.{name}.");
    let defined = effective.values.keys().any(|path| path.starts_with(&prefix));
    (defined || itself(name).is_some()).then(|| driver(name, effective, false))
}

/// Resolves the driver of an agent from its settings.
pub(super) fn driver(name: &str, effective: &Effective, paced: bool) -> Result<DriverSpec, Complaint> {
    let at = |key: &str| format!("agents.{name}.{key}");
    let stands = |key: &str| effective.origin(&at(key)).is_some();
    let wrong = |what: String, key: &str| {
        Complaint::usage(format!("agent `{name}`: {what}"))
            .why(format!("It stands in {}. Nothing was started.", place(effective, &at(key))))
            .todo("see what is allowed: tribunal inspect settings, or tribunal schema settings")
    };
    // The error points at any key of the agent, because there is no line for the missing one.
    let Some(driver) = text(effective, &at("driver")).or_else(|| itself(name)) else {
        let keys = ["script", "argv", "provider", "stronger"];
        let key = keys.iter().chain(&CLIENT_KEYS).find(|key| stands(key)).copied().unwrap_or("driver");
        let what =
            format!("it has no `driver`; write driver: {}, command or replay", AGENT_CLIENT_IDS.join(", "));
        return Err(wrong(what, key));
    };
    let (own, has): (&[&str], &str) = match driver {
        "command" => (&["argv"], "has `argv`"),
        "replay" => (&["script"], "has `script`"),
        _ => (&CLIENT_KEYS, "is a client and has `program` and `model`"),
    };
    // A key of another driver is refused and not ignored: the user expects it to have an effect.
    let foreign = ["argv", "script"].into_iter().chain(CLIENT_KEYS);
    if let Some(key) = foreign.into_iter().find(|key| stands(key) && !own.contains(key)) {
        return Err(wrong(format!("a `{driver}` agent {has}, not `{key}`"), key));
    }
    match driver {
        "command" => match list(effective, &at("argv")) {
            argv if argv.is_empty() => Err(wrong("a `command` agent needs `argv`".into(), "driver")),
            argv => Ok(DriverSpec::Command { argv }),
        },
        "replay" => match text(effective, &at("script")) {
            None => Err(wrong("a `replay` agent needs `script`".into(), "driver")),
            Some(script) => Ok(DriverSpec::Replay { script: script.to_string(), paced }),
        },
        id => {
            let known = AgentClient::find(id).map_err(|unknown| wrong(unknown.to_string(), "driver"))?;
            let spec = client(name, known, effective);
            // A misspelt tool would silently not be allowed, so the names are checked.
            match known.agent.driver.unknown_tools(&spec).first() {
                Some(tool) => Err(wrong(format!("{id} has no tool `{tool}` that could be allowed"), "allow")),
                None => Ok(DriverSpec::Client(spec)),
            }
        }
    }
}

/// Builds the settings of a client.
fn client(name: &str, client: AgentClient, effective: &Effective) -> ClientSpec {
    let at = |key: &str| format!("agents.{name}.{key}");
    let word = |key: &str| text(effective, &at(key)).map(str::to_string);
    let is_set = |path: &str, flag: bool| effective.get(path) == Some(&Value::Flag(flag));
    ClientSpec {
        client: ClientId::new(client.id),
        program: word("program"),
        model: word("model"),
        models: Models {
            small: word("models.small"),
            medium: word("models.medium"),
            large: word("models.large"),
        },
        inherit: match text(effective, &at("inherit")) {
            Some("nothing") => Inherit::Nothing,
            Some("project") => Inherit::Project,
            _ => Inherit::User,
        },
        bypass: is_set(&at("bypass"), true),
        // Fresh sessions for all agents override the agent's own choice.
        fresh: is_set(&at("fresh"), true) || !effective.typed().agents.continue_sessions,
        allow: list(effective, &at("allow")),
        servers: servers(effective),
    }
}

/// The MCP servers for every client, sorted by name.
fn servers(effective: &Effective) -> Vec<Server> {
    let named = effective.values.keys().filter_map(|path| {
        let name = path.strip_prefix("mcp.")?.strip_suffix(".argv")?;
        Some(Server { name: name.to_string(), argv: list(effective, path) })
    });
    named.collect()
}
