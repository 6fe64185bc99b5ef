//! The subject as it is in one frozen copy.

use alloc::{format, string::String, vec::Vec};

use crate::{
    effect::{Freeze, FreezeOutcome, FrozenSubject},
    files::FrozenFile,
    ground::Scene,
    host::Host,
    ids::{Hash, Key},
    reason::{Ending, Reason},
    review::{Court, stage::StageExit},
    settings::Settings,
};

pub(super) struct Frozen {
    pub key: Key,
    /// The text of the one file, or the diff of the change.
    pub text: String,
    pub hash: Hash,
    pub files: Vec<FrozenFile>,
    /// What agents will not find in the copy, one line each.
    pub remarks: Vec<String>,
}

/// Freezes the subject. If this fails, the stage ends.
pub(super) async fn freeze(host: &dyn Host, court: &Court, key: Key) -> Result<Frozen, StageExit> {
    // Files that repairs have added are frozen as well.
    let subject = court.subject(host.settings());
    match host.perform(key.clone(), Freeze { subject }).await? {
        FreezeOutcome::Frozen(FrozenSubject { text, hash, files, remarks }) => {
            Ok(Frozen { key, text, hash, files, remarks })
        }
        FreezeOutcome::Failed { fault } => Err(Ending::new(Reason::Environment, fault.detail).into()),
    }
}

impl Frozen {
    /// Returns what is under review. `Err` if its section no longer exists.
    pub fn scene<'s>(&'s self, settings: &'s Settings) -> Result<Scene<'s>, Ending> {
        let subject = &settings.subject;
        Scene::of(subject, &self.text, &self.files).ok_or_else(|| {
            // Only a document has a section, so a path is known here.
            let (path, section) = (subject.path().unwrap_or_default(), subject.section().unwrap_or_default());
            Ending::new(Reason::Environment, format!("{path} has no section `{section}` any more"))
        })
    }

    /// Returns the whole file even if only a section is under review: counter-evidence may be anywhere.
    pub fn whole<'s>(&'s self, settings: &'s Settings) -> Option<Scene<'s>> {
        Scene::whole(&settings.subject, &self.text, &self.files)
    }
}
