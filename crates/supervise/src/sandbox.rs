//! What the kernel lets a process tree do: Landlock rules, set between fork and exec of the first process and inherited by
//! everything that it starts.
//!
//! Landlock is a list of what is allowed. Writing is allowed only beneath the directories that are named; reading and connecting
//! only if they are restricted at all. Older kernels know fewer rights, and what they do not know is not enforced: [`probe_sandbox`] tells
//! what holds here. Signals to processes outside of the tree, and abstract sockets of theirs, are always out of reach where the
//! kernel can do that. Sockets with a path name are, too, from Landlock's version 9 on.
//!
//! The rules reach the keeper as one field of its job, in lines of text.

#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod system_calls;

use std::{
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

#[cfg(target_os = "linux")]
pub(crate) use landlock_rules::PreparedRules;

/// What the processes of a tree may do. Everything that is not mentioned here is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxRules {
    /// Directories and files beneath which everything may be written. What does not exist is left out.
    pub writable_paths: Vec<PathBuf>,
    /// What may be read and executed, besides what may be written; `None` means everything.
    pub readable_paths: Option<Vec<PathBuf>>,
    pub network: NetworkRule,
}

/// Which TCP ports may be connected to. Listening is allowed with all of them but `Nothing`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkRule {
    #[default]
    Everything,
    Ports(Vec<u16>),
    Nothing,
}

/// What the kernel can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxSupport {
    /// Landlock with this version of its interface.
    Available { version: u32 },
    /// The kernel has Landlock, but it was not enabled when the system started.
    NotEnabled,
    /// The kernel is too old, or was built without it.
    NotImplemented,
    /// Only Linux has it.
    OtherSystem,
}

/// The versions of Landlock's interface from which on something is enforced.
const TRUNCATE_VERSION: u32 = 3;
const NETWORK_VERSION: u32 = 4;
const SCOPE_VERSION: u32 = 6;
const SOCKET_VERSION: u32 = 9;

/// What only the newest kernels prevent.
pub const SOCKET_GAP: &str = "sockets with a path name (tmux, docker) can be connected to";

impl SandboxSupport {
    pub fn is_available(self) -> bool {
        matches!(self, SandboxSupport::Available { .. })
    }

    /// Lists what this kernel cannot enforce although rules ask for it, in words.
    pub fn list_gaps(self, network: &NetworkRule) -> Vec<&'static str> {
        let SandboxSupport::Available { version } = self else { return Vec::new() };
        let mut gaps = Vec::new();
        if version < TRUNCATE_VERSION {
            gaps.push("files can be truncated everywhere");
        }
        if version < NETWORK_VERSION && *network != NetworkRule::Everything {
            gaps.push("the network is not restricted");
        }
        if version < SCOPE_VERSION {
            gaps.push("signals can be sent to your other processes");
        }
        if version < SOCKET_VERSION {
            gaps.push(SOCKET_GAP);
        }
        gaps
    }
}

impl fmt::Display for SandboxSupport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SandboxSupport::Available { version } => write!(formatter, "Landlock version {version}"),
            SandboxSupport::NotEnabled => formatter.write_str("this kernel has Landlock, but it is not enabled"),
            SandboxSupport::NotImplemented => {
                formatter.write_str("this kernel has no Landlock (Linux 5.13 or newer has)")
            }
            SandboxSupport::OtherSystem => formatter.write_str("only Linux has Landlock"),
        }
    }
}

/// Finds out what the kernel can enforce.
pub fn probe_sandbox() -> SandboxSupport {
    #[cfg(target_os = "linux")]
    return landlock_rules::probe_kernel();
    #[cfg(not(target_os = "linux"))]
    SandboxSupport::OtherSystem
}

impl SandboxRules {
    /// Encodes the rules as one argument.
    pub(crate) fn to_field(&self) -> OsString {
        let mut encoded = Vec::new();
        let mut add_line = |keyword: &str, value: &OsStr| {
            encoded.extend_from_slice(keyword.as_bytes());
            encoded.extend(escape_line_breaks(value.as_bytes()));
            encoded.push(b'\n');
        };
        self.writable_paths.iter().for_each(|path| add_line("write ", path.as_os_str()));
        if self.readable_paths.is_some() {
            add_line("strict-read", OsStr::new(""));
        }
        self.readable_paths.iter().flatten().for_each(|path| add_line("read ", path.as_os_str()));
        match &self.network {
            NetworkRule::Everything => {}
            NetworkRule::Nothing => add_line("no-network", OsStr::new("")),
            NetworkRule::Ports(ports) => {
                add_line("ports", OsStr::new(""));
                ports.iter().for_each(|port| add_line("port ", OsStr::new(&port.to_string())));
            }
        }
        OsString::from_vec(encoded)
    }

    /// Decodes the argument; `None` if it is not one.
    pub(crate) fn from_field(argument: &OsStr) -> Option<SandboxRules> {
        let mut rules = SandboxRules::default();
        let lines = argument.as_bytes().strip_suffix(b"\n").unwrap_or(argument.as_bytes());
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let keyword_end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
            let value = line.get(keyword_end + 1..).unwrap_or_default();
            let path = || PathBuf::from(OsString::from_vec(restore_line_breaks(value)));
            match &line[..keyword_end] {
                b"write" => rules.writable_paths.push(path()),
                b"strict-read" => rules.readable_paths = Some(Vec::new()),
                b"read" => rules.readable_paths.as_mut()?.push(path()),
                b"no-network" => rules.network = NetworkRule::Nothing,
                b"ports" => rules.network = NetworkRule::Ports(Vec::new()),
                b"port" => match &mut rules.network {
                    NetworkRule::Ports(ports) => ports.push(std::str::from_utf8(value).ok()?.parse().ok()?),
                    _ => return None,
                },
                _ => return None,
            }
        }
        Some(rules)
    }
}

/// Replaces line breaks by `\n`, and each backslash by two.
fn escape_line_breaks(value: &[u8]) -> Vec<u8> {
    let escape_byte = |byte: &u8| match byte {
        b'\n' => vec![b'\\', b'n'],
        b'\\' => vec![b'\\', b'\\'],
        other => vec![*other],
    };
    value.iter().flat_map(escape_byte).collect()
}

fn restore_line_breaks(value: &[u8]) -> Vec<u8> {
    let mut restored = Vec::new();
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        restored.push(match byte {
            b'\\' if bytes.next() == Some(&b'n') => b'\n',
            other => *other,
        });
    }
    restored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_the_way_to_the_keeper() {
        let name_that_is_not_utf8 = PathBuf::from(OsString::from_vec(b"/a b/\xff \n\\n\\\\".to_vec()));
        let all_rules = [
            SandboxRules::default(),
            SandboxRules { writable_paths: vec!["/".into(), name_that_is_not_utf8.clone()], ..SandboxRules::default() },
            SandboxRules { readable_paths: Some(Vec::new()), ..SandboxRules::default() },
            SandboxRules {
                readable_paths: Some(vec![name_that_is_not_utf8]),
                network: NetworkRule::Nothing,
                ..SandboxRules::default()
            },
            SandboxRules { network: NetworkRule::Ports(vec![]), ..SandboxRules::default() },
            SandboxRules { network: NetworkRule::Ports(vec![443, 8080]), ..SandboxRules::default() },
        ];
        for rules in all_rules {
            assert_eq!(SandboxRules::from_field(&rules.to_field()), Some(rules));
        }
        assert_eq!(SandboxRules::from_field(OsStr::new("write /a\nread /b\n")), None, "reading is not restricted");
        assert_eq!(SandboxRules::from_field(OsStr::new("allow /a\n")), None);
    }

    #[test]
    fn what_an_older_kernel_cannot_do_is_named() {
        let gaps = |version| SandboxSupport::Available { version }.list_gaps(&NetworkRule::Nothing).len();
        assert_eq!((gaps(1), gaps(3), gaps(4), gaps(6), gaps(9)), (4, 3, 2, 1, 0));
        assert!(SandboxSupport::NotEnabled.list_gaps(&NetworkRule::Nothing).is_empty());
    }
}
