//! The client's tools by name: what reviewers, fixers and developers are offered, and what settings may add.
//!
//! The client ignores a name it does not know. A misspelt one is therefore found here, before anything starts.

use tribunal_workflows::tasks::{client::ClientSpec, purpose::AgentAccess};

pub(super) const READING_TOOLS: &[&str] = &["Read", "Grep", "Glob"];
pub(super) const WRITING_TOOLS: &[&str] = &["Edit", "Write", "NotebookEdit"];
/// What a developer needs besides: commands, a list of its tasks, and agents of its own. The client has called the last tool by
/// both names, and ignores the one that it does not know.
pub(super) const DEVELOPING_TOOLS: &[&str] = &["Bash", "TodoWrite", "Agent", "Task"];
/// Tools that only read, too, but are not offered unless they are allowed.
const WEB_TOOLS: &[&str] = &["WebFetch", "WebSearch"];
const OTHER_TOOLS: &[&str] = &["Skill", "LSP", "Monitor", "ToolSearch"];

/// The allow entries that name no tool.
pub(super) fn find_unknown_tools(client_spec: &ClientSpec) -> Vec<String> {
    client_spec.allow.iter().filter(|allow_entry| !is_known(allow_entry, client_spec)).cloned().collect()
}

fn is_known(allow_entry: &str, client_spec: &ClientSpec) -> bool {
    if let Some(server_tool) = allow_entry.strip_prefix("mcp__") {
        // Only the configured servers are started, so tools of any other server cannot exist.
        let server_name = server_tool.split("__").next().unwrap_or_default();
        return client_spec.servers.iter().any(|known_server| normalize_server_name(&known_server.name) == server_name);
    }
    let entry_tool = tool_name(allow_entry);
    // `Bash(` and `Bash()` are broken rules; an argument needs at least one character.
    let is_complete = allow_entry.len() == entry_tool.len()
        || (allow_entry.ends_with(')') && allow_entry[entry_tool.len()..].len() > 2);
    is_complete
        && [READING_TOOLS, WRITING_TOOLS, DEVELOPING_TOOLS, WEB_TOOLS, OTHER_TOOLS]
            .iter()
            .any(|tool_names| tool_names.contains(&entry_tool))
}

/// The tool of a rule: `Bash(git log:*)` is a rule for `Bash`.
fn tool_name(allow_entry: &str) -> &str {
    allow_entry.split('(').next().unwrap_or_default()
}

/// A server's name as it occurs in the names of its tools.
fn normalize_server_name(server_name: &str) -> String {
    server_name
        .chars()
        .map(
            |character| {
                if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') { character } else { '_' }
            },
        )
        .collect()
}

/// The tools that are offered, and the rules that need no further permission.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolOffer {
    pub tools: Vec<String>,
    pub allowed: Vec<String>,
}

pub(super) fn build_tool_offer(client_spec: &ClientSpec, access: AgentAccess) -> ToolOffer {
    let can_write = access >= AgentAccess::Write;
    let mut offered_tools: Vec<String> = READING_TOOLS.iter().map(|known_tool| (*known_tool).to_string()).collect();
    // Bypassing checks is only ever for fixers; a reviewer with a shell could write.
    let is_bypassed = client_spec.bypass && can_write;
    if can_write {
        offered_tools.extend(WRITING_TOOLS.iter().map(|known_tool| (*known_tool).to_string()));
    }
    let developing_tools = if access == AgentAccess::Develop { DEVELOPING_TOOLS } else { &[] };
    offered_tools.extend(developing_tools.iter().map(|known_tool| (*known_tool).to_string()));
    if is_bypassed && !offered_tools.iter().any(|offered_tool| offered_tool == "Bash") {
        offered_tools.push("Bash".to_string());
    }
    // If settings name single tools of a server, the other tools are meant to stay forbidden.
    let mut allowed_tools: Vec<String> = client_spec
        .servers
        .iter()
        .map(|known_server| format!("mcp__{}__", normalize_server_name(&known_server.name)))
        .filter(|tool_prefix| {
            !client_spec.allow.iter().any(|allow_entry| allow_entry.starts_with(tool_prefix.as_str()))
        })
        .map(|tool_prefix| format!("{tool_prefix}*"))
        .collect();
    // `acceptEdits` allows a few harmless commands by itself, and no user can be asked about the others.
    allowed_tools.extend(developing_tools.iter().map(|known_tool| (*known_tool).to_string()));
    for allow_entry in &client_spec.allow {
        let entry_tool = tool_name(allow_entry);
        // A reviewer is allowed only tools that read, and those of the configured servers.
        let is_read_only =
            READING_TOOLS.contains(&entry_tool) || WEB_TOOLS.contains(&entry_tool) || entry_tool.starts_with("mcp__");
        if !can_write && !is_read_only {
            continue;
        }
        if !entry_tool.starts_with("mcp__") && !offered_tools.iter().any(|offered_tool| offered_tool == entry_tool) {
            offered_tools.push(entry_tool.to_string());
        }
        if !allowed_tools.contains(allow_entry) {
            allowed_tools.push(allow_entry.clone());
        }
    }
    ToolOffer { tools: offered_tools, allowed: allowed_tools }
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::tasks::client::McpServer;

    use super::*;

    fn client_allowing(allow_entries: &[&str]) -> ClientSpec {
        let mcp_servers = vec![McpServer::new("my docs", vec!["docs".into()])];
        ClientSpec {
            allow: allow_entries.iter().map(|allow_entry| (*allow_entry).into()).collect(),
            servers: mcp_servers,
            ..ClientSpec::new("claude-code")
        }
    }

    #[test]
    fn an_allowed_name_that_is_not_a_tool_is_reported() {
        for (allow_entry, is_known_tool) in [
            ("Bash", true),
            ("Bash(cargo test:*)", true),
            ("Read(//opt/docs/**)", true),
            ("WebFetch(domain:example.org)", true),
            ("mcp__my_docs__search", true),
            ("mcp__my_docs__*", true),
            ("mcp__my_docs", true),
            ("mcp__other__search", false),
            ("bash", false),
            ("Bsh", false),
            ("Bash(", false),
            ("Bash()", false),
            ("", false),
        ] {
            let unknown_tools = find_unknown_tools(&client_allowing(&[allow_entry]));
            assert_eq!(unknown_tools.is_empty(), is_known_tool, "{allow_entry}: {unknown_tools:?}");
        }
    }

    #[test]
    fn no_allow_entry_lets_a_reviewer_write() {
        let client_spec =
            client_allowing(&["Bash(cargo test:*)", "Write", "Agent", "WebSearch", "mcp__my_docs__search"]);
        let review_offer = build_tool_offer(&client_spec, AgentAccess::Read);
        assert_eq!(review_offer.tools, ["Read", "Grep", "Glob", "WebSearch"]);
        assert_eq!(review_offer.allowed, ["WebSearch", "mcp__my_docs__search"]);
        let fix_offer = build_tool_offer(&client_spec, AgentAccess::Write);
        assert!(
            fix_offer.tools.contains(&"Bash".to_string())
                && fix_offer.allowed.contains(&"Bash(cargo test:*)".to_string())
        );
    }

    #[test]
    fn all_tools_of_a_server_are_allowed_unless_single_ones_are_named() {
        for (allow_entries, expected_tools) in [
            (&[][..], &["mcp__my_docs__*"][..]),
            (&["mcp__my_docs__*"], &["mcp__my_docs__*"]),
            (&["mcp__my_docs"], &["mcp__my_docs__*", "mcp__my_docs"]),
            (&["mcp__my_docs__find", "mcp__my_docs__get"], &["mcp__my_docs__find", "mcp__my_docs__get"]),
        ] {
            for access in [AgentAccess::Read, AgentAccess::Write] {
                assert_eq!(
                    build_tool_offer(&client_allowing(allow_entries), access).allowed,
                    expected_tools,
                    "{allow_entries:?}"
                );
            }
        }
    }

    #[test]
    fn a_developer_runs_commands_without_a_question() {
        let offer = build_tool_offer(&ClientSpec::new("claude-code"), AgentAccess::Develop);
        assert_eq!(offer.tools, [READING_TOOLS, WRITING_TOOLS, DEVELOPING_TOOLS].concat());
        assert_eq!(offer.allowed, DEVELOPING_TOOLS);
        // What settings allow is added, and `bypass` offers no tool twice.
        let client_spec = ClientSpec { bypass: true, ..client_allowing(&["WebSearch", "Bash"]) };
        let offer = build_tool_offer(&client_spec, AgentAccess::Develop);
        assert_eq!(offer.tools, [READING_TOOLS, WRITING_TOOLS, DEVELOPING_TOOLS, &["WebSearch"]].concat());
        assert_eq!(offer.allowed, ["mcp__my_docs__*", "Bash", "TodoWrite", "Agent", "Task", "WebSearch"]);
    }

    #[test]
    fn only_fixers_can_bypass_checks() {
        let client_spec = ClientSpec { bypass: true, ..ClientSpec::new("claude-code") };
        assert_eq!(build_tool_offer(&client_spec, AgentAccess::Read).tools, READING_TOOLS);
        assert!(build_tool_offer(&client_spec, AgentAccess::Write).tools.contains(&"Bash".to_string()));
        assert!(
            !build_tool_offer(&ClientSpec::new("claude-code"), AgentAccess::Write).tools.contains(&"Bash".to_string())
        );
    }
}
