//! Gemini CLI (`gemini`): known by its hooks; it has no driver yet, and what it writes down is not understood.

mod hooks;

use super::client::{Client, ClientVariables, ProjectFiles};

pub(super) const CLIENT: Client = Client {
    id: "gemini",
    name: "Gemini CLI",
    aliases: &[],
    program: "gemini",
    variables: ClientVariables { secrets: &["GEMINI_API_KEY"], ..ClientVariables::NONE },
    project: ProjectFiles { read: &[".gemini", "GEMINI.md"], guarded: &[] },
    agent: None,
    hooks: Some(&hooks::Hooks),
    output: None,
};
