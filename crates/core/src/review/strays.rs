//! Stray edits: a file of the user that changed while agents were at work, and not by a landing.
//!
//! An agent's edit cannot be told from the user's, so the user is asked, once for each file. The run does not count as
//! resolved until they have answered.

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

/// The most edits that get separate questions; more are one question: the user has probably changed branches.
const APART: usize = 3;
/// The most files that one question names.
const NAMED: usize = 5;

/// Asks the user about stray edits that a consultation reported.
pub(super) async fn report(
    host: &dyn Host,
    court: &mut Court,
    key: &Key,
    came: &Consulted,
) -> Result<(), Parked> {
    let mut news: Vec<Stray> = Vec::new();
    for stray in &came.strayed {
        if court.strays.is_news(stray) && !court.is_asked_about(&stray.path) {
            // Remembered at once: agents in parallel report the same edit.
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
    // The question names the first files only; the decision itself has all of them.
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

/// Restores the files that the user wants restored.
pub(super) async fn restore(host: &dyn Host, court: &mut Court) -> Result<(), Parked> {
    // Only edits whose previous content was kept can be undone.
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
                // The file still has the stray edit, so the user is asked again, without the choice to restore it.
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
