//! The environment that points a real client at a server, away from the user's own settings and from the network.
//!
//! It contains only what the client itself reads; the search path is up to the caller. Which client to start, and how, is not
//! decided here.

use std::{fs, io, net::SocketAddr, path::Path};

/// A model name that Codex does not know: for such a model it offers plain tools.
pub const CODEX_MODEL: &str = "mock-model";

const CODEX_KEY: &str = "MODEL_SERVER_KEY";

type EnvVariables = Vec<(String, String)>;

/// Makes Claude Code ask only this server, retry once instead of ten times, and keep its files in `home`.
pub fn claude_env(server: SocketAddr, home: &Path) -> EnvVariables {
    let path_in_home = |name: &str| home.join(name).display().to_string();
    let variables = [
        ("HOME", path_in_home("")),
        ("CLAUDE_CONFIG_DIR", path_in_home("claude")),
        // Otherwise it leaves directories and sockets in the system's temporary directory.
        ("CLAUDE_CODE_TMPDIR", path_in_home("tmp")),
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

/// Does the same for Codex, which reads a configuration file: it is written to `home`.
pub fn codex_env(server: SocketAddr, home: &Path) -> io::Result<EnvVariables> {
    let codex_dir = home.join("codex");
    fs::create_dir_all(&codex_dir)?;
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
    fs::write(codex_dir.join("config.toml"), settings)?;
    let variables = [
        ("HOME", home.display().to_string()),
        ("CODEX_HOME", codex_dir.display().to_string()),
        (CODEX_KEY, "sk-test".to_string()),
    ];
    Ok(variables.map(|(name, value)| (name.to_string(), value)).to_vec())
}
