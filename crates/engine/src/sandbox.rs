//! The settings of the sandbox around agents. What it consists of is decided by the runner, from these settings and the task.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::fmt;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::text::word_table::words;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SandboxSettings {
    pub mode: SandboxMode,
    /// More paths that agents and checks may write. `~/` stands for the home directory; others are relative to the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    pub read: ReadScope,
    /// More paths that may be read if reading is strict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_paths: Vec<String>,
    /// What agents may connect to.
    pub network: NetworkScope,
    /// What checks and commit hooks may connect to.
    pub check_network: NetworkScope,
}

/// Whether there is a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Where the kernel has one; elsewhere the run says that there is none.
    #[default]
    Auto,
    /// A run does not start without it.
    Required,
    Off,
}

words!(SandboxMode { Auto = "auto", Required = "required", Off = "off" });

/// What may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadScope {
    #[default]
    All,
    /// The workspace, the system, what the client needs, and what is named.
    Strict,
}

words!(ReadScope { All = "all", Strict = "strict" });

/// Which TCP ports may be connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(into = "Vec<String>", try_from = "Vec<String>")]
#[schemars(with = "Vec<String>")]
pub enum NetworkScope {
    #[default]
    All,
    None,
    Ports(Vec<u16>),
}

/// A text that is neither `all` nor `none` nor a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a port")]
pub struct UnknownPort(String);

impl TryFrom<Vec<String>> for NetworkScope {
    type Error = UnknownPort;

    fn try_from(texts: Vec<String>) -> Result<NetworkScope, UnknownPort> {
        match texts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["all"] => Ok(NetworkScope::All),
            ["none"] => Ok(NetworkScope::None),
            ports => {
                let ports = ports.iter().map(|text| text.parse().map_err(|_| UnknownPort(text.to_string())));
                ports.collect::<Result<_, _>>().map(NetworkScope::Ports)
            }
        }
    }
}

impl From<NetworkScope> for Vec<String> {
    fn from(scope: NetworkScope) -> Vec<String> {
        match scope {
            NetworkScope::All => vec!["all".to_string()],
            NetworkScope::None => vec!["none".to_string()],
            NetworkScope::Ports(ports) => ports.iter().map(u16::to_string).collect(),
        }
    }
}

impl fmt::Display for NetworkScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.clone().into();
        match self {
            NetworkScope::All | NetworkScope::None => formatter.write_str(&texts.concat()),
            NetworkScope::Ports(_) => write!(formatter, "ports {}", texts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_written_as_a_list() {
        for (scope, text) in [
            (NetworkScope::All, r#"["all"]"#),
            (NetworkScope::None, r#"["none"]"#),
            (NetworkScope::Ports(vec![443, 8080]), r#"["443","8080"]"#),
        ] {
            assert_eq!(serde_json::to_string(&scope).unwrap(), text);
            assert_eq!(serde_json::from_str::<NetworkScope>(text).unwrap(), scope);
        }
        assert!(serde_json::from_str::<NetworkScope>(r#"["70000"]"#).is_err());
    }
}
