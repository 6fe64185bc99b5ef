//! The subject as one frozen copy has it.

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
    /// The one file's text, or the change's diff.
    pub text: String,
    pub hash: Hash,
    pub files: Vec<FrozenFile>,
    /// What agents will not find in it.
    pub remarks: Vec<String>,
}

/// Freezes the subject. A subject that cannot be had ends the stage.
pub(super) async fn freeze(host: &dyn Host, court: &Court, key: Key) -> Result<Frozen, StageExit> {
    let subject = court.subject(host.settings());
    match host.perform(key.clone(), Freeze { subject }).await? {
        FreezeOutcome::Frozen(FrozenSubject { text, hash, files, remarks }) => {
            Ok(Frozen { key, text, hash, files, remarks })
        }
        FreezeOutcome::Failed { fault } => Err(Ending::new(Reason::Environment, fault.detail).into()),
    }
}

impl Frozen {
    /// What is under review. `Err`: its section is gone.
    pub fn scene<'s>(&'s self, settings: &'s Settings) -> Result<Scene<'s>, Ending> {
        let subject = &settings.subject;
        Scene::of(subject, &self.text, &self.files).ok_or_else(|| {
            let (path, section) = (subject.path().unwrap_or_default(), subject.section().unwrap_or_default());
            Ending::new(Reason::Environment, format!("{path} has no section `{section}` any more"))
        })
    }

    /// The same with all of the file, whatever section is under review.
    pub fn whole<'s>(&'s self, settings: &'s Settings) -> Option<Scene<'s>> {
        Scene::whole(&settings.subject, &self.text, &self.files)
    }
}
