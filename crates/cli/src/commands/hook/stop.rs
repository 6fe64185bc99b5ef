//! Handles a session that wants to stop. The decision is made in `core`; this module collects the facts and carries
//! it out.

use std::{
    env,
    fs::{self, File},
    io,
};

use tribunal_agents::hook::{Answer, transcript};
use tribunal_bmad::hooks::Moment;
use tribunal_core::session::{
    LetGo, Work,
    stop::{Client, Phase, Refusal, Verdict, decide, refusal_mark},
};
use tribunal_runner::session::{self, Look, Taken};

use super::{Call, say, tools::aborted};

/// How much of a transcript's end is read at most.
const TAIL: u64 = 8 << 20;

/// How a session ended its turn.
struct Words {
    /// Empty if it said nothing, or nothing of it is known.
    answer: String,
    used_tools: Option<bool>,
}

impl Call {
    pub(super) fn stop(&self) -> Answer {
        let now = session::now_ms();
        let mut taken = match session::look(&self.project, &self.input.session, now, self.stale_after()) {
            Look::Held(taken) => taken,
            Look::Idle(why) => {
                say(&why);
                return Answer::Allow { say: Some(format!("Tribunal: {why}")) };
            }
            Look::Nothing | Look::Anothers { .. } => return Answer::Allow { say: None },
        };
        // A loop that waits for the user to start it must not catch a session that merely happens to stop.
        if taken.state.session.is_empty() && !taken.is_of_a_file_alone() {
            return Answer::Allow { say: None };
        }
        // A stop binds the session to work that only a state file knows, before anything is decided about it.
        if taken.state.session.is_empty()
            && let Err(cause) = taken.claim(&self.project, &self.input.session, now)
        {
            say(&format!("it cannot be said whose it is, so nobody is held: {cause}"));
            return Answer::Allow { say: None };
        }
        if let Some(why) = self.step_hooks(&mut taken, Moment::Stop).aborted {
            return Answer::Allow { say: Some(aborted(&why)) };
        }
        // A session whose answer is unknown could say neither that it is done nor that it is blocked, so it is let
        // go.
        let Some(words) = self.words(&taken) else { return Answer::Allow { say: None } };
        // The client counts refusals in a row; a new prompt or real work in between starts its count anew.
        if !self.input.stop_active || words.used_tools == Some(true) {
            taken.tally.in_a_row = 0;
        }
        // Clients give up on a hook that refuses too often; `decide_stop` stays below that number.
        let cap = self.client.hooks.refusal_cap(&|name| env::var(name).ok());
        let client = Client { in_a_row: taken.tally.in_a_row, cap };
        match decide(&taken.standing, &words.answer, client) {
            Verdict::Free { why, detail } => self.free(&mut taken, why, &detail, now),
            Verdict::Refuse(refusal) => self.refuse(&mut taken, refusal, now),
        }
    }

    /// Reads the last answer from the hook's input, else from the transcript. Returns `None` if neither is available.
    fn words(&self, taken: &Taken) -> Option<Words> {
        let given = self.input.last_answer.clone();
        // Opening a pipe would block until there is a writer.
        let is_special = fs::metadata(&self.input.transcript).is_ok_and(|meta| !meta.is_file());
        let opened = match is_special {
            true => Err(io::Error::other("it is no file")),
            false => File::open(&self.input.transcript),
        };
        // After a refusal it matters whether tools were used since, which only the transcript tells.
        let tail = match opened {
            Ok(mut file) if taken.tally.in_a_row > 0 => transcript::read_back(self.client, &mut file, TAIL),
            // Without a refusal the last answer is enough, and reading stops as soon as it is found.
            Ok(mut file) if given.is_none() => transcript::last_answer(self.client, &mut file, TAIL)
                .map(|answer| transcript::Tail { answer, ..transcript::Tail::default() }),
            Ok(_) => Ok(transcript::Tail::default()),
            // The client gave the answer itself, so an unreadable transcript does no harm.
            Err(_) if given.is_some() => Ok(transcript::Tail::default()),
            Err(cause) => Err(cause),
        };
        let tail = match tail {
            Ok(tail) => tail,
            Err(cause) => {
                let path = &self.input.transcript;
                say(&format!("the transcript {path} cannot be read, so nobody is held: {cause}"));
                return None;
            }
        };
        // Clients write transcripts with a delay; one without the latest refusal says nothing about the time since.
        let last = refusal_mark(taken.standing.refusals);
        let current = tail.refusal.as_ref().is_some_and(|refusal| refusal.contains(&last));
        let used_tools = tail.tools_since_refusal.filter(|_| current);
        Some(Words { answer: given.or(tail.answer).unwrap_or_default(), used_tools })
    }

    fn refuse(&self, taken: &mut Taken, refusal: Refusal, now: u64) -> Answer {
        let Refusal { reason, message, open, claimed } = refusal;
        // A refusal that was not counted could be repeated without end, so it is not given.
        match taken.refuse(&self.project, open, claimed, now) {
            Ok(()) => Answer::Refuse { reason, say: Some(message) },
            Err(cause) => {
                say(&format!("the refusal could not be counted, so nobody is held: {cause}"));
                Answer::Allow { say: None }
            }
        }
    }

    fn free(&self, taken: &mut Taken, why: LetGo, detail: &str, now: u64) -> Answer {
        // The detail can quote the session's own words, which may contain secrets.
        let detail = super::masked(detail);
        // A release that cannot be recorded is reported, and the session stops all the same.
        if let Err(cause) = taken.let_go(&self.project, why, &detail, now) {
            say(&cause.to_string());
        }
        let name = if taken.standing.run.is_empty() { "the loop" } else { &taken.standing.run };
        let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        // The messages differ because only a review's outcome was verified by Tribunal itself.
        let text = match why {
            LetGo::Complete if taken.state.work == Work::Review => {
                format!("Tribunal: {name} is resolved; nothing is open.")
            }
            LetGo::Complete => format!("Tribunal: {name} is done, as the session says."),
            LetGo::Over => format!("Tribunal: {name} no longer needs this session{detail}."),
            other => format!("Tribunal: {name} is not done. The session may stop: {}{detail}.", other.says()),
        };
        Answer::Allow { say: Some(format!("{text}{}", next(taken, why))) }
    }
}

/// Suggests a command that the user may type now.
fn next(taken: &Taken, why: LetGo) -> String {
    let run = &taken.standing.run;
    match (taken.state.work, why) {
        _ if run.is_empty() => String::new(),
        (_, LetGo::Complete) => String::new(),
        (Work::Loop, _) => format!(" It waits for you: tribunal decisions {run}.D1"),
        (Work::Review, LetGo::Over) => format!(" tribunal status {run}"),
        // A run that is under way or died has a status worth reading first; otherwise its findings wait for
        // decisions.
        (Work::Review, _) => match taken.standing.run_is {
            Phase::UnderWay | Phase::Died => format!(" How it stands: tribunal status {run}"),
            _ => format!(" Its {} open findings wait for you: tribunal decisions", taken.standing.open_count),
        },
    }
}
