//! Gemini CLI (`gemini`): only its hooks are known. It has no driver yet, and its transcripts are not understood.

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
