//! Plans which files of which clients get Tribunal's hooks, or lose them.

use std::env;

use tribunal_agents::{
    clients::Home,
    hook::{
        HookClient,
        install::{self, Program, Trouble},
    },
};
use tribunal_runner::{Project, edits::Edit};

use super::{
    Arguments, Plan, again,
    document::{ByHand, ClientRow},
    read,
};
use crate::{
    clients::on_path,
    complaint::{Complaint, ENVIRONMENT, NEGATIVE, USAGE},
    context::Context,
};

/// The parts of the command that every edit needs.
struct Work<'a> {
    arguments: &'a Arguments,
    context: &'a Context,
    project: &'a Project,
    program: Program,
}

pub(super) fn set(
    plan: &mut Plan,
    arguments: &Arguments,
    context: &Context,
    project: &Project,
) -> Result<(), Complaint> {
    // Shared hooks test for the program themselves, since a colleague's machine may not have it.
    let program = if arguments.shared { Program::IfThere } else { own_program(context, plan)? };
    let work = Work { arguments, context, project, program };
    let clients = wanted(arguments, context);
    // That is no error: the settings and the ignored files are worth having without hooks, too.
    if clients.is_empty() {
        plan.notes.push(format!(
            "no client was found on the path, so no hooks are set; to name one: {} --client NAME ({})",
            again(arguments, context, ""),
            HookClient::words().join(", ")
        ));
    }
    for client in clients {
        match client.hooks.home(arguments.shared) {
            Home::Shared(path) => work.merge(plan, client, path)?,
            Home::Own(path) => work.own(plan, client, path)?,
            // A file outside the project is never written; its text is shown instead.
            Home::Person(path) => plan.by_hand.push(ByHand {
                file: path.to_string(),
                why: format!(
                    "{}: its hooks are in your own {path}, which is not changed from here; add this to it:",
                    client.word()
                ),
                text: install::whole(client, &work.program),
            }),
        }
        plan.notes.extend(client.hooks.before_they_run().map(|what| format!("{}: {what}", client.word())));
    }
    Ok(())
}

pub(super) fn remove(
    plan: &mut Plan,
    arguments: &Arguments,
    context: &Context,
    project: &Project,
) -> Result<(), Complaint> {
    let work = Work { arguments, context, project, program: Program::Named };
    let named = !arguments.clients.is_empty();
    let clients = if named { arguments.clients.clone() } else { HookClient::all().collect() };
    // Both places are cleared, because it is not recorded with which options the hooks were installed.
    for client in clients {
        let mut homes = vec![client.hooks.home(false), client.hooks.home(true)];
        homes.dedup();
        for home in homes {
            match home {
                Home::Shared(path) => work.clear(plan, client, path)?,
                Home::Own(path) => work.drop_own(plan, client, path)?,
                // A reminder for every client would be noise, so it is given only for those that the user named.
                Home::Person(path) if named => plan.notes.push(format!(
                    "{}: its hooks are in your own {path}; take out what has `tribunal hook` in it",
                    client.word()
                )),
                Home::Person(_) => {}
            }
        }
    }
    // Settings and journals may have the user's work in them; removing hooks does not remove those.
    let kept: Vec<&str> = [crate::settings::FILE, ".gitignore", ".tribunal"]
        .into_iter()
        .filter(|name| project.root().join(name).exists())
        .collect();
    if !kept.is_empty() {
        plan.notes.push(format!("not touched: {}", kept.join(", ")));
    }
    Ok(())
}

/// Selects the clients that were named, else those that are installed.
fn wanted(arguments: &Arguments, context: &Context) -> Vec<HookClient> {
    if !arguments.clients.is_empty() {
        let mut named = arguments.clients.clone();
        named.sort_unstable();
        named.dedup();
        return named;
    }
    let is_there =
        |client: &HookClient| on_path(client.client.program, &|name| context.variable(name)).is_some();
    HookClient::all().filter(is_there).collect()
}

/// Finds out how hooks start this program: by its name if that leads to this very file, else by its path.
fn own_program(context: &Context, plan: &mut Plan) -> Result<Program, Complaint> {
    let own = env::current_exe().and_then(|own| own.canonicalize()).map_err(|cause| {
        Complaint::new(ENVIRONMENT, format!("own program not found: {cause}"))
            .why("Nothing was written.")
            .todo("start tribunal by its full path")
    })?;
    // Links are resolved on both sides, so that a link on the search path counts as the program itself.
    let named = on_path("tribunal", &|name| context.variable(name)).and_then(|path| path.canonicalize().ok());
    if named.as_ref() == Some(&own) {
        return Ok(Program::Named);
    }
    let Some(path) = own.to_str() else {
        return Err(Complaint::usage(
            "the path of this program is no text, so no settings can have it in them",
        )
        .why("Nothing was written.")
        .todo("move tribunal to a folder with an ordinary name, or put it on the PATH"));
    };
    plan.notes.push(format!(
        "typing `tribunal` does not start this program: hooks start {path}; should it move, run init again"
    ));
    Ok(Program::At(path.to_string()))
}

impl Work<'_> {
    fn merge(&self, plan: &mut Plan, client: HookClient, path: &'static str) -> Result<(), Complaint> {
        let other = match client.hooks.home(!self.arguments.shared) {
            Home::Shared(other) if other != path => Some(other),
            _ => None,
        };
        let mut elsewhere = Vec::new();
        if let Some(other) = other {
            // Clients read both files: the same hook in both would run twice.
            if self.arguments.shared {
                self.clear(plan, client, other)?;
            } else if let Some(text) = read(self.project, other)? {
                // The shared file is for all colleagues; hooks that are in it already are not repeated in the local
                // one.
                elsewhere = install::present(client, &text)
                    .map_err(|trouble| self.trouble(client, other, &trouble))?;
            }
        }
        let old = read(self.project, path)?;
        let new = install::set(client, old.as_deref(), &self.program, &elsewhere);
        let new = new.map_err(|trouble| self.trouble(client, path, &trouble))?;
        // Such a file is edited all the same, but the user has to know that it has no effect as it is.
        if let Some(loose) = &new.loose {
            plan.warnings.push(format!(
                "{path}:{loose}: {} does not read a file with comments or trailing commas at all, so no hook in it runs",
                client.word()
            ));
        }
        if let Some((line, switch)) = new.switched_off.zip(client.hooks.off_switch()) {
            plan.warnings.push(format!("{path}:{line}: `{switch}` is on, so no hook runs"));
        }
        // Hooks that are in the other file are reported in a row of their own.
        let of_it = install::moments(client).len() - elsewhere.len();
        if let Some(other) = other.filter(|_| !elsewhere.is_empty()) {
            plan.clients.push(row(client, other, |row| row.there = elsewhere.len()));
        }
        // Without a hook of its own to set, this file stays as it is.
        if of_it > 0 {
            plan.clients.push(row(client, path, |row| {
                row.added = new.added.len();
                row.updated = new.updated.len();
                row.there = of_it.saturating_sub(new.added.len() + new.updated.len());
            }));
            plan.edits.push(Edit { path: path.to_string(), old, new: Some(new.text) });
        }
        Ok(())
    }

    fn own(&self, plan: &mut Plan, client: HookClient, path: &'static str) -> Result<(), Complaint> {
        let old = read(self.project, path)?;
        let new = install::whole(client, &self.program) + "\n";
        // A file of the same name that Tribunal did not write is not replaced.
        if let Some(old) = &old {
            install::check_own(client, old).map_err(|trouble| self.trouble(client, path, &trouble))?;
        }
        let count = install::moments(client).len();
        // The file is written as a whole, so either all of its hooks are new, or all are there, or all are updated.
        plan.clients.push(row(client, path, |row| match &old {
            None => row.added = count,
            Some(old) if *old == new => row.there = count,
            Some(_) => row.updated = count,
        }));
        plan.edits.push(Edit { path: path.to_string(), old, new: Some(new) });
        Ok(())
    }

    fn clear(&self, plan: &mut Plan, client: HookClient, path: &'static str) -> Result<(), Complaint> {
        let Some(old) = read(self.project, path)? else { return Ok(()) };
        let cleared = install::clear(client, &old).map_err(|trouble| self.trouble(client, path, &trouble))?;
        if cleared.removed > 0 {
            plan.clients.push(row(client, path, |row| row.removed = cleared.removed));
        }
        // `None` as the new text deletes the file, if nothing but our hooks was in it.
        plan.edits.push(Edit { path: path.to_string(), old: Some(old), new: cleared.text });
        Ok(())
    }

    fn drop_own(&self, plan: &mut Plan, client: HookClient, path: &'static str) -> Result<(), Complaint> {
        let Some(old) = read(self.project, path)? else { return Ok(()) };
        install::check_own(client, &old).map_err(|trouble| self.trouble(client, path, &trouble))?;
        plan.clients.push(row(client, path, |row| row.removed = install::moments(client).len()));
        plan.edits.push(Edit { path: path.to_string(), old: Some(old), new: None });
        Ok(())
    }

    /// Explains a problem with a file that only the user can resolve.
    fn trouble(&self, client: HookClient, path: &str, trouble: &Trouble) -> Complaint {
        // A broken entry of Tribunal can be repaired from what it should be; a broken file is up to its owner.
        let (exit, mend) = match trouble.is_ours {
            true => (NEGATIVE, "put it back as it was, or take it out"),
            false => (USAGE, "mend it"),
        };
        let complaint = Complaint::new(exit, format!("{path}:{}", trouble.problem));
        let again = again(self.arguments, self.context, "");
        let line = trouble.problem.line;
        let complaint = match self.arguments.remove {
            true => complaint
                .why("Nothing was written, in no file.")
                .todo(format!("take out by hand what has `tribunal hook` in it: {path}, line {line}")),
            false => complaint.why(format!(
                "Nothing was written, in no file. What {} needs in {path}, beside what is there:\n{}",
                client.word(),
                install::whole(client, &self.program)
            )),
        };
        complaint.todo(format!("{mend} ({path}, line {line}), then: {again}"))
    }
}

fn row(client: HookClient, file: &str, fill: impl FnOnce(&mut ClientRow)) -> ClientRow {
    let (client, file) = (client.word(), file.to_string());
    let mut row = ClientRow { client, file, added: 0, updated: 0, removed: 0, there: 0 };
    fill(&mut row);
    row
}
