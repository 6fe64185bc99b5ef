//! OpenCode (`opencode`): only its output is known. It has no driver yet.

mod output;

use super::client::{Client, ClientVariables, ProjectFiles};

pub(super) const CLIENT: Client = Client {
    id: "opencode",
    name: "OpenCode",
    aliases: &[],
    program: "opencode",
    variables: ClientVariables::NONE,
    project: ProjectFiles { read: &[".opencode", "opencode.json"], guarded: &[] },
    agent: None,
    hooks: None,
    output: Some(&output::FORMAT),
};
