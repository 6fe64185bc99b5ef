//! GitHub Copilot CLI (`copilot`): known by its hooks; it has no driver yet, and what it writes down is not understood.

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
