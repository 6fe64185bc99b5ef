//! Items that need trust: what in the settings, or in a step's front matter, would run something or give a client more rights.
//!
//! Each item is shown and trusted by its content. `trust` decides whether it may run; `settings` knows which items came with
//! the project.

use std::path::Path;

use tribunal_bmad::hooks::{WorkflowHook, WorkflowHooks};
use tribunal_engine::{ids::Hash, sandbox::SandboxMode, text::shell_quote};
use tribunal_report::escape_line;
use tribunal_runner::masking::Masker;
use tribunal_workflows::{
    development::checks::CommandLine,
    runs::settings::{DriverSpec, Settings},
    tasks::client::{ClientSpec, SettingsInheritance},
};

/// Something that would run, or that gives a client more rights than it has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustItem {
    Agent {
        agent_name: String,
        argv: Vec<String>,
    },
    /// A program that replaces a client's own.
    Client {
        agent_name: String,
        program: String,
    },
    /// An MCP server.
    McpServer {
        server_name: String,
        argv: Vec<String>,
    },
    Licence {
        agent_name: String,
        licence: ClientLicence,
    },
    /// A setting that lets agents out of their sandbox.
    Sandbox(SandboxOpening),
    /// A command of the settings.
    Command {
        purpose: CommandPurpose,
        command: CommandLine,
    },
    /// A hook that a step's or an agent's file asks for.
    Hook {
        file_name: String,
        command_line: String,
    },
    /// A commit hook of git. The consent is to its content.
    CommitHook {
        file_name: String,
        content_hash: Hash,
    },
}

/// What lets agents write elsewhere than in their workspaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SandboxOpening {
    Off,
    Path(String),
    /// The directory for clones: agents write there.
    ClonesRoot(String),
}

impl SandboxOpening {
    /// Collects what the settings open.
    fn from_settings(settings: &Settings) -> impl Iterator<Item = SandboxOpening> {
        let off = (settings.sandbox.mode == SandboxMode::Off).then_some(SandboxOpening::Off);
        let paths = settings.sandbox.write.iter().cloned().map(SandboxOpening::Path);
        let clones_root = settings.workspace.root.clone().map(SandboxOpening::ClonesRoot);
        off.into_iter().chain(paths).chain(clones_root)
    }

    /// The setting that opens it.
    pub fn setting_path(&self) -> &'static str {
        match self {
            SandboxOpening::Off => "sandbox.mode",
            SandboxOpening::Path(_) => "sandbox.write",
            SandboxOpening::ClonesRoot(_) => "workspace.root",
        }
    }

    fn describe(&self) -> String {
        match self {
            SandboxOpening::Off => "run without a sandbox".to_string(),
            SandboxOpening::Path(path) => format!("write {path}"),
            SandboxOpening::ClonesRoot(directory) => format!("work in clones below {directory}"),
        }
    }

    fn hashed_words(&self) -> Vec<&str> {
        match self {
            SandboxOpening::Off => vec!["off"],
            SandboxOpening::Path(path) => vec!["write", path],
            SandboxOpening::ClonesRoot(directory) => vec!["root", directory],
        }
    }
}

/// What a command of the settings is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandPurpose {
    Check,
    Setup,
    Notice,
}

impl CommandPurpose {
    const ALL: [CommandPurpose; 3] = [CommandPurpose::Check, CommandPurpose::Setup, CommandPurpose::Notice];

    /// The settings that have commands for this purpose.
    pub fn setting_paths(self) -> &'static [&'static str] {
        match self {
            CommandPurpose::Check => &["verify", "checks"],
            CommandPurpose::Setup => &["workspace.setup"],
            CommandPurpose::Notice => &["notify.command"],
        }
    }

    /// What the commands of a setting are for; `None` if it has no commands.
    pub fn of_setting(setting_path: &str) -> Option<CommandPurpose> {
        CommandPurpose::ALL.into_iter().find(|purpose| purpose.setting_paths().contains(&setting_path))
    }

    fn kind_name(self) -> &'static str {
        match self {
            CommandPurpose::Check => "check",
            CommandPurpose::Setup => "setup",
            CommandPurpose::Notice => "notify",
        }
    }

    /// Describes when such a command is run.
    fn describe_moment(self) -> &'static str {
        match self {
            CommandPurpose::Check => "run in a workspace before agents begin and before a patch is applied",
            CommandPurpose::Setup => "run in every new clone of the project",
            CommandPurpose::Notice => "run in the project when a run waits for you or has ended",
        }
    }
}

/// A right that a client does not have by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientLicence {
    Bypass,
    Tool(String),
    ProjectSettings,
}

impl TrustItem {
    /// Collects the items of a run's settings, from all layers.
    pub fn from_settings(settings: &Settings) -> Vec<TrustItem> {
        let mut items: Vec<TrustItem> = Vec::new();
        for agent in settings.agents.iter().chain(&settings.reserves) {
            let agent_name = agent.name.as_str();
            let agent_items = match &agent.driver {
                DriverSpec::Command { argv } => {
                    vec![TrustItem::Agent { agent_name: agent_name.to_string(), argv: argv.clone() }]
                }
                // Our own player runs scripts; it starts nothing else.
                DriverSpec::Replay { .. } => Vec::new(),
                DriverSpec::Client(client) => TrustItem::from_client(agent_name, client),
            };
            for trust_item in agent_items {
                // The same agent may be in use and in reserve.
                if !items.contains(&trust_item) {
                    items.push(trust_item);
                }
            }
        }
        items.extend(SandboxOpening::from_settings(settings).map(TrustItem::Sandbox));
        let checks = settings.checks.iter().map(|check| (CommandPurpose::Check, &check.command));
        let setup = settings.workspace.setup.iter().map(|command| (CommandPurpose::Setup, command));
        let notice = settings.notify.iter().map(|command| (CommandPurpose::Notice, command));
        for (purpose, command) in checks.chain(setup).chain(notice) {
            let command_item = TrustItem::Command { purpose, command: command.clone() };
            if !items.contains(&command_item) {
                items.push(command_item);
            }
        }
        items
    }

    /// Collects the items of a file's front matter. The same command at another moment is the same item.
    pub fn from_hooks(file_name: &str, hooks: &WorkflowHooks) -> Vec<TrustItem> {
        let to_item = |file_hook: &WorkflowHook| TrustItem::Hook {
            file_name: file_name.to_string(),
            command_line: file_hook.command.clone(),
        };
        let mut items: Vec<TrustItem> = Vec::new();
        for hook_item in hooks.hooks.iter().map(to_item) {
            if !items.contains(&hook_item) {
                items.push(hook_item);
            }
        }
        items
    }

    /// Collects the commit hooks that git would run in a project.
    pub fn from_commit_hooks(project_root: &Path) -> Vec<TrustItem> {
        let hook_files = tribunal_runner::list_commit_hooks(project_root).into_iter();
        hook_files
            .map(|hook_file| TrustItem::CommitHook {
                file_name: hook_file.path.display().to_string(),
                content_hash: hook_file.content_hash,
            })
            .collect()
    }

    /// Collects the items of one client.
    fn from_client(agent_name: &str, client_spec: &ClientSpec) -> Vec<TrustItem> {
        let make_licence =
            |licence_kind| TrustItem::Licence { agent_name: agent_name.to_string(), licence: licence_kind };
        let program_names = client_spec.program.iter();
        let program_items = program_names.map(|program_name| TrustItem::Client {
            agent_name: agent_name.to_string(),
            program: program_name.clone(),
        });
        let mcp_servers = client_spec.servers.iter();
        let server_items = mcp_servers.map(|mcp_server| TrustItem::McpServer {
            server_name: mcp_server.name.clone(),
            argv: mcp_server.argv.clone(),
        });
        let bypass_item = client_spec.bypass.then(|| make_licence(ClientLicence::Bypass));
        let inherit_item =
            (client_spec.inherit == SettingsInheritance::Project).then(|| make_licence(ClientLicence::ProjectSettings));
        let tool_items = client_spec.allow.iter().map(|tool_name| make_licence(ClientLicence::Tool(tool_name.clone())));
        // The user sees the items in this order.
        program_items.chain(bypass_item).chain(inherit_item).chain(tool_items).chain(server_items).collect()
    }

    pub fn kind_name(&self) -> &'static str {
        match self {
            TrustItem::Agent { .. } => "agent",
            TrustItem::Client { .. } => "client",
            TrustItem::McpServer { .. } => "server",
            TrustItem::Licence { .. } => "licence",
            TrustItem::Sandbox(_) => "sandbox",
            TrustItem::Command { purpose, .. } => purpose.kind_name(),
            TrustItem::Hook { .. } => "hook",
            TrustItem::CommitHook { .. } => "commit-hook",
        }
    }

    /// The agent, the server or the file that the item belongs to.
    pub fn owner_name(&self) -> Option<&str> {
        match self {
            TrustItem::Agent { agent_name: item_owner, .. }
            | TrustItem::Client { agent_name: item_owner, .. }
            | TrustItem::McpServer { server_name: item_owner, .. }
            | TrustItem::Licence { agent_name: item_owner, .. }
            | TrustItem::Hook { file_name: item_owner, .. }
            | TrustItem::CommitHook { file_name: item_owner, .. } => Some(item_owner),
            TrustItem::Command { .. } | TrustItem::Sandbox(_) => None,
        }
    }

    /// What would run, as one line without anything that controls a terminal.
    pub fn command_text(&self) -> String {
        let command_line = match self {
            TrustItem::Agent { argv: arguments, .. } | TrustItem::McpServer { argv: arguments, .. } => {
                arguments.iter().map(|argument| shell_quote(argument)).collect::<Vec<_>>().join(" ")
            }
            TrustItem::Client { program: program_name, .. } => shell_quote(program_name),
            TrustItem::Licence { licence: licence_kind, .. } => licence_kind.describe(),
            TrustItem::Sandbox(opening) => opening.describe(),
            TrustItem::Command { command: CommandLine::Argv(argv), .. } => {
                argv.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")
            }
            TrustItem::Command { command: CommandLine::Shell(shell_command), .. }
            | TrustItem::Hook { command_line: shell_command, .. } => shell_command.clone(),
            TrustItem::CommitHook { file_name, content_hash } => {
                format!("{} (content {})", shell_quote(file_name), content_hash.short_hex())
            }
        };
        escape_line(&command_line)
    }

    /// Describes the item with its kind, owner and command, without secrets.
    pub fn describe_masked(&self, masker: &Masker) -> String {
        let command_text = self.command_text();
        let masked_command = masker.mask(&command_text);
        // The name is masked separately: an agent named `token` must not make its command look like a secret.
        let mask_name = |owner_name: &str| masker.mask(&escape_line(owner_name)).into_owned();
        match self {
            TrustItem::Agent { agent_name, .. } => {
                format!("agent `{}`: {masked_command}", mask_name(agent_name))
            }
            TrustItem::Client { agent_name, .. } => {
                format!("client of agent `{}`: {masked_command}", mask_name(agent_name))
            }
            TrustItem::McpServer { server_name, .. } => {
                format!("MCP server `{}`: {masked_command}", mask_name(server_name))
            }
            TrustItem::Licence { agent_name, .. } => {
                format!("agent `{}` may {masked_command}", mask_name(agent_name))
            }
            TrustItem::Command { purpose, .. } => format!("{}: {masked_command}", purpose.kind_name()),
            TrustItem::Sandbox(_) => format!("all agents may {masked_command}"),
            TrustItem::CommitHook { .. } => format!("commit hook {masked_command}"),
            TrustItem::Hook { file_name, .. } => {
                format!("hook of `{}`: {masked_command}", mask_name(file_name))
            }
        }
    }

    /// Describes when the item takes effect, and lists every argument on a line of its own: spaces, quotes and long lines
    /// can hide where one ends.
    pub fn describe_details(&self, masker: &Masker) -> Vec<String> {
        let purpose = match self {
            TrustItem::Agent { .. } => "started for every task that this agent is given, in a workspace",
            TrustItem::Client { .. } => "started instead of the installed client whenever this agent is given a task",
            TrustItem::McpServer { .. } => "started by the agent's client, which may then use the tools of this server",
            TrustItem::Licence { licence, .. } => licence.describe_effect(),
            TrustItem::Sandbox(_) => "all the time, for agents, checks and commit hooks",
            TrustItem::Command { purpose, .. } => purpose.describe_moment(),
            TrustItem::Hook { .. } => "run by the shell in the project when a session reaches this step",
            TrustItem::CommitHook { .. } => "run in the workspace before the result of a loop is committed",
        };
        let mut detail_lines = vec![format!("when: {purpose}")];
        let arguments = match self {
            TrustItem::Agent { argv, .. }
            | TrustItem::McpServer { argv, .. }
            | TrustItem::Command { command: CommandLine::Argv(argv), .. } => argv.as_slice(),
            TrustItem::Client { program, .. } => std::slice::from_ref(program),
            TrustItem::Command { command: CommandLine::Shell(command_line), .. }
            | TrustItem::Hook { command_line, .. } => {
                let shell_lines = command_line.split('\n');
                let shell_lines = shell_lines.map(|line| format!("shell: {}", masker.mask(&escape_line(line))));
                detail_lines.extend(shell_lines);
                &[]
            }
            TrustItem::Licence { .. } | TrustItem::Sandbox(_) | TrustItem::CommitHook { .. } => &[],
        };
        for (argument_index, argument) in arguments.iter().enumerate() {
            let masked_argument = masker.mask(&escape_line(argument)).into_owned();
            detail_lines.push(match argument_index {
                0 => format!("program: {masked_argument}"),
                _ => format!("argument {argument_index}: {masked_argument}"),
            });
        }
        detail_lines
    }

    /// Returns whether the shown command is not the whole command. Such an item cannot be trusted.
    pub fn hides_part(&self, masker: &Masker) -> bool {
        let shown_command = self.command_text();
        // Any difference means that the masker replaced something.
        masker.mask(&shown_command) != shown_command
    }

    /// The hash of kind and content. A name is not part of it where the command alone decides what runs.
    pub fn content_hash(&self) -> Hash {
        let hashed_parts: Vec<&str> = match self {
            TrustItem::Agent { argv: arguments, .. } | TrustItem::McpServer { argv: arguments, .. } => {
                arguments.iter().map(String::as_str).collect()
            }
            TrustItem::Client { program: program_name, .. } => vec![program_name],
            // A licence is given to one agent, so here the name counts.
            TrustItem::Licence { agent_name, licence: licence_kind } => {
                [agent_name.as_str()].into_iter().chain(licence_kind.hashed_words()).collect()
            }
            TrustItem::Command { command: CommandLine::Shell(shell_command), .. }
            | TrustItem::Hook { command_line: shell_command, .. } => vec![shell_command],
            TrustItem::Sandbox(opening) => opening.hashed_words(),
            // A hook that moved is the same hook.
            TrustItem::CommitHook { content_hash, .. } => vec![content_hash.as_str()],
            // The first part tells a program from a line for the shell with the same text.
            TrustItem::Command { command: CommandLine::Argv(argv), .. } => {
                ["argv"].into_iter().chain(argv.iter().map(String::as_str)).collect()
            }
        };
        let mut hashed_bytes = self.kind_name().as_bytes().to_vec();
        for hashed_part in hashed_parts {
            // Each part is hashed with its length, so that no two lists of words look alike.
            hashed_bytes.extend((hashed_part.len() as u64).to_le_bytes());
            hashed_bytes.extend(hashed_part.as_bytes());
        }
        Hash::digest_of(&hashed_bytes)
    }
}

impl ClientLicence {
    /// The licence in words that stay the same from version to version, because the trust store has their hash.
    fn hashed_words(&self) -> Vec<&str> {
        match self {
            ClientLicence::Bypass => vec!["bypass"],
            ClientLicence::Tool(tool) => vec!["tool", tool],
            ClientLicence::ProjectSettings => vec!["project-settings"],
        }
    }

    /// Describes for the user what the licence allows; it completes the sentence "agent X may …".
    fn describe(&self) -> String {
        match self {
            ClientLicence::Bypass => "skip the client's own permission checks".to_string(),
            ClientLicence::Tool(tool) => format!("use the tool {tool}"),
            ClientLicence::ProjectSettings => "load the client's settings that came with this project".to_string(),
        }
    }

    /// Describes what the licence leads to.
    fn describe_effect(&self) -> &'static str {
        match self {
            ClientLicence::Bypass => "its client runs commands and edits files without asking, in every task",
            ClientLicence::Tool(_) => "its client may use this tool without asking, in every task",
            ClientLicence::ProjectSettings => {
                "its client reads its settings in the project, which can define hooks and servers"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn agent_item(argv: &[&str]) -> TrustItem {
        TrustItem::Agent { agent_name: "mine".into(), argv: argv.iter().map(|argument| argument.to_string()).collect() }
    }

    fn check_item(line: &str) -> TrustItem {
        TrustItem::Command { purpose: CommandPurpose::Check, command: CommandLine::from_shell_line(line) }
    }

    #[test]
    fn a_command_is_trusted_for_its_purpose_and_with_or_without_a_shell() {
        let argv_item = TrustItem::Command {
            purpose: CommandPurpose::Check,
            command: CommandLine::Argv(vec!["make".into(), "a b".into()]),
        };
        assert_eq!(argv_item.describe_masked(&Masker::new([])), "check: make 'a b'");
        assert_eq!(argv_item.describe_details(&Masker::new([]))[1..], ["program: make", "argument 1: a b"]);
        let setup_item =
            TrustItem::Command { purpose: CommandPurpose::Setup, command: CommandLine::from_shell_line("make 'a b'") };
        let items = [argv_item, setup_item, check_item("make 'a b'")];
        let distinct_hashes: BTreeSet<Hash> = items.iter().map(TrustItem::content_hash).collect();
        assert_eq!(distinct_hashes.len(), 3);
    }

    #[test]
    fn a_hook_is_trusted_by_its_command_in_any_file() {
        let front_matter =
            |hook_command: &str| format!("---\nhooks:\n  Stop: {hook_command}\n  PreToolUse: [make a, make a]\n---\n");
        let hook_items = |file_name: &str, hook_command: &str| {
            TrustItem::from_hooks(file_name, &tribunal_bmad::hooks::read_hooks(file_name, &front_matter(hook_command)))
        };
        let [make_item, lint_item] = hook_items("step-1.md", "make lint").try_into().unwrap();
        let (make_item, lint_item) =
            if make_item.command_text() == "make a" { (make_item, lint_item) } else { (lint_item, make_item) };
        assert_eq!(lint_item.describe_masked(&Masker::new([])), "hook of `step-1.md`: make lint");
        assert_eq!((lint_item.kind_name(), lint_item.owner_name()), ("hook", Some("step-1.md")));
        let item_hashes = |items: Vec<TrustItem>| items.iter().map(TrustItem::content_hash).collect::<BTreeSet<_>>();
        assert_eq!(
            item_hashes(hook_items("other.md", "make lint")),
            item_hashes(vec![make_item.clone(), lint_item.clone()])
        );
        assert!(!item_hashes(hook_items("step-1.md", "make lint2")).contains(&lint_item.content_hash()));
        // A check with the same words is another item.
        assert_ne!(make_item.content_hash(), check_item("make a").content_hash());
    }

    #[test]
    fn the_hash_of_a_licence_does_not_depend_on_the_text_shown() {
        let licence_item = |agent_name: &str, licence: ClientLicence| TrustItem::Licence {
            agent_name: agent_name.to_string(),
            licence,
        };
        // A stored hash must stay valid when a message is reworded, so the hashes are spelled out here.
        let pinned_bytes = |agent_name: &str, words: &[&str]| {
            let mut hashed_bytes = b"licence".to_vec();
            for word in [&[agent_name], words].concat() {
                hashed_bytes.extend((word.len() as u64).to_le_bytes());
                hashed_bytes.extend(word.as_bytes());
            }
            Hash::digest_of(&hashed_bytes)
        };
        let cases = [
            (ClientLicence::Bypass, vec!["bypass"], "agent `a` may skip the client's own permission checks"),
            (ClientLicence::Tool("Bash".into()), vec!["tool", "Bash"], "agent `a` may use the tool Bash"),
            (
                ClientLicence::ProjectSettings,
                vec!["project-settings"],
                "agent `a` may load the client's settings that came with this project",
            ),
        ];
        let mut distinct_hashes = BTreeSet::new();
        for (licence, words, shown_text) in cases {
            let trust_item = licence_item("a", licence.clone());
            assert_eq!(trust_item.content_hash(), pinned_bytes("a", &words));
            assert_eq!(trust_item.describe_masked(&Masker::new([])), shown_text);
            distinct_hashes.extend([trust_item.content_hash(), licence_item("b", licence).content_hash()]);
        }
        // A tool with the name of another licence is not that licence.
        distinct_hashes.insert(licence_item("a", ClientLicence::Tool("bypass".into())).content_hash());
        assert_eq!(distinct_hashes.len(), 7);
    }

    #[test]
    fn the_shown_command_is_the_one_that_runs() {
        let trust_item = agent_item(&["sh", "-c", "rm -rf ~\r\u{1b}[2Kmake test \u{202e}x"]);
        let expected_text = "agent `mine`: sh -c 'rm -rf ~\\r\\u{1b}[2Kmake test \\u{202e}x'";
        assert_eq!(trust_item.describe_masked(&Masker::new([])), expected_text);
        for character in "\u{2028}\u{2029}\u{feff}\u{ad}\u{e0041}\u{9b}\u{a0}\u{3164}\u{fe0f}".chars() {
            let trust_item = check_item(&format!("make{character}test"));
            let expected_text = trust_item.describe_masked(&Masker::new([]));
            assert_eq!(expected_text, format!("check: make{}test", character.escape_default()));
        }
    }

    #[test]
    fn a_command_with_a_masked_part_hides_something() {
        let masker = Masker::new([]);
        let hides_part = |trust_item: TrustItem| trust_item.hides_part(&masker);
        assert!(hides_part(agent_item(&["sh", "-c", "eval \"$1\"", "password=", "touch here"])));
        assert!(hides_part(check_item("curl -H 'Authorization: Bearer 0123456789abcdef'")));
        assert!(!hides_part(agent_item(&["sh", "-c", "make test"])));
        let token_agent = TrustItem::Agent { agent_name: "token".into(), argv: vec!["sh".into(), "make".into()] };
        assert_eq!(
            (token_agent.describe_masked(&masker).as_str(), hides_part(token_agent)),
            ("agent `token`: sh make", false)
        );
    }
}
