//! Everything that a review knows between two stages: what a boundary records, and what follows from it alone.
//!
//! Nothing here requests an effect; the stages in the neighbouring modules do.

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

/// Everything that a review knows between two stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Court {
    /// The number of finished rounds.
    pub round: u32,
    pub last_pass: Pass,
    /// The number of finished fix iterations in this round.
    pub iteration: u32,
    pub findings: Vec<Finding>,
    pub fixes: Vec<Fix>,
    pub decisions: Vec<Decision>,
    pub spent: Spent,
    pub metrics: Metrics,
    /// The number of tracker versions written so far.
    pub tracker_rev: u32,
    /// The hash of the text that last passed the verify commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Hash>,
    /// The confidence after the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Remarks of the user, for the next briefs.
    pub said: Vec<Remark>,
    /// The user accepted the remaining findings.
    pub accepted: bool,
    /// The user wants another round because the confidence is too low.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub held_for_confidence: bool,
    /// The statistics of each round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sheets: Vec<Sheet>,
    /// How often the panel was found to be degraded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub degraded: u32,
    #[serde(default, skip_serializing_if = "Tries::is_empty")]
    pub tries: Tries,
    /// Patches that wait for the user's approval, or have it and wait to be landed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Pending>,
    /// Files that repairs of a change have added; they are under review from then on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<String>,
    /// Files that changed while agents were at work, and not by a landing.
    #[serde(default, skip_serializing_if = "Strays::is_empty")]
    pub strays: Strays,
    /// Findings that were not challenged because a limit was reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<FindingId>,
    /// The user no longer waits for the session: fixers repair the findings.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub session_over: bool,
    /// The ending that waits for an answer of the user.
    pub waiting: Option<Ending>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The last pass of a panel over the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pass {
    /// It raised nothing new of medium or higher severity, and nothing has landed since.
    pub dry: bool,
    /// The hash of the text that was read.
    pub text: Option<Hash>,
    /// Most of the panel answered, and most of what it raised is believed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub sound: bool,
    /// The text was changed from outside since.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub changed: bool,
    /// The number of seats that did not answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unheard: u32,
    /// The findings that kept it from being dry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<FindingId>,
}

impl Pass {
    /// Describes a pass that raised nothing new.
    pub(super) fn says(&self) -> String {
        // Missing reviewers do not spoil a dry pass, but the user should know about them.
        let mut text = String::from("a pass over the final text was dry");
        if self.unheard > 0 {
            text.push_str(&format!(", though {} did not answer", count(self.unheard, "reviewer")));
        }
        text
    }

    /// Describes why a pass does not count as dry although the text is still the same.
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

/// A patch that waits for the user's approval, or has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pending {
    pub decision: DecisionId,
    pub by: Key,
    pub patch: Hash,
    pub claims: Vec<Claim>,
    /// The user has approved it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub approved: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Strays {
    /// Edits that the user was asked about or has answered for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) known: Vec<Stray>,
    /// Paths whose edits the user has confirmed; they are not asked about again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    theirs: Vec<String>,
    /// Edits to undo.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) due: Vec<Stray>,
}

impl Strays {
    pub fn is_empty(&self) -> bool {
        *self == Strays::default()
    }

    pub(super) fn is_news(&self, stray: &Stray) -> bool {
        // A later edit of the same file is new again, unless the user has taken responsibility for the file.
        let same = |known: &Stray| known.path == stray.path && known.after == stray.after;
        // One question for each content: restoring and confirming refer to exactly this edit.
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

    /// Returns what was fixed since the last pass, one line each.
    pub(super) fn fixed_since_the_last_look(&self) -> Vec<String> {
        let fixes = self.fixes.iter().filter(|fix| fix.key.round_number() == Some(self.round));
        fixes.map(|fix| format!("{}: {}", fix.finding, cut(&fix.note, 300))).collect()
    }

    /// Returns what is under review: the subject, and the files that repairs have added to it.
    pub(super) fn subject(&self, settings: &Settings) -> Subject {
        let mut subject = settings.subject.clone();
        // The settings are pinned, so added files are in the state and joined here.
        if let Subject::Change(change) = &mut subject {
            change.files.extend(self.made.iter().map(|path| Changed { path: path.clone(), from: None }));
        }
        subject
    }

    /// Returns what every agent should know about the project.
    pub(super) fn surroundings(&self, settings: &Settings) -> Box<Surroundings> {
        // Agents must neither review nor edit trackers and metrics.
        let own_files = alloc::vec![format!("{}/", settings.reviews)];
        Box::new(Surroundings { own_files, ..Surroundings::default() })
    }

    /// Counts distinct valid findings, open, blocked or fixed, for the limit on findings.
    pub(super) fn valid(&self) -> u32 {
        let counts = Counts::of(&self.findings);
        // Dismissed and deferred findings cost no repair.
        counts.open + counts.fixed + counts.blocked
    }

    /// Marks the last pass as dry if all findings that kept it from being dry are dismissed by now.
    pub(super) fn look_again_at_the_pass(&mut self) {
        let dismissed =
            |id: &FindingId| self.finding(*id).is_some_and(|f| matches!(f.status, Status::Dismissed { .. }));
        // A pass can only be reinterpreted for the text that it has read.
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
    /// Puts new files of a change under review from now on.
    pub(super) fn add_new_files(&mut self, subject: &Subject, landed: &[LandedFile]) {
        // A single file is always exactly that file.
        if subject.change().is_some() {
            let known = subject.files();
            let new = landed.iter().map(|file| &file.path).filter(|path| !known.contains(&path.as_str()));
            let new: Vec<String> = new.filter(|path| !self.made.contains(path)).cloned().collect();
            self.made.extend(new);
        }
    }

    /// Counts the patches that wait for the user's answer.
    pub(super) fn patches_to_approve(&self) -> u32 {
        let waits = |pending: &&Pending| {
            // If the user has settled all findings of a patch otherwise, the patch no longer needs an answer.
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

    /// Counts the files that the user was asked about and has not answered for.
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
        // Decisions are never removed, so the count gives a new id.
        DecisionId::new(format!("D{}", self.decisions.len() + 1))
    }

    /// Returns the user's remarks as briefs contain them.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.said.iter().map(|remark| format!("{remark}")).collect()
    }
}
