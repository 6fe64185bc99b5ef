//! The client's tools by name: what reviewers and fixers are offered, and what settings may add.
//!
//! The client ignores a name it does not know. A misspelt one is therefore found here, before anything starts.

use tribunal_core::client::{ClientSpec, Job};

pub(super) const READING: &[&str] = &["Read", "Grep", "Glob"];
pub(super) const WRITING: &[&str] = &["Edit", "Write", "NotebookEdit"];
/// Tools that only read, too, but are not offered unless they are allowed.
const LOOKING_OUT: &[&str] = &["WebFetch", "WebSearch"];
const OTHERS: &[&str] = &["Bash", "Agent", "Task", "Skill", "LSP", "TodoWrite", "Monitor", "ToolSearch"];

/// The allow entries that name no tool.
pub(super) fn unknown(client: &ClientSpec) -> Vec<String> {
    client.allow.iter().filter(|entry| !is_known(entry, client)).cloned().collect()
}

fn is_known(entry: &str, client: &ClientSpec) -> bool {
    if let Some(rest) = entry.strip_prefix("mcp__") {
        // Only the configured servers are started, so that tools of any other server cannot exist.
        let server = rest.split("__").next().unwrap_or_default();
        return client.servers.iter().any(|known| plain(&known.name) == server);
    }
    let named = name(entry);
    // `Bash(` and `Bash()` are broken rules; an argument needs at least one character.
    let closed = entry.len() == named.len() || (entry.ends_with(')') && entry[named.len()..].len() > 2);
    closed && [READING, WRITING, LOOKING_OUT, OTHERS].iter().any(|names| names.contains(&named))
}

/// The tool of a rule: `Bash(git log:*)` is a rule for `Bash`.
fn name(entry: &str) -> &str {
    entry.split('(').next().unwrap_or_default()
}

/// A server's name as it occurs in the names of its tools.
fn plain(server: &str) -> String {
    server
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect()
}

/// The tools that are offered, and the rules that need no further permission.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub tools: Vec<String>,
    pub allowed: Vec<String>,
}

pub(super) fn offer(client: &ClientSpec, job: Job) -> Offer {
    let mut tools: Vec<String> = READING.iter().map(|tool| (*tool).to_string()).collect();
    // Bypassing checks is only ever for fixers; a reviewer with a shell could write.
    let bypass = client.bypass && job == Job::Fix;
    if job == Job::Fix {
        tools.extend(WRITING.iter().map(|tool| (*tool).to_string()));
    }
    if bypass {
        tools.push("Bash".to_string());
    }
    // If settings name single tools of a server, the other tools are meant to stay forbidden.
    let mut allowed: Vec<String> = client
        .servers
        .iter()
        .map(|server| format!("mcp__{}__", plain(&server.name)))
        .filter(|tools| !client.allow.iter().any(|entry| entry.starts_with(tools.as_str())))
        .map(|tools| format!("{tools}*"))
        .collect();
    for entry in &client.allow {
        let named = name(entry);
        // No setting can make a reviewer write.
        let reads = READING.contains(&named) || LOOKING_OUT.contains(&named) || named.starts_with("mcp__");
        if job == Job::Review && !reads {
            continue;
        }
        if !named.starts_with("mcp__") && !tools.iter().any(|tool| tool == named) {
            tools.push(named.to_string());
        }
        if !allowed.contains(entry) {
            allowed.push(entry.clone());
        }
    }
    Offer { tools, allowed }
}

#[cfg(test)]
mod tests {
    use tribunal_core::client::Server;

    use super::*;

    fn client(allow: &[&str]) -> ClientSpec {
        let servers = vec![Server { name: "my docs".into(), argv: vec!["docs".into()] }];
        ClientSpec {
            allow: allow.iter().map(|entry| (*entry).into()).collect(),
            servers,
            ..ClientSpec::new("claude-code")
        }
    }

    #[test]
    fn a_name_that_is_no_tool_is_told() {
        for (entry, known) in [
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
            let unknown = unknown(&client(&[entry]));
            assert_eq!(unknown.is_empty(), known, "{entry}: {unknown:?}");
        }
    }

    #[test]
    fn nothing_that_is_allowed_makes_a_reviewer_write() {
        let client = client(&["Bash(cargo test:*)", "Write", "Agent", "WebSearch", "mcp__my_docs__search"]);
        let review = offer(&client, Job::Review);
        assert_eq!(review.tools, ["Read", "Grep", "Glob", "WebSearch"]);
        assert_eq!(review.allowed, ["WebSearch", "mcp__my_docs__search"]);
        let fix = offer(&client, Job::Fix);
        assert!(
            fix.tools.contains(&"Bash".to_string())
                && fix.allowed.contains(&"Bash(cargo test:*)".to_string())
        );
    }

    #[test]
    fn of_a_server_all_tools_are_allowed_unless_some_are_named() {
        for (allow, allowed) in [
            (&[][..], &["mcp__my_docs__*"][..]),
            (&["mcp__my_docs__*"], &["mcp__my_docs__*"]),
            (&["mcp__my_docs"], &["mcp__my_docs__*", "mcp__my_docs"]),
            (&["mcp__my_docs__find", "mcp__my_docs__get"], &["mcp__my_docs__find", "mcp__my_docs__get"]),
        ] {
            for job in [Job::Review, Job::Fix] {
                assert_eq!(offer(&client(allow), job).allowed, allowed, "{allow:?}");
            }
        }
    }

    #[test]
    fn only_a_writer_is_ever_without_checks() {
        let client = ClientSpec { bypass: true, ..ClientSpec::new("claude-code") };
        assert_eq!(offer(&client, Job::Review).tools, READING);
        assert!(offer(&client, Job::Fix).tools.contains(&"Bash".to_string()));
        assert!(!offer(&ClientSpec::new("claude-code"), Job::Fix).tools.contains(&"Bash".to_string()));
    }
}
