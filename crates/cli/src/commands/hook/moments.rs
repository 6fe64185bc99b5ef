//! The other moments: a session begins or ends, a person speaks, a tool is about to be used or was used.

use tribunal_agents::hook::Answer;
use tribunal_bmad::hooks::Moment;
use tribunal_core::{
    session::{What, Work},
    view::Phase,
};
use tribunal_runner::{
    Runner,
    session::{self, Look, Taken},
};
use tribunal_store::Store;

use super::{Call, say, tools::aborted};
use crate::commands::runs;

impl Call {
    /// What this very session has taken on, if that is known.
    pub(super) fn taken(&self) -> Option<Box<Taken>> {
        match session::look(&self.project, &self.input.session, session::now_ms(), self.stale_after()) {
            Look::Held(taken) if taken.state.session == self.input.session => Some(taken),
            Look::Idle(why) => {
                say(&why);
                None
            }
            _ => None,
        }
    }

    pub(super) fn note(&self, taken: &Taken, what: What) {
        if let Err(cause) = taken.record(what, session::now_ms()) {
            say(&cause.to_string());
        }
    }

    pub(super) fn session_end(&self) -> Answer {
        if let Some(taken) = self.taken() {
            let why = if self.input.source.is_empty() { "" } else { &self.input.source };
            self.note(&taken, What::Noted { text: format!("the session ended {why}").trim().to_string() });
        }
        Answer::Allow { say: None }
    }

    pub(super) fn pre_compact(&self) -> Answer {
        if let Some(taken) = self.taken() {
            self.note(
                &taken,
                What::Noted { text: "the client makes its memory of the session shorter".into() },
            );
        }
        Answer::Allow { say: None }
    }

    /// A person speaks: the client counts refusals anew, and what waits for a session has found one.
    pub(super) fn user_prompt_submit(&self) -> Answer {
        let now = session::now_ms();
        let Look::Held(mut taken) =
            session::look(&self.project, &self.input.session, now, self.stale_after())
        else {
            return Answer::Allow { say: None };
        };
        // What no journal knows is claimed by who stops in it, as the other tool does it.
        if taken.state.session.is_empty() && !taken.is_of_a_file_alone() {
            return match taken.claim(&self.project, &self.input.session, now) {
                Ok(()) => Answer::Tell { context: taken_on(&taken) },
                Err(cause) => {
                    say(&cause.to_string());
                    Answer::Allow { say: None }
                }
            };
        }
        if taken.tally.in_a_row > 0 {
            taken.tally.in_a_row = 0;
            self.note(&taken, What::Noted { text: "a person spoke to the session".into() });
        }
        Answer::Allow { say: None }
    }

    /// What the model should know of what happened here before.
    pub(super) fn session_start(&self) -> Answer {
        let mut notes = Vec::new();
        match session::look(&self.project, &self.input.session, session::now_ms(), self.stale_after()) {
            Look::Held(mut taken) if taken.state.session == self.input.session => {
                notes.push(taken_on(&taken));
                let came = self.step_hooks(&mut taken, Moment::SessionStart);
                notes.extend(came.aborted.map(|why| aborted(&why)));
                notes.extend(Some(came.context).filter(|context| !context.trim().is_empty()));
            }
            Look::Idle(why) => {
                say(&why);
                notes.push(why);
            }
            _ => {}
        }
        notes.extend(self.unfinished());
        if notes.is_empty() {
            return Answer::Allow { say: None };
        }
        notes.insert(0, "Tribunal, in this project:".to_string());
        Answer::Tell { context: notes.join("\n") }
    }

    /// Runs that died, and how many questions wait.
    fn unfinished(&self) -> Vec<String> {
        if !Store::exists(&self.project.home()) {
            return Vec::new();
        }
        let all =
            Store::open_read_only(&self.project.home()).ok().map(|store| runs::all(&store, &self.project));
        let Some(Ok(all)) = all else { return Vec::new() };
        let mut notes = Vec::new();
        for (view, live) in &all {
            if let (Phase::Running, false, Some(run)) = (&view.phase, live, &view.run)
                && !Runner::is_live(&self.project, run)
            {
                notes.push(format!("Run {run} died; a person may go on with it: tribunal resume {run}"));
            }
        }
        let waiting: usize = all.iter().map(|(view, _)| view.waiting().count()).sum();
        if waiting > 0 {
            let (questions, wait) = if waiting == 1 { ("question", "waits") } else { ("questions", "wait") };
            notes.push(format!("{waiting} {questions} {wait} for a person: tribunal decisions"));
        }
        notes
    }
}

fn taken_on(taken: &Taken) -> String {
    let name = if taken.standing.run.is_empty() { "a loop" } else { &taken.standing.run };
    let mut text = format!(
        "This session has taken on {name} of Tribunal: sent back {} of at most {} so far.",
        taken.standing.refusals, taken.standing.max_refusals
    );
    if taken.standing.work == Work::Loop {
        text.push_str(&format!(" What is to be done: {}", taken.standing.prompt));
        let promise = taken.standing.promise.iter();
        promise.for_each(|promise| text.push_str(&format!(" When it is true: <promise>{promise}</promise>")));
    }
    text
}
