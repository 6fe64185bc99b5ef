//! `tribunal trust`: lets the commands of this project run here.

use std::{
    fs,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
};

use tribunal_bmad::hooks;
use tribunal_core::view::Phase;
use tribunal_report::escaped;
use tribunal_runner::Project;

use super::runs;
use crate::{
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents::{self, Trust, TrustItem},
    settings::{Given, all_items, gather},
    trust::{Book, ask, secret_in},
    trust_item::Item,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Do not ask, also on a terminal
    #[arg(long)]
    yes: bool,
    /// Only show the commands, and which of them are trusted
    #[arg(long, conflicts_with_all = ["yes", "forget"])]
    list: bool,
    /// Take it back: no command of this project is trusted any more
    #[arg(long, conflicts_with = "yes")]
    forget: bool,
    /// Also the hooks in the front matter of this step's or agent's file
    #[arg(long, value_name = "FILE", conflicts_with = "forget")]
    step: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let root = project.root();
    let mut book = Book::open(context)?;
    if arguments.forget {
        let gone = book.forget(root)?;
        return report(context, &project, &[], &book, &format!("{gone} commands are no longer trusted here"));
    }
    let items = items(context, &project, &arguments.step)?;
    let new: Vec<&Item> = items.iter().filter(|item| !book.trusts(root, item)).collect();
    if arguments.list || new.is_empty() {
        let closing = match (items.len(), new.len()) {
            (0, _) => "this project has no commands that would need trust".to_string(),
            (_, 0) => "all of them are trusted".to_string(),
            (_, new) => format!("{new} not trusted; to trust: {} trust", context.answers.program),
        };
        return report(context, &project, &items, &book, &closing);
    }
    let masker = context.masker();
    // A command with a secret in it cannot be shown in full, so it cannot be trusted.
    let (hidden, new): (Vec<&Item>, Vec<&Item>) =
        new.into_iter().partition(|item| item.hides_something(&masker));
    // Where no user can be asked, typing this command is the consent; it prints what it trusts.
    if !new.is_empty() && !arguments.yes && context.can_ask() && !ask(&new, &masker)? {
        writeln!(stderr(), "[i] nothing was trusted")?;
        return Ok(NEGATIVE);
    }
    if !new.is_empty() {
        book.add(root, new.iter().copied())?;
    }
    let new = new.len();
    // The others are trusted first, so that one bad command does not block them.
    if let Some(hidden) = hidden.first() {
        let complaint = secret_in(hidden, &masker);
        return Err(match new {
            0 => complaint,
            new => complaint.todo(format!(
                "the others are trusted now ({new}): {} trust --list",
                context.answers.program
            )),
        });
    }
    report(context, &project, &items, &book, &format!("{new} newly trusted; a changed command asks again"))
}

/// Collects what the project's files define, what resumable runs were started with, and the hooks of these files.
fn items(context: &Context, project: &Project, steps: &[PathBuf]) -> Result<Vec<Item>, Complaint> {
    let mut items = all_items(&gather(project.root(), &Given::from_environment())?);
    if let Some(store) = context.journal(project)? {
        for (view, _) in runs::all(&store, project)? {
            // Finished runs never start anything again.
            if let Some(settings) =
                view.settings.as_ref().filter(|_| !matches!(view.phase, Phase::Finished(_)))
            {
                items.extend(Item::of(settings));
            }
        }
    }
    for step in steps {
        items.extend(hooks_of_step(step)?);
    }
    // Several agents may share a command; it is shown and trusted once.
    let mut distinct: Vec<Item> = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    Ok(distinct)
}

fn hooks_of_step(step: &Path) -> Result<Vec<Item>, Complaint> {
    let name = step.display().to_string();
    let text = fs::read_to_string(step).map_err(|cause| {
        Complaint::usage(format!("{} cannot be read: {cause}", escaped(&name)))
            .why("Nothing was trusted.")
            .todo("name a file whose front matter has `hooks:`")
    })?;
    let hooks = hooks::read(&name, &text);
    // Broken hooks do not run, so they are reported and left out.
    for problem in &hooks.problems {
        writeln!(stderr(), "[W] {}", escaped(&problem.to_string()))?;
    }
    Ok(Item::of_hooks(&name, &hooks))
}

fn report(
    context: &Context,
    project: &Project,
    items: &[Item],
    book: &Book,
    closing: &str,
) -> Result<u8, Complaint> {
    let root = project.root();
    let masker = context.masker();
    if context.json {
        let rows = items.iter().map(|item| TrustItem {
            kind: item.kind(),
            agent: item.name().map(str::to_string),
            command: masker.mask(&item.command()).into_owned(),
            trusted: book.trusts(root, item),
        });
        let project = root.display().to_string();
        documents::print(&Trust { schema: "tribunal.trust/1", project, items: rows.collect() })?;
        return Ok(0);
    }
    let mut out = stdout().lock();
    for item in items {
        let word = if book.trusts(root, item) { "trusted" } else { "not trusted" };
        // Commands are never cut, however narrow the screen is: a hidden part cannot be judged.
        writeln!(out, "{word:<12} {}", item.shown(&masker))?;
    }
    // Trust goes by content, so it outlives the settings; that is worth a remark.
    let gone = book.count(root).saturating_sub(items.iter().filter(|item| book.trusts(root, item)).count());
    if !items.is_empty() && gone > 0 {
        writeln!(out, "{gone} more were trusted earlier and are no longer in the settings")?;
    }
    writeln!(out, "{closing}")?;
    Ok(0)
}
