//! Which runs are in the trash. [`crate::housekeeping::discarded_runs`] puts them there.

use std::{collections::BTreeMap, fs};

use tribunal_engine::ids::RunId;
use tribunal_workflows::runs::view::RunView;

use crate::project::Project;

/// The file with the time, in milliseconds since 1970.
pub(crate) const TIME_FILE: &str = "discarded-at";

/// Returns the discarded runs and when each was discarded, in milliseconds since 1970.
pub fn list_discarded(project: &Project) -> BTreeMap<RunId, u64> {
    let run_dirs = fs::read_dir(project.discarded_dir()).into_iter().flatten().flatten();
    let read_marker = |run_dir: fs::DirEntry| {
        let run_id = RunId::new(run_dir.file_name().to_str()?);
        // A directory without a readable time is a discard that was killed before it took effect.
        let time_text = fs::read_to_string(run_dir.path().join(TIME_FILE)).ok()?;
        Some((run_id, time_text.trim().parse().ok()?))
    };
    run_dirs.filter_map(read_marker).collect()
}

/// Whether a run is in the trash, by itself or with the run that it is a child of.
pub fn is_discarded(discarded_runs: &BTreeMap<RunId, u64>, run_id: &RunId, run_view: &RunView) -> bool {
    let parent_id = run_view.parent.as_ref().map(|parent| &parent.run);
    [Some(run_id), parent_id].into_iter().flatten().any(|run_id| discarded_runs.contains_key(run_id))
}
