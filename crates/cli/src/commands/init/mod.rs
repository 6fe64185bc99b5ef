//! `tribunal init`: sets Tribunal up in a project, and takes its hooks out again.
//!
//! Everything that would change is planned first and shown as a diff; then all files are written, or none. The
//! contents of clients' files are the concern of `hook::install`, our own settings that of [`settings`], and ignored
//! files that of [`gitignore`]. No client is started: whether one is installed is seen on the search path.

mod document;
mod hooks;
mod ignore;
mod settings;

use std::io::{BufRead, Write, stderr, stdin, stdout};

use tribunal_agents::hook::HookClient;
use tribunal_report::escaped;
use tribunal_runner::{
    Project,
    edits::{self, Edit, EditError},
};

use self::{
    document::{ByHand, ClientRow, SCHEMA},
    settings::Profile,
};
use super::diff::{changed, counted, write_diff};
use crate::{
    bmad::Bmad,
    clients::listed,
    complaint::{Complaint, ENVIRONMENT, NEGATIVE},
    context::Context,
    documents,
};

pub(crate) use document::Init;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long = "client", value_name = "NAME", help = client_help())]
    clients: Vec<HookClient>,
    /// For everybody who gets the project: settings that are shared, and hooks that do nothing where Tribunal is missing
    #[arg(long)]
    shared: bool,
    /// Take Tribunal's hooks out again
    #[arg(long, conflicts_with_all = ["shared", "profile"])]
    remove: bool,
    /// Only show what would change
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask, also on a terminal
    #[arg(long)]
    yes: bool,
    /// How thorough reviews are here, for a new tribunal.yaml
    #[arg(long, value_name = "PROFILE", value_enum)]
    profile: Option<Profile>,
}

fn client_help() -> String {
    format!("Only this client: {}; else those that are on the path", listed(&HookClient::words(), "or"))
}

/// Everything that the command would do.
#[derive(Debug, Default)]
struct Plan {
    edits: Vec<Edit>,
    clients: Vec<ClientRow>,
    bmad: Option<String>,
    warnings: Vec<String>,
    notes: Vec<String>,
    by_hand: Vec<ByHand>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let mut plan = plan(arguments, context, &project)?;
    // A second `init` plans the same edits, which then change nothing.
    plan.edits.retain(Edit::changes_something);
    if !context.json {
        show(&plan, context)?;
    }
    if plan.edits.is_empty() || arguments.dry_run {
        report(&plan, arguments, context, false)?;
        return Ok(0);
    }
    // Without a terminal and without `--yes` nothing is written: a script has to say explicitly that it may.
    if !arguments.yes {
        if !context.can_ask() {
            return Err(unasked(arguments, context));
        }
        if !agreed(&plan)? {
            writeln!(stderr(), "[i] nothing was written")?;
            return Ok(NEGATIVE);
        }
    }
    // The files are compared again when they are written, so an edit made during the question is not lost.
    edits::make(&project, &plan.edits).map_err(unwritten)?;
    report(&plan, arguments, context, true)?;
    Ok(0)
}

fn plan(arguments: &Arguments, context: &Context, project: &Project) -> Result<Plan, Complaint> {
    let mut plan = Plan { bmad: Bmad::of(project).layout.root, ..Plan::default() };
    // Removing takes out hooks only; settings and ignored lines may be in use by others.
    if arguments.remove {
        hooks::remove(&mut plan, arguments, context, project)?;
        return Ok(plan);
    }
    hooks::set(&mut plan, arguments, context, project)?;
    settings::set(&mut plan, arguments, project)?;
    // Ignored lines come last: they depend on which files the steps before create.
    ignore::set(&mut plan, arguments, project)?;
    Ok(plan)
}

/// Rebuilds the command line that the user typed, with extra flags behind it.
fn again(arguments: &Arguments, context: &Context, more: &str) -> String {
    let mut command = format!("{} init", context.answers.program);
    for client in &arguments.clients {
        command.push_str(&format!(" --client {}", client.word()));
    }
    for (given, flag) in [(arguments.shared, " --shared"), (arguments.remove, " --remove")] {
        command.push_str(if given { flag } else { "" });
    }
    if let Some(profile) = arguments.profile {
        command.push_str(&format!(" --profile {}", profile.word()));
    }
    command + more
}

fn unasked(arguments: &Arguments, context: &Context) -> Complaint {
    Complaint::usage("there is nobody who could be asked whether these files may be written")
        .why("Nothing was written.")
        .todo(format!("if they may: {}", again(arguments, context, " --yes")))
        .todo(format!("only to see the changes: {}", again(arguments, context, " --dry-run")))
}

fn agreed(plan: &Plan) -> Result<bool, Complaint> {
    let mut err = stderr().lock();
    write!(err, "[?] {}: [y] write, [N] not: ", counted(plan.edits.len(), "file"))?;
    err.flush()?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    // Anything but a clear yes means no.
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Prints the exact changes, what they do, and what the user should know before agreeing.
fn show(plan: &Plan, context: &Context) -> Result<(), Complaint> {
    let mut out = stdout().lock();
    for edit in &plan.edits {
        write_diff(&mut out, &context.answers, &edit.diff().text)?;
    }
    for row in &plan.clients {
        writeln!(out, "{}", escaped(&row.line()))?;
    }
    for by_hand in &plan.by_hand {
        writeln!(out, "{}", escaped(&by_hand.why))?;
        for line in by_hand.text.lines() {
            writeln!(out, "    {}", escaped(line))?;
        }
    }
    // The lock is released first, so that both streams appear in this order on a terminal.
    drop(out);
    let mut err = stderr().lock();
    for (mark, lines) in [("W", &plan.warnings), ("i", &plan.notes)] {
        for line in lines {
            writeln!(err, "[{mark}] {}", escaped(line))?;
        }
    }
    Ok(())
}

fn report(plan: &Plan, arguments: &Arguments, context: &Context, done: bool) -> Result<(), Complaint> {
    if context.json {
        return Ok(documents::print(&document(plan, arguments, done))?);
    }
    let mut out = stdout().lock();
    let names: Vec<&str> = plan.edits.iter().map(|edit| edit.path.as_str()).collect();
    let line = match (names.is_empty(), done) {
        (true, _) => "there is nothing to change".to_string(),
        (false, true) => format!("written: {}", names.join(", ")),
        (false, false) => {
            let command = again(arguments, context, " --yes");
            format!("nothing was written; to do it: {command}")
        }
    };
    writeln!(out, "{}", escaped(&line))?;
    Ok(())
}

fn document(plan: &Plan, arguments: &Arguments, done: bool) -> Init {
    Init {
        schema: SCHEMA,
        done,
        clients: plan.clients.clone(),
        files: plan.edits.iter().map(|edit| changed(&edit.diff())).collect(),
        bmad: plan.bmad.clone(),
        profile: arguments.profile.map(Profile::word),
        warnings: plan.warnings.clone(),
        notes: plan.notes.clone(),
        by_hand: plan.by_hand.clone(),
    }
}

/// Reads a file of the project, and explains why it cannot be edited if it is not usable as it is.
fn read(project: &Project, path: &str) -> Result<Option<String>, Complaint> {
    edits::read(project, path).map_err(|why| {
        let problem = why.problem(path);
        // What the system refuses is a matter of this machine; every other cause can be corrected in the file.
        let exit = match why {
            tribunal_bmad::shelf::Unreadable::Refused { .. } => ENVIRONMENT,
            _ => crate::complaint::USAGE,
        };
        let complaint = Complaint::new(exit, problem.to_string()).why("Nothing was written.");
        if problem.todo.is_empty() { complaint } else { complaint.todo(problem.todo) }
    })
}

fn unwritten(error: EditError) -> Complaint {
    let complaint = match &error {
        EditError::Overtaken { .. } => {
            Complaint::new(NEGATIVE, error.to_string()).todo("see who writes it, and again")
        }
        EditError::Failed { .. } => Complaint::new(ENVIRONMENT, error.to_string())
            .todo("see that its folder can be written, and that the disk is not full"),
    };
    // The guarantee holds for both errors: earlier files are restored when a later one fails.
    complaint.why("Nothing was changed: all files are written, or none.")
}
