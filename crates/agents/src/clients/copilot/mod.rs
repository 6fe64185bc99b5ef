//! GitHub Copilot CLI (`copilot`): only its hooks are known. It has no driver yet, and its transcripts are not
//! understood.

mod hooks;

use super::client::{Client, ClientVariables, ProjectFiles};

pub(super) const CLIENT: Client = Client {
    id: "copilot",
    name: "GitHub Copilot CLI",
    aliases: &[],
    program: "copilot",
    variables: ClientVariables::NONE,
    project: ProjectFiles { read: &[".github/copilot-instructions.md"], guarded: &[".github/hooks/"] },
    agent: None,
    hooks: Some(&hooks::Hooks),
    output: None,
};
