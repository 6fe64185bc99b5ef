//! Cursor Agent (`cursor-agent`): only its output is known. It has no driver yet.

mod output;

use super::client::{ClientProjectFiles, ClientVariables, CodingClient};

pub(super) const CLIENT: CodingClient = CodingClient {
    id: "cursor",
    name: "Cursor Agent",
    aliases: &["cursor-agent"],
    program: "cursor-agent",
    variables: ClientVariables::NONE,
    project_files: ClientProjectFiles { instruction_paths: &[".cursor"], guarded_paths: &[] },
    agent_facts: None,
    session_hooks: None,
    output_format: Some(&output::FORMAT),
};
