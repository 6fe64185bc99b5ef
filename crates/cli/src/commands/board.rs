//! `tribunal board move KEY STATE`: a person moves something on the board, under the lock and along the arrows.

use std::io::{Write, stdout};

use tribunal_bmad::{
    board::{
        State,
        edit::{Move, Refused, Way, moved},
    },
    keys::Key,
    story::{self, edit::set_status},
};
use tribunal_report::escaped;
use tribunal_runner::{
    Project,
    board::{Locked, WriteError, edit},
};

use crate::{
    bmad::Bmad,
    complaint::{Complaint, ENVIRONMENT, NEGATIVE},
    context::Context,
    documents::{self, Moves},
    settings::nearest,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum What {
    /// Move a story, an epic or a retrospective to another state; every other byte of the file stays
    Move(MoveArguments),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MoveArguments {
    /// A key (1-2-log-in, epic-1), a story's number (1.2) or its file
    key: String,
    /// backlog, ready-for-dev, in-progress, review or done; of a retrospective optional or done
    state: String,
    /// Also back, or past a state
    #[arg(long)]
    anyway: bool,
    /// Show what would change; write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(what: &What, context: &Context) -> Result<u8, Complaint> {
    let What::Move(arguments) = what;
    let project = context.project();
    let bmad = Bmad::of(&project);
    let key = bmad.key(&arguments.key)?;
    let to = state(&key, &arguments.state)?;
    let way = if arguments.anyway { Way::Anyway } else { Way::Along };
    let path = bmad.board_path();
    // Whether it may move is known before the story says anything; the board says it last.
    write(&project, &path, (&key, to), way, true)?;
    let story = follow(&project, &bmad, (&key, to), arguments.dry_run)?;
    let moves = write(&project, &path, (&key, to), way, arguments.dry_run)?;
    if context.json {
        let dry_run = arguments.dry_run;
        documents::print(&Moves { schema: "tribunal.board/1", path, moves, story, dry_run })?;
        return Ok(0);
    }
    if let Some(story) = story {
        let mark = if arguments.dry_run { "would say" } else { "✓" };
        writeln!(stdout(), "{}", escaped(&format!("{mark} Status: {to} · {story}")))?;
    }
    if moves.is_empty() {
        writeln!(stdout(), "{key} is {to} already")?;
    }
    for Move { key, from, to, line } in moves {
        let mark = if arguments.dry_run { "would move" } else { "✓" };
        writeln!(stdout(), "{}", escaped(&format!("{mark} {key}: {from} → {to} · {path}:{line}")))?;
    }
    Ok(0)
}

/// Has a story's own file say the same, where it says anything: the file that was changed.
fn follow(
    project: &Project,
    bmad: &Bmad,
    (key, to): (&Key, State),
    dry_run: bool,
) -> Result<Option<String>, Complaint> {
    let (Key::Story(key), State::Story(to)) = (key, to) else { return Ok(None) };
    let Some(path) = bmad.story_file(key) else { return Ok(None) };
    let changed = edit(project, &path, |text| {
        if story::read(&path, text).status.is_none_or(|line| line.status == Some(to)) {
            return Ok((text.to_string(), false));
        }
        let new = set_status(text, to)?;
        Ok((if dry_run { text.to_string() } else { new }, true))
    });
    let changed = changed.map_err(|error: WriteError<story::edit::Refused>| match error {
        WriteError::Refused { why, .. } => {
            Complaint::new(NEGATIVE, format!("nothing was moved: {path} could not be changed: {}", why.why))
                .todo(why.todo)
        }
        other => unwritten(&other),
    })?;
    Ok(changed.then_some(path))
}

fn state(key: &Key, said: &str) -> Result<State, Complaint> {
    let all: Vec<&str> = State::all(key).into_iter().map(State::as_str).collect();
    State::parse(key, said).ok_or_else(|| {
        let complaint = Complaint::usage(format!("`{said}` is no state of {key}"))
            .why(format!("It can be {}.", all.join(", ")));
        match nearest(said, &all) {
            Some(near) => complaint.todo(format!("did you mean {near}?")),
            None => complaint,
        }
    })
}

fn write(
    project: &Project,
    path: &str,
    (key, to): (&Key, State),
    way: Way,
    dry_run: bool,
) -> Result<Vec<Move>, Complaint> {
    let done = edit(project, path, |text| {
        let out = moved(text, key, to, way)?;
        // Nothing is written when nothing changes.
        Ok((if dry_run { text.to_string() } else { out.text }, out.moves))
    });
    done.map_err(|error| match error {
        WriteError::Refused { why, .. } => refused(path, why),
        other => unwritten(&other),
    })
}

/// Why a file of the project could not be written.
pub(crate) fn unwritten<E>(error: &WriteError<E>) -> Complaint {
    match error {
        WriteError::Missing { path } => Complaint::usage(format!("{path} is not there")),
        WriteError::Unreadable { path, why } => {
            let problem = why.problem(path);
            Complaint::new(NEGATIVE, problem.to_string()).why(problem.why).todo(problem.todo)
        }
        WriteError::Locked { path, locked: Locked::By { holder, lock } } => {
            let complaint = Complaint::new(ENVIRONMENT, format!("{path} is locked: {holder}"));
            let lock = lock.display();
            match holder.process {
                Some(_) if holder.is_dead() => {
                    complaint.todo("again in half a minute; a dead holder's lock is cleared then")
                }
                Some(_) => complaint.todo("again when it is done"),
                None => complaint
                    .why("Only its maker knows whether it is still needed.")
                    .todo(format!("see who writes the file; if nobody does: rm {lock}")),
            }
        }
        WriteError::Locked { path, locked: Locked::Failed { cause, lock } } => {
            Complaint::new(ENVIRONMENT, format!("{path} cannot be locked: {}: {cause}", lock.display()))
                .todo("see who may write in its folder")
        }
        WriteError::Overtaken { path } => {
            Complaint::new(ENVIRONMENT, format!("{path} changed each time it was about to be written"))
                .why("Nothing was written; what others wrote is there.")
                .todo("see who writes it, and again")
        }
        WriteError::Failed { path, cause } => {
            Complaint::new(ENVIRONMENT, format!("{path} cannot be written: {cause}"))
                .todo("see that the disk is not full, and who may write there")
        }
        WriteError::Refused { path, .. } => Complaint::new(NEGATIVE, format!("{path} was not changed")),
    }
}

fn refused(path: &str, why: Refused) -> Complaint {
    match why {
        Refused::Broken { board } => match board.problems.into_iter().next() {
            Some(mut problem) => {
                problem.path = path.to_string();
                Complaint::new(NEGATIVE, problem.to_string()).why(problem.why).todo(problem.todo)
            }
            None => Complaint::new(NEGATIVE, format!("{path} is no board")),
        },
        Refused::Unknown { key } => Complaint::usage(format!("{key} is not in {path}")),
        Refused::NoState { key, said, line } => {
            Complaint::new(NEGATIVE, format!("{path}:{line}: {key} says `{said}`, which is no state"))
                .why("Where it is moved from decides whether it may move.")
                .todo("write the state it is in by hand")
        }
        Refused::NotOfItsKind { key, to } => Complaint::usage(format!("{key} cannot be {to}")),
        Refused::Against { key, from, to, line, why } => Complaint::new(
            NEGATIVE,
            format!("{path}:{line}: {key} is {from}: not moved to {to}, since {why}"),
        )
        .todo("if it is meant: add --anyway"),
        Refused::NotPlain { key, line } => Complaint::new(
            NEGATIVE,
            format!("{path}:{line}: the state of {key} is not written there as one plain word"),
        )
        .why("An alias, or text over several lines, cannot be exchanged without changing more.")
        .todo("write the state out, or move it by hand"),
        Refused::Unsafe { key } => {
            Complaint::new(NEGATIVE, format!("{path}: moving {key} would change something else, too"))
                .why("Its line has an anchor that another line refers to.")
                .todo("write both states out, or move it by hand")
        }
    }
}
