//! What happened to a run besides its work: restarts and warnings.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// How many different warnings of a run are kept. Each is in its journal.
const MAX_WARNINGS: usize = 500;

#[derive(Clone, Debug, Default)]
pub struct RunIncidents {
    /// How many processes have worked on the run.
    pub life_count: u32,
    /// What the user was warned about, in the order in which it was said first.
    pub warnings: Vec<RunWarning>,
}

/// Something that the user was warned about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunWarning {
    pub text: String,
    /// How often it was said.
    pub times: u32,
}

impl RunIncidents {
    pub fn note_warning(&mut self, text: &str) {
        if let Some(known) = self.warnings.iter_mut().find(|known| known.text == text) {
            known.times += 1;
        } else if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(RunWarning { text: text.to_string(), times: 1 });
        }
    }
}
