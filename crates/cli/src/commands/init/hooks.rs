//! Plans which files of which clients get Tribunal's hooks, or lose them.

use std::env;

use tribunal_agents::{
    clients::HookFile,
    hook::{
        HookClient,
        install::{self, HookProgram, InstallProblem},
    },
};
use tribunal_runner::{
    Project,
    project::{SETTINGS_FILE, SHORT_SETTINGS_FILE, file_edits::FileEdit},
};

use super::{
    InitArguments, InitPlan,
    document::{InitClientRow, ManualEdit},
    read_project_file, rebuild_command,
};
use crate::{
    clients::installed_clients::find_on_path,
    context::CommandContext,
    messages::user_errors::{EXIT_ENVIRONMENT, EXIT_NEGATIVE, EXIT_USAGE, UserError},
};

/// The parts of the command that every edit needs.
struct HookInstaller<'a> {
    arguments: &'a InitArguments,
    context: &'a CommandContext,
    project: &'a Project,
    hook_program: HookProgram,
}

pub(super) fn plan_installation(
    plan: &mut InitPlan,
    arguments: &InitArguments,
    context: &CommandContext,
    project: &Project,
) -> Result<(), UserError> {
    // Shared hooks test for the program themselves, since a colleague's machine may not have it.
    let hook_program = if arguments.shared { HookProgram::IfInstalled } else { find_own_program(context, plan)? };
    let installer = HookInstaller { arguments, context, project, hook_program };
    let clients = select_clients(arguments, context);
    // A machine without clients is no error: the settings and the ignored files are worth having without hooks, too.
    if clients.is_empty() {
        plan.notes.push(format!(
            "no client found on the PATH, so no hooks are installed; to choose one: `{} --client NAME` ({})",
            rebuild_command(arguments, context, ""),
            HookClient::all_ids().join(", ")
        ));
    }
    for client in clients {
        match client.hooks.hook_file(arguments.shared) {
            HookFile::Shared(file_path) => installer.merge_hooks(plan, client, file_path)?,
            HookFile::Own(file_path) => installer.write_own_file(plan, client, file_path)?,
            // A file outside the project is never written; its text is shown instead.
            HookFile::User(file_path) => plan.manual_edits.push(ManualEdit {
                file: file_path.to_string(),
                why: format!(
                    "{}: its hooks belong in your own {file_path}, which Tribunal does not edit; add this to it:",
                    client.client_id()
                ),
                text: install::render_hook_file(client, &installer.hook_program),
            }),
        }
        plan.notes
            .extend(client.hooks.trust_hint().map(|precondition| format!("{}: {precondition}", client.client_id())));
    }
    Ok(())
}

pub(super) fn plan_removal(
    plan: &mut InitPlan,
    arguments: &InitArguments,
    context: &CommandContext,
    project: &Project,
) -> Result<(), UserError> {
    let installer = HookInstaller { arguments, context, project, hook_program: HookProgram::ByName };
    let clients_named = !arguments.clients.is_empty();
    let clients = if clients_named { arguments.clients.clone() } else { HookClient::all().collect() };
    // Both places are cleared, because it is not recorded with which options the hooks were installed.
    for client in clients {
        let mut homes = vec![client.hooks.hook_file(false), client.hooks.hook_file(true)];
        homes.dedup();
        for home in homes {
            match home {
                HookFile::Shared(file_path) => installer.remove_hooks(plan, client, file_path)?,
                HookFile::Own(file_path) => installer.delete_own_file(plan, client, file_path)?,
                // A reminder for every client would be noise, so it is given only for those that the user named.
                HookFile::User(file_path) if clients_named => plan.notes.push(format!(
                    "{}: its hooks are in your own {file_path}; remove the entries that contain `tribunal hook`",
                    client.client_id()
                )),
                HookFile::User(_) => {}
            }
        }
    }
    // Settings and journals may have the user's work in them; removing hooks does not remove those.
    let kept_files: Vec<&str> = [SETTINGS_FILE, SHORT_SETTINGS_FILE, ".gitignore", ".tribunal"]
        .into_iter()
        .filter(|file_name| project.root().join(file_name).exists())
        .collect();
    if !kept_files.is_empty() {
        plan.notes.push(format!("left unchanged: {}", kept_files.join(", ")));
    }
    Ok(())
}

/// Selects the clients that were named, else those that are installed.
fn select_clients(arguments: &InitArguments, context: &CommandContext) -> Vec<HookClient> {
    if !arguments.clients.is_empty() {
        let mut named_clients = arguments.clients.clone();
        named_clients.sort_unstable();
        named_clients.dedup();
        return named_clients;
    }
    let is_installed = |client: &HookClient| {
        find_on_path(client.registry_row.program, &|variable_name| context.env_variable(variable_name)).is_some()
    };
    HookClient::all().filter(is_installed).collect()
}

/// Finds out how hooks start this program: by its name if that leads to this very file, else by its path.
fn find_own_program(context: &CommandContext, plan: &mut InitPlan) -> Result<HookProgram, UserError> {
    let own_path = env::current_exe().and_then(|own_path| own_path.canonicalize()).map_err(|cause| {
        UserError::new(EXIT_ENVIRONMENT, format!("cannot find the tribunal executable: {cause}"))
            .with_reason("Nothing was written.")
            .with_step("run tribunal by its full path")
    })?;
    // Links are resolved on both sides, so that a link on the search path counts as the program itself.
    let named_path = find_on_path("tribunal", &|variable_name| context.env_variable(variable_name))
        .and_then(|found_path| found_path.canonicalize().ok());
    if named_path.as_ref() == Some(&own_path) {
        return Ok(HookProgram::ByName);
    }
    let Some(path_text) = own_path.to_str() else {
        return Err(UserError::usage("the path of this program is not valid UTF-8, so hooks cannot refer to it")
            .with_reason("Nothing was written.")
            .with_step("move tribunal to a directory with a plain name, or put it on the PATH"));
    };
    plan.notes.push(format!(
        "this program is not on the PATH as `tribunal`, so hooks call {path_text}; if it moves, run `init` again"
    ));
    Ok(HookProgram::ByPath(path_text.to_string()))
}

impl HookInstaller<'_> {
    fn merge_hooks(&self, plan: &mut InitPlan, client: HookClient, file_path: &'static str) -> Result<(), UserError> {
        let other_path = match client.hooks.hook_file(!self.arguments.shared) {
            HookFile::Shared(other_path) if other_path != file_path => Some(other_path),
            _ => None,
        };
        let mut other_moments = Vec::new();
        if let Some(other_path) = other_path {
            // Clients read both files: the same hook in both would run twice.
            if self.arguments.shared {
                self.remove_hooks(plan, client, other_path)?;
            } else if let Some(other_text) = read_project_file(self.project, other_path)? {
                // The shared file is for all colleagues; hooks that are in it already are not repeated in the local
                // one.
                other_moments = install::installed_events(client, &other_text)
                    .map_err(|file_problem| self.explain_problem(client, other_path, &file_problem))?;
            }
        }
        let old_text = read_project_file(self.project, file_path)?;
        let merged = install::install_hooks(client, old_text.as_deref(), &self.hook_program, &other_moments);
        let merged = merged.map_err(|file_problem| self.explain_problem(client, file_path, &file_problem))?;
        // Such a file is edited all the same, but the user has to know that it has no effect as it is.
        if let Some(problem_position) = &merged.non_json {
            plan.warnings.push(format!(
                "{file_path}:{problem_position}: {} ignores files with comments or trailing commas, so no hook runs",
                client.client_id()
            ));
        }
        if let Some((line_number, switch_name)) = merged.disabled_hooks_line.zip(client.hooks.off_switch()) {
            plan.warnings.push(format!("{file_path}:{line_number}: `{switch_name}` is set, so no hooks run"));
        }
        // Hooks that are in the other file are reported in a row of their own.
        let hook_count = install::supported_events(client).len() - other_moments.len();
        if let Some(other_path) = other_path.filter(|_| !other_moments.is_empty()) {
            plan.client_rows.push(build_client_row(client, other_path, |row| row.there = other_moments.len()));
        }
        // Without a hook of its own to set, this file stays as it is.
        if hook_count > 0 {
            plan.client_rows.push(build_client_row(client, file_path, |row| {
                row.added = merged.added_events.len();
                row.updated = merged.updated_events.len();
                row.there = hook_count.saturating_sub(merged.added_events.len() + merged.updated_events.len());
            }));
            plan.edits.push(FileEdit {
                relative_path: file_path.to_string(),
                old_text,
                new_text: Some(merged.file_text),
            });
        }
        Ok(())
    }

    fn write_own_file(
        &self,
        plan: &mut InitPlan,
        client: HookClient,
        file_path: &'static str,
    ) -> Result<(), UserError> {
        let old_text = read_project_file(self.project, file_path)?;
        let new_text = install::render_hook_file(client, &self.hook_program) + "\n";
        // A file of the same name that Tribunal did not write is not replaced.
        if let Some(old_text) = &old_text {
            install::check_own_file(client, old_text)
                .map_err(|file_problem| self.explain_problem(client, file_path, &file_problem))?;
        }
        let hook_count = install::supported_events(client).len();
        // The file is written as a whole, so either all of its hooks are new, or all are there, or all are updated.
        plan.client_rows.push(build_client_row(client, file_path, |row| match &old_text {
            None => row.added = hook_count,
            Some(old_text) if *old_text == new_text => row.there = hook_count,
            Some(_) => row.updated = hook_count,
        }));
        plan.edits.push(FileEdit { relative_path: file_path.to_string(), old_text, new_text: Some(new_text) });
        Ok(())
    }

    fn remove_hooks(&self, plan: &mut InitPlan, client: HookClient, file_path: &'static str) -> Result<(), UserError> {
        let Some(old_text) = read_project_file(self.project, file_path)? else { return Ok(()) };
        let cleared = install::uninstall_hooks(client, &old_text)
            .map_err(|file_problem| self.explain_problem(client, file_path, &file_problem))?;
        if cleared.removed_count > 0 {
            plan.client_rows.push(build_client_row(client, file_path, |row| row.removed = cleared.removed_count));
        }
        // `None` as the new text deletes the file, if nothing but our hooks was in it.
        plan.edits.push(FileEdit {
            relative_path: file_path.to_string(),
            old_text: Some(old_text),
            new_text: cleared.remaining_text,
        });
        Ok(())
    }

    fn delete_own_file(
        &self,
        plan: &mut InitPlan,
        client: HookClient,
        file_path: &'static str,
    ) -> Result<(), UserError> {
        let Some(old_text) = read_project_file(self.project, file_path)? else { return Ok(()) };
        install::check_own_file(client, &old_text)
            .map_err(|file_problem| self.explain_problem(client, file_path, &file_problem))?;
        plan.client_rows
            .push(build_client_row(client, file_path, |row| row.removed = install::supported_events(client).len()));
        plan.edits.push(FileEdit { relative_path: file_path.to_string(), old_text: Some(old_text), new_text: None });
        Ok(())
    }

    /// Explains a problem with a file that only the user can resolve.
    fn explain_problem(&self, client: HookClient, file_path: &str, file_problem: &InstallProblem) -> UserError {
        // A broken entry of Tribunal can be repaired from what it should be; a broken file is up to its owner.
        let (exit_code, remedy) = match file_problem.is_ours {
            true => (EXIT_NEGATIVE, "restore or remove the entry"),
            false => (EXIT_USAGE, "fix the file"),
        };
        let user_error = UserError::new(exit_code, format!("{file_path}:{}", file_problem.file_problem));
        let retry_command = rebuild_command(self.arguments, self.context, "");
        let line_number = file_problem.file_problem.line;
        let user_error = match self.arguments.remove {
            true => user_error.with_reason("No file was changed.").with_step(format!(
                "remove the entries that contain `tribunal hook` by hand: {file_path}, line {line_number}"
            )),
            false => user_error.with_reason(format!(
                "No file was changed. {} needs this in {file_path}, in addition to what is there:\n{}",
                client.client_id(),
                install::render_hook_file(client, &self.hook_program)
            )),
        };
        user_error.with_step(format!("{remedy} ({file_path}, line {line_number}), then run `{retry_command}`"))
    }
}

fn build_client_row(
    client: HookClient,
    file_path: &str,
    fill_counts: impl FnOnce(&mut InitClientRow),
) -> InitClientRow {
    let (client, file_path) = (client.client_id(), file_path.to_string());
    let mut client_row = InitClientRow { client, file: file_path, added: 0, updated: 0, removed: 0, there: 0 };
    fill_counts(&mut client_row);
    client_row
}
