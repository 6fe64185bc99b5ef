//! OpenCode (`opencode`): only its output is known. It has no driver yet.

mod output;

use super::client::{ClientProjectFiles, ClientVariables, CodingClient};

pub(super) const CLIENT: CodingClient = CodingClient {
    id: "opencode",
    name: "OpenCode",
    aliases: &[],
    program: "opencode",
    variables: ClientVariables::NONE,
    project_files: ClientProjectFiles { instruction_paths: &[".opencode", "opencode.json"], guarded_paths: &[] },
    agent_facts: None,
    session_hooks: None,
    output_format: Some(&output::FORMAT),
};
