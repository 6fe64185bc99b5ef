//! Cursor Agent (`cursor-agent`): only its output is known. It has no driver yet.

mod output;

use super::client::{Client, ClientVariables, ProjectFiles};

pub(super) const CLIENT: Client = Client {
    id: "cursor",
    name: "Cursor Agent",
    aliases: &["cursor-agent"],
    program: "cursor-agent",
    variables: ClientVariables::NONE,
    project: ProjectFiles { read: &[".cursor"], guarded: &[] },
    agent: None,
    hooks: None,
    output: Some(&output::FORMAT),
};
