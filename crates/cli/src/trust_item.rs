//! Items that need trust: what in the settings, or in a step's front matter, would run something or give a client more rights.
//!
//! Each item is shown and trusted by its content. `trust` decides whether it may run; `settings` knows which items came with
//! the project.

use tribunal_bmad::hooks::{Hook, Hooks};
use tribunal_core::{
    client::{ClientSpec, Inherit},
    ids::Hash,
    settings::{DriverSpec, Settings},
};
use tribunal_report::escaped;
use tribunal_runner::mask::Masker;

use crate::context::quoted;

/// Something that would run, or that gives a client more rights than it has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Agent {
        name: String,
        argv: Vec<String>,
    },
    /// A program that replaces a client's own.
    Client {
        name: String,
        program: String,
    },
    /// An MCP server.
    Server {
        name: String,
        argv: Vec<String>,
    },
    Licence {
        name: String,
        what: Licence,
    },
    Verify {
        command: String,
    },
    /// A hook that a step's or an agent's file asks for.
    Hook {
        name: String,
        command: String,
    },
}

/// A right that a client does not have by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Licence {
    Bypass,
    Tool(String),
    ProjectSettings,
}

impl Item {
    /// Collects the items of a run's settings, from all layers.
    pub fn of(settings: &Settings) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        for agent in settings.agents.iter().chain(&settings.reserves) {
            let name = agent.name.as_str();
            // Each driver has its own way to run something.
            let of_agent = match &agent.driver {
                DriverSpec::Command { argv } => {
                    vec![Item::Agent { name: name.to_string(), argv: argv.clone() }]
                }
                // Our own player runs scripts; it starts nothing else.
                DriverSpec::Replay { .. } => Vec::new(),
                DriverSpec::Client(client) => Item::of_client(name, client),
            };
            for item in of_agent {
                // The same agent may be in use and in reserve.
                if !items.contains(&item) {
                    items.push(item);
                }
            }
        }
        items.extend(settings.verify.iter().map(|command| Item::Verify { command: command.clone() }));
        items
    }

    /// Collects the items of a file's front matter. The same command at another moment is the same item.
    pub fn of_hooks(file: &str, hooks: &Hooks) -> Vec<Item> {
        let item = |hook: &Hook| Item::Hook { name: file.to_string(), command: hook.command.clone() };
        let mut items: Vec<Item> = Vec::new();
        for item in hooks.all.iter().map(item) {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        items
    }

    /// Collects the items of one client.
    fn of_client(name: &str, client: &ClientSpec) -> Vec<Item> {
        let licence = |what| Item::Licence { name: name.to_string(), what };
        let program = client.program.iter();
        let program =
            program.map(|program| Item::Client { name: name.to_string(), program: program.clone() });
        let servers = client.servers.iter();
        let servers =
            servers.map(|server| Item::Server { name: server.name.clone(), argv: server.argv.clone() });
        let bypass = client.bypass.then(|| licence(Licence::Bypass));
        let project = (client.inherit == Inherit::Project).then(|| licence(Licence::ProjectSettings));
        let tools = client.allow.iter().map(|tool| licence(Licence::Tool(tool.clone())));
        // The user sees the items in this order.
        program.chain(bypass).chain(project).chain(tools).chain(servers).collect()
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Item::Agent { .. } => "agent",
            Item::Client { .. } => "client",
            Item::Server { .. } => "server",
            Item::Licence { .. } => "licence",
            Item::Verify { .. } => "check",
            Item::Hook { .. } => "hook",
        }
    }

    /// The agent, the server or the file that the item belongs to.
    pub fn name(&self) -> Option<&str> {
        match self {
            Item::Agent { name, .. }
            | Item::Client { name, .. }
            | Item::Server { name, .. }
            | Item::Licence { name, .. }
            | Item::Hook { name, .. } => Some(name),
            Item::Verify { .. } => None,
        }
    }

    /// What would run, as one line without anything that controls a terminal.
    pub fn command(&self) -> String {
        let line = match self {
            Item::Agent { argv, .. } | Item::Server { argv, .. } => {
                argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
            Item::Client { program, .. } => quoted(program),
            Item::Licence { what, .. } => what.words(),
            Item::Verify { command } | Item::Hook { command, .. } => command.clone(),
        };
        escaped(&line)
    }

    /// Describes the item with its kind, owner and command, without secrets.
    pub fn shown(&self, masker: &Masker) -> String {
        let command = self.command();
        let command = masker.mask(&command);
        // The name is masked separately: an agent named `token` must not make its command look like a secret.
        let name = |name: &str| masker.mask(&escaped(name)).into_owned();
        match self {
            Item::Agent { name: agent, .. } => format!("agent `{}`: {command}", name(agent)),
            Item::Client { name: agent, .. } => format!("agent `{}`, its client: {command}", name(agent)),
            Item::Server { name: server, .. } => format!("MCP server `{}`: {command}", name(server)),
            Item::Licence { name: agent, .. } => format!("agent `{}` may {command}", name(agent)),
            Item::Verify { .. } => format!("check: {command}"),
            Item::Hook { name: file, .. } => format!("hook of `{}`: {command}", name(file)),
        }
    }

    /// Returns whether the shown command is not the whole command. Such an item cannot be trusted.
    pub fn hides_something(&self, masker: &Masker) -> bool {
        let command = self.command();
        // Any difference means that the masker replaced something.
        masker.mask(&command) != command
    }

    /// The hash of kind and content. A name is not part of it where the command alone decides what runs.
    pub fn hash(&self) -> Hash {
        let words;
        let parts: Vec<&str> = match self {
            Item::Agent { argv, .. } | Item::Server { argv, .. } => argv.iter().map(String::as_str).collect(),
            Item::Client { program, .. } => vec![program],
            // A licence is given to one agent, so here the name counts.
            Item::Licence { name, what } => {
                words = what.words();
                vec![name, &words]
            }
            Item::Verify { command } | Item::Hook { command, .. } => vec![command],
        };
        let mut bytes = self.kind().as_bytes().to_vec();
        for part in parts {
            // Each part is hashed with its length, so that no two lists of words look alike.
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part.as_bytes());
        }
        Hash::of(&bytes)
    }
}

impl Licence {
    /// Describes what the licence allows.
    fn words(&self) -> String {
        match self {
            Licence::Bypass => "work without its own permission checks".to_string(),
            Licence::Tool(tool) => format!("use {tool}"),
            Licence::ProjectSettings => "take the project's own settings for it".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn agent(argv: &[&str]) -> Item {
        Item::Agent { name: "mine".into(), argv: argv.iter().map(|word| word.to_string()).collect() }
    }

    #[test]
    fn a_hook_is_trusted_by_its_command_wherever_it_stands() {
        let text =
            |command: &str| format!("---\nhooks:\n  Stop: {command}\n  PreToolUse: [make a, make a]\n---\n");
        let of = |file: &str, command: &str| {
            Item::of_hooks(file, &tribunal_bmad::hooks::read(file, &text(command)))
        };
        let [a, lint] = of("step-1.md", "make lint").try_into().unwrap();
        let (a, lint) = if a.command() == "make a" { (a, lint) } else { (lint, a) };
        assert_eq!(lint.shown(&Masker::new([])), "hook of `step-1.md`: make lint");
        assert_eq!((lint.kind(), lint.name()), ("hook", Some("step-1.md")));
        let hashes = |items: Vec<Item>| items.iter().map(Item::hash).collect::<BTreeSet<_>>();
        assert_eq!(hashes(of("other.md", "make lint")), hashes(vec![a.clone(), lint.clone()]));
        assert!(!hashes(of("step-1.md", "make lint2")).contains(&lint.hash()));
        // A check with the same words is another item.
        assert_ne!(a.hash(), Item::Verify { command: "make a".into() }.hash());
    }

    #[test]
    fn what_is_shown_is_what_runs() {
        let item = agent(&["sh", "-c", "rm -rf ~\r\u{1b}[2Kmake test \u{202e}x"]);
        let shown = "agent `mine`: sh -c 'rm -rf ~\\r\\u{1b}[2Kmake test \\u{202e}x'";
        assert_eq!(item.shown(&Masker::new([])), shown);
        for c in "\u{2028}\u{2029}\u{feff}\u{ad}\u{e0041}\u{9b}\u{a0}\u{3164}\u{fe0f}".chars() {
            let item = Item::Verify { command: format!("make{c}test") };
            let shown = item.shown(&Masker::new([]));
            assert_eq!(shown, format!("check: make{}test", c.escape_default()));
        }
    }

    #[test]
    fn a_command_with_something_masked_in_it_hides_something() {
        let masker = Masker::new([]);
        let hides = |item: Item| item.hides_something(&masker);
        assert!(hides(agent(&["sh", "-c", "eval \"$1\"", "password=", "touch here"])));
        assert!(hides(Item::Verify { command: "curl -H 'Authorization: Bearer 0123456789abcdef'".into() }));
        assert!(!hides(agent(&["sh", "-c", "make test"])));
        let token = Item::Agent { name: "token".into(), argv: vec!["sh".into(), "make".into()] };
        assert_eq!((token.shown(&masker).as_str(), hides(token)), ("agent `token`: sh make", false));
    }
}
