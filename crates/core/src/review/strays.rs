//! Writes past the copies: a file of the person's that changed while agents were at work, and not by a landing.
//!
//! Nobody can tell an agent's hand from the person's, so the person is asked, once a file. Until they have answered, the run
//! does not call itself resolved.

use alloc::{format, string::String, vec::Vec};

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
    theirs: Vec<String>,
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

    pub(super) fn answered(&mut self, strays: Vec<Stray>, restore: bool) {
        if restore {
            self.due.extend(strays);
        } else {
            self.theirs.extend(strays.into_iter().map(|stray| stray.path));
        }
    }
}

/// More than so many at once are one question: somebody has changed branches, say.
const APART: usize = 3;
/// So many of them are named in it.
const NAMED: usize = 5;

/// Asks about what was written past the copies while somebody was consulted.
pub(super) async fn report(
    host: &dyn Host,
    court: &mut Court,
    key: &Key,
    came: &Consulted,
) -> Result<(), Parked> {
    let mut news: Vec<Stray> = Vec::new();
    for stray in &came.strayed {
        if court.strays.is_news(stray) && !court.is_asked_about(&stray.path) {
            court.strays.known.push(stray.clone());
            news.push(stray.clone());
        }
    }
    let together = if news.len() > APART { news.len() } else { 1 };
    for some in news.chunks(together) {
        let id = court.decision_id(court.decisions.len() as u32 + 1);
        let name = format!("stray-{id}");
        let decision = Decision::strayed(id, some.to_vec(), question(some));
        people::post(host, court, &key.child(&name), decision).await?;
    }
    Ok(())
}

fn question(strays: &[Stray]) -> String {
    let what = |stray: &Stray| match (&stray.before, &stray.after) {
        (None, _) => "appeared",
        (_, None) => "was deleted",
        _ => "was changed",
    };
    let mut named: Vec<String> =
        strays.iter().take(NAMED).map(|stray| format!("{} {}", stray.path, what(stray))).collect();
    if strays.len() > NAMED {
        named.push(format!("so were {} more files", strays.len() - NAMED));
    }
    let lost: Vec<&str> =
        strays.iter().filter(|stray| !stray.kept).map(|stray| stray.path.as_str()).collect();
    let lost = match lost.as_slice() {
        [] => String::new(),
        [first] => format!(" What stood in {first} is not to be had any more."),
        [first, rest @ ..] => {
            format!(" What stood in {first} and {} more is not to be had any more.", rest.len())
        }
    };
    format!("{} while agents were at work, and not by a landing: was that you?{lost}", named.join(", "))
}

/// Puts back what a person wants put back.
pub(super) async fn restore(host: &dyn Host, court: &mut Court) -> Result<(), Parked> {
    let due = core::mem::take(&mut court.strays.due).into_iter().filter(|stray| stray.kept);
    for (number, stray) in due.enumerate() {
        let path = stray.path.clone();
        let key = Key::new(format!("restore-{}", number + 1));
        let text = match host.perform(key.clone(), Effect::Restore { stray: stray.clone() }).await? {
            Reply::Restored { parked: Some(parked) } if stray.before.is_none() => {
                format!("{path} was taken away again; it is kept as {parked}")
            }
            Reply::Restored { parked: Some(parked) } => {
                format!("{path} was put back as it was; what stood there is kept as {parked}")
            }
            Reply::Restored { parked: None } => format!("{path} was put back as it was"),
            Reply::Failed { fault, .. } => {
                // It is still not as it was: that is asked again.
                let question = format!("{path} was not put back: {}. Is it fine as it is?", fault.detail);
                let id = court.decision_id(court.decisions.len() as u32 + 1);
                let lost = Stray { kept: false, ..stray };
                let decision = Decision::strayed(id, Vec::from([lost]), question.clone());
                people::post(host, court, &key.child("ask"), decision).await?;
                question
            }
            other => format!("{path} was not put back: {other:?}"),
        };
        host.note(Event::Warned { text });
    }
    Ok(())
}

impl Court {
    fn is_asked_about(&self, path: &str) -> bool {
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
}
