//! Writes past the copies: a file of the person's that changed while agents were at work, and not by a landing.
//!
//! Nobody can tell an agent's hand from the person's, so the person is asked, once a file. Until they have answered, the run
//! does not call itself resolved.

use alloc::{format, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    decision::{About, Decision},
    effect::{Effect, Reply, Stray},
    event::Event,
    host::{Host, Parked},
    ids::Key,
    review::{Court, consult::Consulted, people},
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Strays {
    /// Asked about, or answered for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    known: Vec<Stray>,
    /// The person answers for these themselves: they are not asked about again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    theirs: Vec<alloc::string::String>,
    /// To be put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    due: Vec<Stray>,
}

impl Strays {
    pub fn is_empty(&self) -> bool {
        *self == Strays::default()
    }

    fn is_news(&self, stray: &Stray) -> bool {
        let same = |known: &Stray| known.path == stray.path && known.after == stray.after;
        !self.known.iter().any(same) && !self.theirs.contains(&stray.path)
    }

    pub(super) fn answered(&mut self, stray: Stray, restore: bool) {
        if restore {
            self.due.push(stray);
        } else {
            self.theirs.push(stray.path);
        }
    }
}

/// Asks about what was written past the copies while somebody was consulted.
pub(super) async fn report(
    host: &dyn Host,
    court: &mut Court,
    key: &Key,
    came: &Consulted,
) -> Result<(), Parked> {
    for stray in &came.strayed {
        if !court.strays.is_news(stray) {
            continue;
        }
        court.strays.known.push(stray.clone());
        let what = match (&stray.before, &stray.after) {
            (None, _) => "appeared",
            (_, None) => "was deleted",
            _ => "was changed",
        };
        let question =
            format!("{} {what} while agents were at work, and not by a landing: was that you?", stray.path);
        let id = court.decision_id(court.decisions.len() as u32 + 1);
        let number = court.strays.known.len();
        let decision = Decision::strayed(id, stray.clone(), question);
        people::post(host, court, &key.child(&format!("stray-{number}")), decision).await?;
    }
    Ok(())
}

/// Puts back what a person wants put back.
pub(super) async fn restore(host: &dyn Host, court: &mut Court) -> Result<(), Parked> {
    for (number, stray) in core::mem::take(&mut court.strays.due).into_iter().enumerate() {
        let path = stray.path.clone();
        let key = Key::new(format!("restore-{}", number + 1));
        let text = match host.perform(key, Effect::Restore { stray }).await? {
            Reply::Restored { parked: Some(parked) } => {
                format!("{path} was put back as it was; what stood there is kept as {parked}")
            }
            Reply::Restored { parked: None } => format!("{path} was put back as it was"),
            Reply::Failed { fault, .. } => format!("{path} was not put back: {}", fault.detail),
            other => format!("{path} was not put back: {other:?}"),
        };
        host.note(Event::Warned { text });
    }
    Ok(())
}

impl Court {
    /// How many files are asked about and not answered for.
    pub(super) fn unanswered_strays(&self) -> u32 {
        let open = |decision: &&Decision| {
            decision.answer.is_none() && matches!(decision.about, About::Strayed { .. })
        };
        self.decisions.iter().filter(open).count() as u32
    }

    pub(super) fn has_strays_due(&self) -> bool {
        !self.strays.due.is_empty()
    }
}
