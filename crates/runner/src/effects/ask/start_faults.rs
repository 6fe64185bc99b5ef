//! Why an agent could not be started.

use tribunal_agents::clients::AgentClient;
use tribunal_engine::{
    fault::{Fault, FaultKind, FaultRemedy},
    text::shell_quote,
};
use tribunal_supervise::StartError;
use tribunal_workflows::runs::settings::{AgentSpec, DriverSpec};

/// Describes why an agent could not be started, and what would help.
pub(super) fn describe_start_fault(agent_spec: &AgentSpec, cause: &StartError) -> Fault {
    let fault_kind = match cause {
        StartError::NotFound { .. } => FaultKind::NotInstalled,
        StartError::NotExecutable { .. } | StartError::NoRoom { .. } | StartError::Other { .. } => {
            FaultKind::CannotStart
        }
    };
    // A relative program is looked up in the workspace, where a built binary that git ignores is missing.
    let is_relative = match &agent_spec.driver {
        DriverSpec::Command { argv } => {
            argv.first().is_some_and(|program| program.contains('/') && !program.starts_with('/'))
        }
        DriverSpec::Replay { .. } | DriverSpec::Client(_) => false,
    };
    let hint = if is_relative { " (looked up in the agent's workspace, which has no ignored files)" } else { "" };
    Fault::new(fault_kind, format!("agent `{}`: {cause}{hint}", agent_spec.name))
        .with_remedy(suggest_start_remedy(agent_spec, cause))
}

/// Returns the command that lets an agent be started, if one is known.
fn suggest_start_remedy(agent_spec: &AgentSpec, cause: &StartError) -> Option<FaultRemedy> {
    let command = match cause {
        StartError::NotFound { .. } => {
            let client_spec = agent_spec.driver.client_spec()?;
            let client = AgentClient::find(client_spec.client.as_str()).ok()?;
            // A program that the settings name is elsewhere, and installing the client would not put it there.
            client_spec.program.is_none().then(|| client.facts.install_hint.to_string())?
        }
        // Only a path says which file is meant.
        StartError::NotExecutable { program } if program.starts_with('/') => {
            format!("chmod +x {}", shell_quote(program))
        }
        StartError::NotExecutable { .. } | StartError::NoRoom { .. } | StartError::Other { .. } => return None,
    };
    Some(FaultRemedy::RunCommand { command })
}
