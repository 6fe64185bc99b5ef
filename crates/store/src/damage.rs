//! What is wrong with a damaged journal.

use std::{fmt, path::PathBuf};

use tribunal_engine::ids::RunId;

/// A journal that has lost or changed what was recorded in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalDamage {
    pub path: PathBuf,
    /// What is wrong with the file as a whole, as the end of a sentence. `None` if only some runs are damaged.
    pub file_problem: Option<String>,
    /// The damaged runs. If nothing of the file can be read, these are all runs that were recorded in it.
    pub runs: Vec<DamagedRun>,
}

/// A run of which not everything can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRun {
    pub run_id: RunId,
    pub problem: EntryProblem,
    /// The last entry of those from the first one on that are as they were recorded. `None` if no entry is, or if that is not
    /// known.
    pub last_good: Option<GoodEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryProblem {
    /// There is no such entry, although later ones exist.
    Missing { seq: u64 },
    /// The entry is not what was recorded, or cannot be read.
    Changed { seq: u64 },
    /// The journal ends before the last entry that is known to have been recorded.
    CutOff { recorded: u64 },
}

/// An entry that is as it was recorded, as are all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodEntry {
    pub seq: u64,
    pub wall_ms: u64,
}

impl DamagedRun {
    pub fn good_entries(&self) -> u64 {
        self.last_good.map_or(0, |good_entry| good_entry.seq)
    }
}

impl fmt::Display for DamagedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run_id = &self.run_id;
        match self.problem {
            EntryProblem::Missing { seq } => write!(f, "entry {seq} of run {run_id} is missing"),
            EntryProblem::Changed { seq } => write!(f, "entry {seq} of run {run_id} is not what was recorded"),
            EntryProblem::CutOff { recorded } => match self.good_entries() {
                0 => write!(f, "all {recorded} entries of run {run_id} are missing"),
                good => write!(f, "run {run_id} ends with entry {good}, but {recorded} were recorded"),
            },
        }
    }
}

impl fmt::Display for JournalDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged", self.path.display())?;
        match (&self.file_problem, self.runs.as_slice()) {
            (Some(problem), _) => write!(f, ": {problem}"),
            (None, []) => Ok(()),
            (None, [damaged_run]) => write!(f, ": {damaged_run}"),
            (None, [damaged_run, others @ ..]) => write!(
                f,
                ": {damaged_run} (and {} more {})",
                others.len(),
                if others.len() == 1 { "run is damaged" } else { "runs are damaged" }
            ),
        }
    }
}
