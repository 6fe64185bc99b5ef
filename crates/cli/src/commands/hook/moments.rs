//! Session events other than a stop: a session starts or ends, is compacted, or the user sends a prompt.

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
    /// Finds the work that this very session is bound to.
    pub(super) fn taken(&self) -> Option<Box<Taken>> {
        // Work that waits for any session, or is bound to another one, is not this session's.
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
        // An event that cannot be recorded is reported and dropped: the session must not suffer from it.
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

    /// Handles a prompt of the user: the client starts to count refusals anew, and work that waits for a session
    /// binds this one.
    pub(super) fn user_prompt_submit(&self) -> Answer {
        let now = session::now_ms();
        let Look::Held(mut taken) =
            session::look(&self.project, &self.input.session, now, self.stale_after())
        else {
            return Answer::Allow { say: None };
        };
        // Work that only a state file knows is claimed by the session that stops first, as the other tool that writes
        // the file does it.
        if taken.state.session.is_empty() && !taken.is_of_a_file_alone() {
            return match taken.claim(&self.project, &self.input.session, now) {
                Ok(()) => Answer::Tell { context: taken_on(&taken) },
                Err(cause) => {
                    say(&cause.to_string());
                    Answer::Allow { say: None }
                }
            };
        }
        // The user took over, so earlier refusals no longer count as being in a row.
        if taken.tally.in_a_row > 0 {
            taken.tally.in_a_row = 0;
            self.note(&taken, What::Noted { text: "a person spoke to the session".into() });
        }
        Answer::Allow { say: None }
    }

    /// Tells the model what happened in this project before.
    pub(super) fn session_start(&self) -> Answer {
        let mut notes = Vec::new();
        match session::look(&self.project, &self.input.session, session::now_ms(), self.stale_after()) {
            Look::Held(mut taken) if taken.state.session == self.input.session => {
                // The start hooks of the current step run now, and what they print goes to the model.
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
        // Without news the model's context is left alone.
        if notes.is_empty() {
            return Answer::Allow { say: None };
        }
        notes.insert(0, "Tribunal, in this project:".to_string());
        Answer::Tell { context: notes.join("\n") }
    }

    /// Describes runs that died and the number of questions that wait.
    fn unfinished(&self) -> Vec<String> {
        if !Store::exists(&self.project.home()) {
            return Vec::new();
        }
        // Problems with the journal are not this session's business; `tribunal runs` reports them.
        let all =
            Store::open_read_only(&self.project.home()).ok().map(|store| runs::all(&store, &self.project));
        let Some(Ok(all)) = all else { return Vec::new() };
        let mut notes = Vec::new();
        for (view, live) in &all {
            // Liveness is checked again because a run may have been resumed since the list was made.
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
