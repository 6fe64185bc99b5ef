//! All that a review knows between two stages: what a boundary records, and what can be said of it alone.
//!
//! Nothing here asks for anything; the stages beside this file do.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    brief::{Claim, Surroundings},
    confidence::Confidence,
    counts::Counts,
    decision::{About, Decision},
    effect::Remark,
    files::{LandedFile, Stray},
    finding::{Finding, Status},
    ids::{DecisionId, FindingId, Hash, Key},
    limits::Spent,
    metrics::Metrics,
    reason::Ending,
    review::{signs::Sheet, tries::Tries},
    settings::Settings,
    subject::{Changed, Subject},
    text::{count, cut},
};

/// All that a review knows between two stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Court {
    /// Rounds done.
    pub round: u32,
    pub last_pass: Pass,
    /// Fix iterations done in this round.
    pub iteration: u32,
    pub findings: Vec<Finding>,
    pub fixes: Vec<Fix>,
    pub decisions: Vec<Decision>,
    pub spent: Spent,
    pub metrics: Metrics,
    /// Versions of the tracker written so far.
    pub tracker_rev: u32,
    /// What the verify commands passed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Hash>,
    /// After the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// What people told the run, for the next briefs.
    pub said: Vec<Remark>,
    /// A person accepted what was left.
    pub accepted: bool,
    /// A person wants another round because the confidence is too low.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub held_for_confidence: bool,
    /// What each round came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sheets: Vec<Sheet>,
    /// How often the panel was found degraded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub degraded: u32,
    #[serde(default, skip_serializing_if = "Tries::is_empty")]
    pub tries: Tries,
    /// Patches that wait for a person's yes, or have it and wait to be landed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Pending>,
    /// Files that repairs of a change have made: they are under review from then on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<String>,
    /// Files that changed while agents were at work, and not by a landing.
    #[serde(default, skip_serializing_if = "Strays::is_empty")]
    pub strays: Strays,
    /// Findings that a limit kept from being disputed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<FindingId>,
    /// A person no longer waits for the session: fixers repair.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub session_over: bool,
    /// It has come to this end and waits for a person.
    pub waiting: Option<Ending>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The last look of a panel at the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pass {
    /// It raised nothing new of medium or higher, and nothing has landed since.
    pub dry: bool,
    /// What was read.
    pub text: Option<Hash>,
    /// Most of the panel answered, and not mostly with what is not believed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub sound: bool,
    /// Somebody else has changed the text since.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changed: bool,
    /// Seats that did not answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unheard: u32,
    /// What kept it from being dry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<FindingId>,
}

impl Pass {
    /// Of a dry one.
    pub(super) fn says(&self) -> String {
        let mut text = String::from("a pass over the final text was dry");
        if self.unheard > 0 {
            text.push_str(&format!(", though {} did not answer", count(self.unheard, "reviewer")));
        }
        text
    }

    /// Of one that was not, over a text that is still the same.
    pub(super) fn lacks(&self) -> &'static str {
        if self.changed {
            "the file was changed by somebody else since"
        } else {
            "too little of it was answered, or believed"
        }
    }
}

/// One line of the fix log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    pub finding: FindingId,
    pub key: Key,
    pub note: String,
}

/// A patch that waits for a person's yes, or has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pending {
    pub decision: DecisionId,
    pub by: Key,
    pub patch: Hash,
    pub claims: Vec<Claim>,
    /// A person has said yes.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub approved: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Strays {
    /// Asked about, or answered for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) known: Vec<Stray>,
    /// The person answers for these themselves: they are not asked about again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    theirs: Vec<String>,
    /// To be put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) due: Vec<Stray>,
}

impl Strays {
    pub fn is_empty(&self) -> bool {
        *self == Strays::default()
    }

    pub(super) fn is_news(&self, stray: &Stray) -> bool {
        let same = |known: &Stray| known.path == stray.path && known.after == stray.after;
        !self.known.iter().any(same) && !self.theirs.contains(&stray.path)
    }

    pub(super) fn answered(&mut self, strays: Vec<Stray>, restore: bool) {
        if restore {
            self.due.extend(strays);
        } else {
            self.theirs.extend(strays.into_iter().map(|stray| stray.path));
        }
    }
}

impl Court {
    pub fn finding_mut(&mut self, id: FindingId) -> Option<&mut Finding> {
        self.findings.iter_mut().find(|finding| finding.id == id)
    }

    pub fn finding(&self, id: FindingId) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }

    /// What was fixed since the panel last looked, in a line each.
    pub(super) fn fixed_since_the_last_look(&self) -> Vec<String> {
        let fixes = self.fixes.iter().filter(|fix| fix.key.round_number() == Some(self.round));
        fixes.map(|fix| format!("{}: {}", fix.finding, cut(&fix.note, 300))).collect()
    }

    /// What is under review: the subject, and what repairs have added to it.
    pub(super) fn subject(&self, settings: &Settings) -> Subject {
        let mut subject = settings.subject.clone();
        if let Subject::Change(change) = &mut subject {
            change.files.extend(self.made.iter().map(|path| Changed { path: path.clone(), from: None }));
        }
        subject
    }

    /// What every agent is told of the place it works in.
    pub(super) fn surroundings(&self, settings: &Settings) -> Box<Surroundings> {
        let own_files = alloc::vec![format!("{}/", settings.reviews)];
        Box::new(Surroundings { own_files, ..Surroundings::default() })
    }

    /// Distinct valid findings, open or fixed: what the explosion limit counts.
    pub(super) fn valid(&self) -> u32 {
        let counts = Counts::of(&self.findings);
        counts.open + counts.fixed + counts.blocked
    }

    /// What kept the last pass from being dry may have turned out not to be so.
    pub(super) fn look_again_at_the_pass(&mut self) {
        let dismissed =
            |id: &FindingId| self.finding(*id).is_some_and(|f| matches!(f.status, Status::Dismissed { .. }));
        let same = self.tries.text == self.last_pass.text && !self.last_pass.changed;
        if self.last_pass.sound
            && same
            && !self.last_pass.raised.is_empty()
            && self.last_pass.raised.iter().all(dismissed)
        {
            self.last_pass.dry = true;
        }
    }
}

impl Court {
    /// New files of a change are under review from now on.
    pub(super) fn add_new_files(&mut self, subject: &Subject, landed: &[LandedFile]) {
        if subject.change().is_some() {
            let known = subject.files();
            let new = landed.iter().map(|file| &file.path).filter(|path| !known.contains(&path.as_str()));
            let new: Vec<String> = new.filter(|path| !self.made.contains(path)).cloned().collect();
            self.made.extend(new);
        }
    }

    /// Patches that nobody has said anything about yet.
    pub(super) fn patches_to_approve(&self) -> u32 {
        let waits = |pending: &&Pending| {
            let blocked = Status::Blocked { decision: pending.decision.clone() };
            let of = |claim: &Claim| self.finding(claim.id).is_some_and(|finding| finding.status == blocked);
            !pending.approved && pending.claims.iter().any(of)
        };
        self.pending.iter().filter(waits).count() as u32
    }
}

impl Court {
    pub(super) fn is_asked_about(&self, path: &str) -> bool {
        let open = self.decisions.iter().filter(|decision| decision.answer.is_none());
        let mut asked = open.filter_map(|decision| match &decision.about {
            About::Strayed { strays } => Some(strays),
            _ => None,
        });
        asked.any(|strays| strays.iter().any(|stray| stray.path == path))
    }

    /// How many files are asked about and not answered for.
    pub(super) fn unanswered_strays(&self) -> u32 {
        let asked = self.decisions.iter().filter(|decision| decision.answer.is_none());
        let strays = asked.map(|decision| match &decision.about {
            About::Strayed { strays } => strays.len() as u32,
            _ => 0,
        });
        strays.sum()
    }

    pub(super) fn has_strays_due(&self) -> bool {
        !self.strays.due.is_empty()
    }

    /// The id of the next question to the user.
    pub(super) fn next_decision_id(&self) -> DecisionId {
        DecisionId::new(format!("D{}", self.decisions.len() + 1))
    }

    /// What people told the run, as briefs have it.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.said.iter().map(|remark| format!("{remark}")).collect()
    }
}
