//! `tribunal board move KEY STATE`: moves an entry of the board on the user's request, under the file's lock and
//! along the allowed transitions.

use std::{
    io::{Write, stderr, stdout},
    time::Duration,
};

use tribunal_bmad::{
    board::{
        State,
        edit::{Move, Moved, Refused, Way, moved},
    },
    commands::{self, Step},
    keys::{Key, StoryStatus},
    shelf::{Shelf, Unreadable},
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

/// No process of Tribunal holds a lock for as long as this, so an older lock deserves a closer look.
const LONG: Duration = Duration::from_secs(60);

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
    // The key is resolved before the state is parsed: which states exist depends on whether it is a story, an epic or
    // a retrospective.
    let key = bmad.key(&arguments.key)?;
    let to = state(&key, &arguments.state)?;
    let way = if arguments.anyway { Way::Anyway } else { Way::Along };
    let path = bmad.board_path();
    let wanted = Wanted { key: &key, to, way };
    // A preview without the lock finds refusals before any file is touched.
    let moves = look(&bmad, &path, wanted)?;
    if way == Way::Along {
        is_written_first(&bmad, &key, &moves)?;
    }
    let (mut story, mut left) = (None, None);
    // The story's file is written before the board: the board is what other tools go by, so it changes last.
    if let Some(from) = moves.iter().find(|one| one.key == key).map(|one| one.from) {
        match follow(&project, &bmad, StoryMove { key: &key, from, to }, arguments.dry_run)? {
            Followed::Yes(changed) => story = Some(changed),
            Followed::LeftAlone { path, said } => left = Some((path, said)),
            Followed::Nothing => {}
        }
    }
    let moves = match arguments.dry_run {
        true => moves,
        // When the board cannot be written, the story's status is put back, so that the two files keep agreeing.
        false => write(&project, &path, wanted).inspect_err(|_| take_back(&project, story.as_ref()))?,
    };
    let story = story.map(|changed| changed.path);
    if let Some((path, said)) = left {
        let note = format!("{path} says `{said}`, which is not what the board said; it stays as it is");
        writeln!(stderr(), "[i] {}", escaped(&note))?;
    }
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
    // Moving one story can move its epic, too, so there may be more moves than the one that was asked for.
    for Move { key, from, to, line, .. } in moves {
        let mark = if arguments.dry_run { "would move" } else { "✓" };
        writeln!(stdout(), "{}", escaped(&format!("{mark} {key}: {from} → {to} · {path}:{line}")))?;
    }
    Ok(0)
}

/// Refuses to start a story without a file, where the project has a command that writes stories ahead of development.
fn is_written_first(bmad: &Bmad, key: &Key, moves: &[Move]) -> Result<(), Complaint> {
    let (Key::Story(story), Some(moved)) = (key, moves.iter().find(|one| one.key == *key)) else {
        return Ok(());
    };
    // Only the jump over `ready-for-dev` skips the step in which the file is written.
    let skips =
        moved.from == State::Story(StoryStatus::Backlog) && moved.to == State::Story(StoryStatus::InProgress);
    let command = commands::of(&bmad.layout, Step::CreateStory, bmad.client(), &bmad.shelf);
    match command.prompt(&story.number().to_string()) {
        // An era without a command to create stories has no prompt here, and then a missing file is normal.
        Some(prompt) if skips && bmad.story_file(story).is_none() => {
            let what = format!(
                "{key} is backlog: not moved to in-progress, since it has no file to develop it from"
            );
            let complaint = Complaint::new(NEGATIVE, what).todo(format!("have it written: {prompt}"));
            Err(complaint.todo("if it is meant: add --anyway"))
        }
        _ => Ok(()),
    }
}

/// A move as the user asked for it.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    key: &'a Key,
    to: State,
    way: Way,
}

impl Wanted<'_> {
    fn apply(self, text: &str) -> Result<Moved, Refused> {
        moved(text, self.key, self.to, self.way)
    }
}

/// A move of a story on the board, which the status line of its own file should follow.
#[derive(Clone, Copy)]
struct StoryMove<'a> {
    key: &'a Key,
    from: State,
    to: State,
}

/// What happened to the story's own file.
enum Followed {
    Yes(Changed),
    /// The file said something else than the board did before the move; the user has to say which of the two is
    /// right.
    LeftAlone {
        path: String,
        said: String,
    },
    /// There is no file, it has no status line, or the line has the new status already.
    Nothing,
}

/// A file's text before and after it was rewritten.
struct Changed {
    path: String,
    old: String,
    new: String,
}

/// Sets the status in a story's own file, provided that it agreed with the board before.
fn follow(
    project: &Project,
    bmad: &Bmad,
    moved: StoryMove<'_>,
    dry_run: bool,
) -> Result<Followed, Complaint> {
    // Epics and retrospectives have no file of their own.
    let (Key::Story(key), State::Story(from), State::Story(to)) = (moved.key, moved.from, moved.to) else {
        return Ok(Followed::Nothing);
    };
    let Some(path) = bmad.story_file(key) else { return Ok(Followed::Nothing) };
    let change = |text: &str| -> Result<(String, Followed), story::edit::Refused> {
        let stays = |followed: Followed| Ok((text.to_string(), followed));
        let Some(line) = story::read(&path, text).status else { return stays(Followed::Nothing) };
        if line.status == Some(to) {
            return stays(Followed::Nothing);
        }
        if line.status != Some(from) {
            return stays(Followed::LeftAlone { path: path.clone(), said: line.said });
        }
        let new = set_status(text, to)?;
        Ok((new.clone(), Followed::Yes(Changed { path: path.clone(), old: text.to_string(), new })))
    };
    let refused = |why: story::edit::Refused| {
        Complaint::new(NEGATIVE, format!("nothing was moved: {path} could not be changed: {}", why.why))
            .todo(why.todo)
    };
    // A dry run applies the same rule to the text as it is read, without taking the lock.
    if dry_run {
        // A file that cannot be read is reported by `validate`; it does not keep the board from moving.
        return match bmad.shelf.read(&path) {
            Ok(Some(text)) => change(&text).map(|(_, followed)| followed).map_err(refused),
            _ => Ok(Followed::Nothing),
        };
    }
    edit(project, &path, change).map_err(|error| match error {
        WriteError::Refused { why, .. } => refused(why),
        other => unwritten(&other),
    })
}

/// Puts the old status back into a story whose board could not be moved, unless the file was edited in between. If
/// that fails, the two files differ, which `validate` reports; the error about the board is the one that the user has
/// to read now.
fn take_back(project: &Project, changed: Option<&Changed>) {
    let Some(Changed { path, old, new }) = changed else { return };
    // Comparing under the lock makes sure that an edit that was made meanwhile is not overwritten.
    let back = |text: &str| Ok::<_, ()>((if text == new { old.clone() } else { text.to_string() }, ()));
    // The result is ignored on purpose: the error about the board is on its way already.
    let _ = edit(project, path, back);
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

/// Computes what would move. It takes no lock and writes nothing.
fn look(bmad: &Bmad, path: &str, wanted: Wanted<'_>) -> Result<Vec<Move>, Complaint> {
    let text = match bmad.shelf.read(path) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(unwritten(&WriteError::<()>::Missing { path: path.to_string() })),
        Err(why) => return Err(unwritten(&WriteError::<()>::Unreadable { path: path.to_string(), why })),
    };
    wanted.apply(&text).map(|out| out.moves).map_err(|why| refused(path, why))
}

fn write(project: &Project, path: &str, wanted: Wanted<'_>) -> Result<Vec<Move>, Complaint> {
    // The rule is applied again to the text under the lock: another process may have changed the board since the
    // preview.
    let done = edit(project, path, |text| {
        let out = wanted.apply(text)?;
        Ok((out.text, out.moves))
    });
    done.map_err(|error| match error {
        WriteError::Refused { why, .. } => refused(path, why),
        other => unwritten(&other),
    })
}

/// Explains why a file of the project could not be written.
pub(crate) fn unwritten<E>(error: &WriteError<E>) -> Complaint {
    match error {
        WriteError::Missing { path } => Complaint::usage(format!("{path} is not there")),
        WriteError::Unreadable { path, why } => {
            let problem = why.problem(path);
            // What the system refuses is a matter of this machine; every other cause is in the file itself.
            let exit = if matches!(why, Unreadable::Refused { .. }) { ENVIRONMENT } else { NEGATIVE };
            Complaint::new(exit, problem.to_string()).why(problem.why).todo(problem.todo)
        }
        WriteError::Locked { path, locked: Locked::By { holder, lock } } => {
            let complaint = Complaint::new(ENVIRONMENT, format!("{path} is locked: {holder}"));
            let lock = lock.display();
            match holder.process {
                // The lock's own grace period clears it, so there is nothing to remove by hand.
                Some(_) if holder.is_dead() => {
                    complaint.todo("again in half a minute; a dead holder's lock is cleared then")
                }
                // A process of another container is not visible here, so its age is the only sign that it may be
                // gone.
                Some(_) if holder.age >= LONG => complaint
                    .why("It may be of another container, where this one cannot see whether it lives.")
                    .todo(format!("see who writes the file; if nobody does: rm {lock}")),
                Some(_) => complaint.todo("again when it is done"),
                None => complaint
                    .why("Only its maker knows whether it is still needed.")
                    .todo(format!("see who writes the file; if nobody does: rm {lock}")),
            }
        }
        WriteError::Locked { path, locked: Locked::Failed { cause, lock } } => {
            let cause = cause.kind();
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
        // One problem is enough to act on; `validate` lists all of them.
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
        // Going back or skipping a state is refused by default, because it is usually a typing mistake.
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
