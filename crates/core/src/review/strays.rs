//! Writes past the copies: a file of the person's that changed while agents were at work, and not by a landing.
//!
//! Nobody can tell an agent's hand from the person's, so the person is asked, once a file. Until they have answered, the run
//! does not call itself resolved.

use alloc::{format, string::String, vec::Vec};

use crate::{
    decision::Decision,
    effect::{Restore, RestoreOutcome},
    event::Event,
    files::Stray,
    host::{Host, Parked},
    ids::Key,
    review::{Court, consult::Consulted, people},
};

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
        let id = court.next_decision_id();
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
        let key = Key::restore(number as u32 + 1);
        let text = match host.perform(key.clone(), Restore { stray: stray.clone() }).await? {
            RestoreOutcome::Restored { parked: Some(parked) } if stray.before.is_none() => {
                format!("{path} was taken away again; it is kept as {parked}")
            }
            RestoreOutcome::Restored { parked: Some(parked) } => {
                format!("{path} was put back as it was; what stood there is kept as {parked}")
            }
            RestoreOutcome::Restored { parked: None } => format!("{path} was put back as it was"),
            RestoreOutcome::Failed { fault } => {
                // It is still not as it was: that is asked again.
                let question = format!("{path} was not put back: {}. Is it fine as it is?", fault.detail);
                let id = court.next_decision_id();
                let lost = Stray { kept: false, ..stray };
                let decision = Decision::strayed(id, Vec::from([lost]), question.clone());
                people::post(host, court, &key.child("ask"), decision).await?;
                question
            }
        };
        host.note(Event::Warned { text });
    }
    Ok(())
}
