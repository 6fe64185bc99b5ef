//! The environment that points a real client at a server, away from the person's own settings and from the network.
//!
//! Only what the client reads; a search path is the caller's. Which client to start, and how, is not here.

use std::{fs, io, net::SocketAddr, path::Path};

/// A name that Codex knows no model by: it then offers plain tools.
pub const CODEX_MODEL: &str = "mock-model";

const CODEX_KEY: &str = "MODEL_SERVER_KEY";

type Variables = Vec<(String, String)>;

/// Claude Code asks this server and nobody else, tries once more where it would try ten times, and keeps its files in `home`.
pub fn claude_env(server: SocketAddr, home: &Path) -> Variables {
    let inside = |name: &str| home.join(name).display().to_string();
    let variables = [
        ("HOME", inside("")),
        ("CLAUDE_CONFIG_DIR", inside("claude")),
        // Else it leaves folders and sockets in the machine's own.
        ("CLAUDE_CODE_TMPDIR", inside("tmp")),
        ("ANTHROPIC_BASE_URL", format!("http://{server}")),
        ("ANTHROPIC_API_KEY", "sk-test".to_string()),
        ("CLAUDE_CODE_MAX_RETRIES", "1".to_string()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_string()),
        ("DISABLE_AUTOUPDATER", "1".to_string()),
        ("DISABLE_ERROR_REPORTING", "1".to_string()),
        ("DISABLE_TELEMETRY", "1".to_string()),
    ];
    variables.map(|(name, value)| (name.to_string(), value)).to_vec()
}

/// The same for Codex, which has it in a file: written to `home`.
pub fn codex_home(server: SocketAddr, home: &Path) -> io::Result<Variables> {
    let folder = home.join("codex");
    fs::create_dir_all(&folder)?;
    let settings = format!(
        r#"model = "{CODEX_MODEL}"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "http://{server}/v1"
env_key = "{CODEX_KEY}"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"#
    );
    fs::write(folder.join("config.toml"), settings)?;
    let variables = [
        ("HOME", home.display().to_string()),
        ("CODEX_HOME", folder.display().to_string()),
        (CODEX_KEY, "sk-test".to_string()),
    ];
    Ok(variables.map(|(name, value)| (name.to_string(), value)).to_vec())
}
