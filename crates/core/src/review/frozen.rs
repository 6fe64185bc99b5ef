//! The subject as one frozen copy has it.

use alloc::{format, string::String, vec::Vec};

use crate::{
    effect::{Effect, FrozenFile, Reply},
    ground::Scene,
    host::{Host, Parked},
    ids::{Hash, Key},
    reason::{Ending, Reason},
    review::Court,
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

/// Freezes the subject. `Err`: it could not be had.
pub(super) async fn freeze(
    host: &dyn Host,
    court: &Court,
    key: Key,
) -> Result<Result<Frozen, Ending>, Parked> {
    let subject = court.subject(host.settings());
    Ok(match host.perform(key.clone(), Effect::Freeze { subject }).await? {
        Reply::Frozen { text, hash, files, remarks } => Ok(Frozen { key, text, hash, files, remarks }),
        Reply::Failed { fault, .. } => Err(Ending::new(Reason::Environment, fault.detail)),
        other => Err(Ending::new(Reason::Environment, format!("{other:?}"))),
    })
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
