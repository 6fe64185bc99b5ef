//! Finds the names of MCP servers in the client's own settings file.
//!
//! Only names are looked for, line by line. The file is not parsed otherwise, and never changed.

const TABLE: &str = "mcp_servers";

/// Every server name for which the text has a table or a key.
pub(super) fn servers_in(settings: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut inside = false;
    for line in settings.lines().map(str::trim) {
        let header = line.strip_prefix('[').map(str::trim_start);
        if let Some(header) = header {
            inside = header.trim_end_matches(']').trim() == TABLE;
        }
        // A name occurs as `[mcp_servers.NAME]`, `[mcp_servers.NAME.env]`, `mcp_servers.NAME.command = …`, or as
        // `NAME = {…}` in `[mcp_servers]`.
        let path = match header {
            Some(header) => {
                header.strip_prefix(TABLE).map(str::trim_start).and_then(|rest| rest.strip_prefix('.'))
            }
            None if inside => Some(line),
            None => line.strip_prefix(TABLE).map(str::trim_start).and_then(|rest| rest.strip_prefix('.')),
        };
        if let Some(name) = path.and_then(first_key)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// The first part of a dotted key.
fn first_key(path: &str) -> Option<String> {
    let path = path.trim_start();
    if let Some(quote) = path.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let rest = &path[1..];
        // A name with escapes is not decoded; such a server cannot be disabled by name.
        return rest.find(quote).map(|end| rest[..end].to_string()).filter(|name| !name.contains('\\'));
    }
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let end = path.find(|c| !bare(c)).unwrap_or(path.len());
    // A word that is not followed by a delimiter is no key, but part of a value that spans several lines.
    let closed = path[end..].trim_start().starts_with(['.', ']', '=']);
    (end > 0 && closed).then(|| path[..end].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_server_down() {
        let settings = r#"
model = "x"  # mcp_servers.no = 1
mcp_servers.dotted.command = "a"
# [mcp_servers.commented]
[mcp_servers.plain]
command = "a"
args = ["mcp_servers.no"]
[mcp_servers.plain.env]
KEY = "x"
[ mcp_servers . spaced ]
[mcp_servers."my.docs"]
url = "http://localhost"
[mcp_servers]
inline = { command = "a" }
sub.command = "b"
[mcp_servers_other.no]
[model_providers.no]
"#;
        assert_eq!(servers_in(settings), ["dotted", "plain", "spaced", "my.docs", "inline", "sub"]);
        assert!(servers_in("").is_empty());
    }
}
