//! Which files of which clients get our hooks, or lose them.

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

/// What the whole command is about.
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
    let program = if arguments.shared { Program::IfThere } else { own_program(context, plan)? };
    let work = Work { arguments, context, project, program };
    let clients = wanted(arguments, context);
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
    for client in clients {
        let mut homes = vec![client.hooks.home(false), client.hooks.home(true)];
        homes.dedup();
        for home in homes {
            match home {
                Home::Shared(path) => work.clear(plan, client, path)?,
                Home::Own(path) => work.drop_own(plan, client, path)?,
                Home::Person(path) if named => plan.notes.push(format!(
                    "{}: its hooks are in your own {path}; take out what has `tribunal hook` in it",
                    client.word()
                )),
                Home::Person(_) => {}
            }
        }
    }
    let kept: Vec<&str> = [crate::settings::FILE, ".gitignore", ".tribunal"]
        .into_iter()
        .filter(|name| project.root().join(name).exists())
        .collect();
    if !kept.is_empty() {
        plan.notes.push(format!("not touched: {}", kept.join(", ")));
    }
    Ok(())
}

/// Those that were named, else those that are there.
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

/// By its name where that finds this very program, else by its path.
fn own_program(context: &Context, plan: &mut Plan) -> Result<Program, Complaint> {
    let own = env::current_exe().and_then(|own| own.canonicalize()).map_err(|cause| {
        Complaint::new(ENVIRONMENT, format!("own program not found: {cause}"))
            .why("Nothing was written.")
            .todo("start tribunal by its full path")
    })?;
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
            // Both files are read by the client: the same hook in both would run twice.
            if self.arguments.shared {
                self.clear(plan, client, other)?;
            } else if let Some(text) = read(self.project, other)? {
                elsewhere = install::present(client, &text)
                    .map_err(|trouble| self.trouble(client, other, &trouble))?;
            }
        }
        let old = read(self.project, path)?;
        let new = install::set(client, old.as_deref(), &self.program, &elsewhere);
        let new = new.map_err(|trouble| self.trouble(client, path, &trouble))?;
        if let Some(loose) = &new.loose {
            plan.warnings.push(format!(
                "{path}:{loose}: {} does not read a file with comments or trailing commas at all, so no hook in it runs",
                client.word()
            ));
        }
        if let Some((line, switch)) = new.switched_off.zip(client.hooks.off_switch()) {
            plan.warnings.push(format!("{path}:{line}: `{switch}` is on, so no hook runs"));
        }
        let of_it = install::moments(client).len() - elsewhere.len();
        if let Some(other) = other.filter(|_| !elsewhere.is_empty()) {
            plan.clients.push(row(client, other, |row| row.there = elsewhere.len()));
        }
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
        if let Some(old) = &old {
            install::check_own(client, old).map_err(|trouble| self.trouble(client, path, &trouble))?;
        }
        let count = install::moments(client).len();
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

    /// A file that only a person can judge.
    fn trouble(&self, client: HookClient, path: &str, trouble: &Trouble) -> Complaint {
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
