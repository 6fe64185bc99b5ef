//! Gemini CLI (`gemini`): only its hooks are known. It has no driver yet, and its transcripts are not understood.

mod hooks;

use super::client::{ClientProjectFiles, ClientVariables, CodingClient};

pub(super) const CLIENT: CodingClient = CodingClient {
    id: "gemini",
    name: "Gemini CLI",
    aliases: &[],
    program: "gemini",
    variables: ClientVariables { vendor_credentials: &["GEMINI_API_KEY"], ..ClientVariables::NONE },
    project_files: ClientProjectFiles { instruction_paths: &[".gemini", "GEMINI.md"], guarded_paths: &[] },
    agent_facts: None,
    session_hooks: Some(&hooks::GeminiHooks),
    output_format: None,
};
