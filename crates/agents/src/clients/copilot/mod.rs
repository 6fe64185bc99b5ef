//! GitHub Copilot CLI (`copilot`): only its hooks are known. It has no driver yet, and its transcripts are not
//! understood.

mod hooks;

use super::client::{ClientProjectFiles, ClientVariables, CodingClient};

pub(super) const CLIENT: CodingClient = CodingClient {
    id: "copilot",
    name: "GitHub Copilot CLI",
    aliases: &[],
    program: "copilot",
    variables: ClientVariables::NONE,
    project_files: ClientProjectFiles {
        instruction_paths: &[".github/copilot-instructions.md"],
        guarded_paths: &[".github/hooks/"],
    },
    agent_facts: None,
    session_hooks: Some(&hooks::CopilotHooks),
    output_format: None,
};
