//! Finds the names of MCP servers in the client's own settings file.
//!
//! Only names are looked for, line by line. The file is not parsed otherwise, and never changed.

const SERVERS_TABLE: &str = "mcp_servers";

/// Every server name for which the text has a table or a key.
pub(super) fn find_server_names(settings_toml: &str) -> Vec<String> {
    let mut server_names: Vec<String> = Vec::new();
    let mut is_in_table = false;
    for settings_line in settings_toml.lines().map(str::trim) {
        let table_header = settings_line.strip_prefix('[').map(str::trim_start);
        if let Some(table_header) = table_header {
            is_in_table = table_header.trim_end_matches(']').trim() == SERVERS_TABLE;
        }
        // A name occurs as `[mcp_servers.NAME]`, `[mcp_servers.NAME.env]`, `mcp_servers.NAME.command = …`, or as
        // `NAME = {…}` in `[mcp_servers]`.
        let key_path = match table_header {
            Some(table_header) => table_header
                .strip_prefix(SERVERS_TABLE)
                .map(str::trim_start)
                .and_then(|after_table| after_table.strip_prefix('.')),
            None if is_in_table => Some(settings_line),
            None => settings_line
                .strip_prefix(SERVERS_TABLE)
                .map(str::trim_start)
                .and_then(|after_table| after_table.strip_prefix('.')),
        };
        if let Some(server_name) = key_path.and_then(first_key_part)
            && !server_names.contains(&server_name)
        {
            server_names.push(server_name);
        }
    }
    server_names
}

/// The first part of a dotted key.
fn first_key_part(key_path: &str) -> Option<String> {
    let key_path = key_path.trim_start();
    if let Some(quote_mark) = key_path.chars().next().filter(|character| matches!(character, '"' | '\'')) {
        let after_quote = &key_path[1..];
        // A name with escapes is not decoded; such a server cannot be disabled by name.
        return after_quote
            .find(quote_mark)
            .map(|key_end| after_quote[..key_end].to_string())
            .filter(|key_name| !key_name.contains('\\'));
    }
    let is_bare_char = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let key_end = key_path.find(|character| !is_bare_char(character)).unwrap_or(key_path.len());
    // A word that is not followed by a delimiter is no key, but part of a value that spans several lines.
    let is_delimited = key_path[key_end..].trim_start().starts_with(['.', ']', '=']);
    (key_end > 0 && is_delimited).then(|| key_path[..key_end].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notation_of_a_server_is_found() {
        let settings_toml = r#"
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
        assert_eq!(find_server_names(settings_toml), ["dotted", "plain", "spaced", "my.docs", "inline", "sub"]);
        assert!(find_server_names("").is_empty());
    }
}
