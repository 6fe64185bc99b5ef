//! Sets up new clones: the commands of the user, and ignored files that are copied.

use std::{collections::BTreeMap, path::Path};

use tribunal_engine::fault::Fault;

use super::{
    EffectContext,
    commands::{CommandFailure, FinishedCheck},
    environment_fault,
};
use crate::workspaces::agent_file_names;

/// The usual directory of what BMAD's workflows write, which some projects ignore.
const BMAD_OUTPUT_DIR: &str = "_bmad-output";

/// What came of the commands that set up a clone.
pub(super) enum SetupEnd {
    Passed,
    /// One of them failed, and the later ones did not run.
    Failed(FinishedCheck),
    Faulted(Fault),
}

/// Sets up a clone. The commands run in `directory` and may write in `tree`. Returns `None` if the user ended one of them.
pub(super) async fn run_setup(context: &EffectContext, tree: &Path, directory: &Path) -> Option<SetupEnd> {
    for command in &context.settings.workspace.setup {
        // The command is the user's, but what it runs may be the work of an agent.
        let writable_paths = Some(vec![tree.to_path_buf()]);
        match context.run_user_command(command, directory.to_path_buf(), BTreeMap::new(), writable_paths).await {
            Ok(finished) if finished.result.status.is_passed() => {}
            Ok(finished) => return Some(SetupEnd::Failed(finished)),
            Err(CommandFailure::Stopped) => return None,
            Err(CommandFailure::Lost(cause)) => {
                return Some(SetupEnd::Faulted(environment_fault(format!("could not run `{command}`: {cause}"))));
            }
        }
    }
    Some(SetupEnd::Passed)
}

/// Lists what is copied into a new clone if it is there and git ignores it.
pub(super) fn list_usual_seeds(context: &EffectContext) -> Vec<String> {
    let mut usual_seeds: Vec<String> = agent_file_names().chain([BMAD_OUTPUT_DIR]).map(String::from).collect();
    // The directory of the trackers lies in the directory of what BMAD's workflows write.
    if let Some((output_dir, _)) = context.settings.reviews.trim_end_matches('/').rsplit_once('/') {
        usual_seeds.push(output_dir.to_string());
    }
    usual_seeds
}
